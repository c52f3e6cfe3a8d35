/* SPDX-License-Identifier: BSD-2-Clause */
/* LuaJIT's traces are found from its dispatch table, in a state that this process has made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jitwatch/luajit.h"

#define PAGE	   4096u
#define TRACES	   8
#define CODE_PAGES 16
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

struct world {
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

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static uint64_t address_of(const void *memory)
{
	return (uint64_t)(uintptr_t)memory;
}

static void make_trace(struct world *w, uint16_t number, uint32_t offset, uint32_t size,
		       uint16_t spadjust)
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

static void set_up(struct world *w)
{
	uint64_t code;

	_Static_assert(offsetof(struct trace, spadjust) == 102, "GCtrace");
	*w = (struct world){.runtime = {.tgid = (uint32_t)getpid(), .by = MADE_BY_LUAJIT}};
	w->memory = map(2 * PAGE);
	w->dispatch = w->memory + PAGE / 8 + 200;
	w->code = map((size_t)CODE_PAGES * PAGE);
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

static void tear_down(struct world *w)
{
	free(w->frames);
	munmap(w->memory, 2 * PAGE);
	munmap(w->code, (size_t)CODE_PAGES * PAGE);
}

static int ask(struct world *w, const void *dispatch)
{
	free(w->frames);
	return luajit__frames(&w->runtime, address_of(dispatch), &w->area, 1, &w->frames,
			      &w->count);
}

static void assert_frame(const struct world *w, size_t i, uint64_t start, uint64_t end,
			 uint32_t size)
{
	assert_true(i < w->count);
	assert_int_equal(w->frames[i].start - w->area.start, start);
	assert_int_equal(w->frames[i].end - w->area.start, end);
	assert_int_equal(w->frames[i].size, size);
	assert_int_equal(w->frames[i].ra_offset, -8);
	assert_int_equal(w->frames[i].fp_offset, -16);
}

static void traces_test(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	assert_int_equal(ask(&w, NULL), -ENODATA);
	assert_int_equal(ask(&w, w.dispatch), 0);
	assert_int_equal(w.count, 3);
	assert_frame(&w, 0, 0x8000, 0x8100, 112);
	assert_frame(&w, 1, 0xe000, 0xe400, 256);
	assert_frame(&w, 2, 0xf000, 0xf800, 96);
	/* it is known from then on, and what it has made since is found */
	make_trace(&w, 6, 0x7000, 0x100, 0);
	assert_int_equal(ask(&w, NULL), 0);
	assert_int_equal(w.count, 4);
	assert_int_equal(w.runtime.state_count, 1);
	assert_int_equal(ask(&w, w.dispatch), 0);
	assert_int_equal(w.runtime.state_count, 1);
	/* all were freed, and the state may be gone as well */
	memset(w.array, 0, sizeof(w.array));
	assert_int_equal(ask(&w, NULL), -ENODATA);
	assert_int_equal(w.runtime.state_count, 0);
	tear_down(&w);
}

/* What is no trace, or not yet, is left out. */
static void bad_traces_test(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	w.traces[1].number = 2;
	w.traces[2].spadjust = 8192;
	assert_int_equal(ask(&w, w.dispatch), 0);
	assert_int_equal(w.count, 1);
	make_trace(&w, 1, 0xff00, 0x101, 0); /* beyond the area */
	make_trace(&w, 2, 0x8080, 0x100, 0); /* over another one */
	make_trace(&w, 3, 0x6000, 0, 0);
	make_trace(&w, 4, 0x6000, 0x100, 0);
	w.traces[4].type = 6;
	make_trace(&w, 6, 0x6000, 0x100, 0);
	w.traces[6].loop = 0x101;
	w.array[7] = 0x7fffffff0000; /* nothing is there */
	assert_int_equal(ask(&w, w.dispatch), 0);
	assert_int_equal(w.count, 1);
	assert_frame(&w, 0, 0x8000, 0x8100, 112);
	w.array[0] = w.array[1]; /* no trace has number 0, so this is no such array */
	assert_int_equal(ask(&w, w.dispatch), -ENODATA);
	tear_down(&w);
}

static void bad_state_test(void **state)
{
	static const int64_t at[] = {-AT_CODE,	   -AT_CODE + 1, -AT_CODE + 2,	-AT_CODE + 3,
				     -AT_CODE + 4, -AT_TRACES,	 -AT_TRACES + 1};
	static const uint64_t values[] = {0, 1, PAGE, 1ull << 63, ~0ull, 0x7fffffffe000};
	struct world w;

	(void)state;
	set_up(&w);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			uint64_t before = w.dispatch[at[i]];

			w.dispatch[at[i]] = values[k];
			if (!ask(&w, w.dispatch)) /* an end of the area may be anywhere in it */
				assert_int_equal(w.count, 3);
			w.runtime.state_count = 0;
			w.dispatch[at[i]] = before;
		}
	}
	assert_int_equal(ask(&w, w.dispatch + 1), 0); /* it need not be that very address */
	w.runtime.state_count = 0;
	assert_int_equal(ask(&w, (char *)w.dispatch + 1), -ENODATA);
	assert_int_equal(ask(&w, (void *)8), -ENODATA);
	assert_int_equal(ask(&w, (void *)-8), -ENODATA);
	w.area.end = w.area.start + PAGE; /* such code is not mapped */
	assert_int_equal(ask(&w, w.dispatch), -ENODATA);
	tear_down(&w);
}

/* An array that names itself all over costs no more than another. */
static void hostile_test(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	for (uint64_t *word = w.memory; word + 1 < w.dispatch - AT_CODE; word += 2) {
		word[0] = address_of(w.memory);
		word[1] = 1 | 400ull << 32;
	}
	assert_int_equal(ask(&w, w.dispatch), -ENODATA);
	srand(1);
	for (int turn = 0; turn < 300; turn++) {
		for (uint64_t *word = w.memory; word < w.dispatch - AT_CODE; word++)
			*word = rand() % 4 ? address_of(w.memory) + (unsigned)rand() % PAGE
					   : (unsigned)rand();
		(void)ask(&w, w.dispatch);
	}
	tear_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_test),
		cmocka_unit_test(bad_traces_test),
		cmocka_unit_test(bad_state_test),
		cmocka_unit_test(hostile_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
