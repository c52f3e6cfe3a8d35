/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks user stacks natively, with the source that the kernel side uses (sysprof/unwind_walk.h). */
#ifndef UNWIND_UNWIND_H
#define UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/unwind_table.h>

#define UNWIND_REGISTERS 17

struct unwind_range {
	uint64_t start, end;		  /* of an executable mapping */
	uint64_t bias;			  /* address - bias is the file's virtual address */
	const struct unwind_table *table; /* NULL: there is none */
	const void *segment;		  /* memory that the table's offsets refer to */
	uint32_t instead; /* if table is NULL: UNWIND_NO_TABLE, UNWIND_LATER, UNWIND_JAVA */
};

/* A process as the walk sees it. */
struct unwind_space {
	const struct unwind_range *ranges; /* ascending, without overlap */
	size_t count;
	/* Instead of ranges, of which there are `count`. False: no range has the address. */
	bool (*find)(void *context, uint64_t address, struct unwind_range *range);
	bool is_fresh; /* the task has just been created, and its stack is still empty */
	/* Reads memory of the process. Nonzero: it cannot be read. */
	int (*read)(void *context, void *to, size_t size, uint64_t address);
	void *context;
	uint64_t end; /* of a copied stack, which may end within a page; 0: whole pages are read */
	uint64_t thread_base; /* of thread-local storage (FS); 0: unknown, as in a copied stack */
};

/*
 * Unwinds from the innermost frame to the root, or as far as possible. Registers are by DWARF
 * number (16: instruction pointer; in a system call it is after that instruction). Frames are
 * packed (frame_pack()); *count is their number, `max` at most.
 */
enum stack_end unwind_stack(const struct unwind_space *space,
			    const uint64_t registers[UNWIND_REGISTERS], bool in_system_call,
			    uint64_t *frames, size_t max, size_t *count);

#endif
