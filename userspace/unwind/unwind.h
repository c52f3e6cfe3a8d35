/* SPDX-License-Identifier: BSD-2-Clause */
/* User stacks walked natively, by the source that walks them in the kernel (sysprof/unwind_walk.h). */
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
	const void *segment;		  /* that has it */
	uint32_t instead; /* of a table: UNWIND_NO_TABLE, UNWIND_LATER, UNWIND_JAVA */
};

/* A process as the walk sees it. */
struct unwind_space {
	const struct unwind_range *ranges; /* ascending, without overlap */
	size_t count;
	/* Instead of ranges, `count` of which there are: the one of an address. False: there is none. */
	bool (*find)(void *context, uint64_t address, struct unwind_range *range);
	bool is_fresh; /* the task has just been made, and its stack has nothing on it yet */
	/* Read its memory: 0, or it cannot be read. */
	int (*read)(void *context, void *to, size_t size, uint64_t address);
	void *context;
	uint64_t
		thread_base; /* of the thread's local storage (FS); 0: not known, as of a copied stack */
};

/*
 * From the innermost frame on, whose registers are given by DWARF number (16 is the instruction
 * pointer; in a system call it is behind that instruction), to the root or as far as it goes. Frames are packed (frame_pack()); *count is how many,
 * `max` at most.
 */
enum stack_end unwind_stack(const struct unwind_space *space,
			    const uint64_t registers[UNWIND_REGISTERS], bool in_system_call,
			    uint64_t *frames, size_t max, size_t *count);

#endif
