/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of reading LuaJIT's memory: a state with traces, in this process. To be included after cmocka.h. */
#ifndef TESTS_UNIT_LUAJIT_STATE_H
#define TESTS_UNIT_LUAJIT_STATE_H

#include <sysprof/made_frames.h>

#define LUAJIT_DISPATCH 14 /* r14, by DWARF number */

#define PAGE		4096u
#define TRACES		8
#define CODE_PAGES	16
/* words below the dispatch table, as in a version of 2022 */
#define AT_CODE	  24
#define AT_TRACES 357

/* GCtrace */
struct trace {
	uint64_t next;
	uint8_t marked, type;
	uint16_t snapshots;
	uint32_t instructions;
	uint64_t words[7];
	uint64_t start_pc;
	uint32_t start_instruction, code_size;
	uint64_t code;
	uint32_t loop;
	uint16_t children, spadjust, number, link, root, next_root, next_side;
	uint16_t rest[3];
};

struct luajit_state {
	uint64_t *memory; /* of the state; the dispatch table is at its end */
	uint64_t *dispatch;
	unsigned char *code;
	struct trace traces[TRACES];
	uint64_t array[TRACES];
	struct made_area area;
	struct made_runtime runtime;
	struct made_frame *frames;
	size_t count;
};

static inline void *map_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static inline uint64_t address_of(const void *memory)
{
	return (uint64_t)(uintptr_t)memory;
}

static inline void make_trace(struct luajit_state *w, uint16_t number, uint32_t offset,
			      uint32_t size, uint16_t spadjust)
{
	w->traces[number] = (struct trace){
		.type = 9,
		.code_size = size,
		.code = w->area.start + offset,
		.spadjust = spadjust,
		.number = number,
	};
	w->array[number] = address_of(&w->traces[number]);
}

static inline void luajit_state__init(struct luajit_state *w)
{
	uint64_t code;

	_Static_assert(offsetof(struct trace, spadjust) == 102, "GCtrace");
	*w = (struct luajit_state){.runtime = {.tgid = (uint32_t)getpid(), .by = MADE_BY_LUAJIT}};
	w->memory = map_memory(2 * PAGE);
	w->dispatch = w->memory + PAGE / 8 + 200;
	w->code = map_memory((size_t)CODE_PAGES * PAGE);
	code = address_of(w->code);
	w->area = (struct made_area){code, code + (uint64_t)CODE_PAGES * PAGE};
	w->dispatch[-AT_CODE] = code;
	w->dispatch[-AT_CODE + 1] = code + 0x8000;
	w->dispatch[-AT_CODE + 2] = code + 0x100;
	w->dispatch[-AT_CODE + 3] = w->dispatch[-AT_CODE + 4] = (uint64_t)CODE_PAGES * PAGE;
	w->dispatch[-AT_TRACES] = address_of(w->array);
	w->dispatch[-AT_TRACES + 1] = 4 | (uint64_t)TRACES << 32;
	make_trace(w, 1, 0xf000, 0x800, 0);
	make_trace(w, 2, 0xe000, 0x400, 160);
	make_trace(w, 5, 0x8000, 0x100, 16);
}

static inline void luajit_state__fini(struct luajit_state *w)
{
	free(w->frames);
	munmap(w->memory, 2 * PAGE);
	munmap(w->code, (size_t)CODE_PAGES * PAGE);
}

#endif
