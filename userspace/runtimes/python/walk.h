/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chain of Python frames of a thread, from its state on: the same steps, with the same limits, as a program in the
 * kernel takes them.
 *
 * Each interpreter loop of the thread, a frame of its C stack, has an object in it that the chain passes: the anchor. The
 * Python frames that run in one loop are a group. Where the loop is among the native frames is found by the anchor's
 * address (cpython_merge.h).
 */
#ifndef RUNTIMES_PYTHON_WALK_H
#define RUNTIMES_PYTHON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/python/layout.h"
#include "runtimes/target_memory.h"

/*
 * The head of a code object, by which it is recognized later: the memory of one that is gone is used for the next
 * one. Words of the process, none of which is followed but those to 3.11's names.
 */
struct cpython_identity {
	uint32_t version; /* co_version; 3.11: runtime_python_version() */
	uint32_t firstline;
	uint64_t qualname; /* pointers */
	uint64_t others;   /* cpython_identity__others() */
};

static inline uint64_t cpython_identity__others(uint64_t filename, uint64_t linetable)
{
	return filename * 31 + linetable;
}

/* Bytes of a code object that have its identity; CPYTHON_HEAD_MAX at most. */
static inline size_t cpython_head__size(const struct cpython *py)
{
	return py->layout.code_linetable + 8;
}

/*
 * Of the head that was read. 0; 3.11: else as target_memory__read(), what cannot be read of its names counts as 0 then, as it
 * does in the kernel.
 */
int cpython_identity__of_head(const struct cpython *py, struct target_memory *m,
			      const uint8_t *head, struct cpython_identity *identity);

/* Is it the one that a note has? frame_note.check of include/sysprof/event.h */
static inline bool cpython_identity__has(const struct cpython_identity *identity, uint64_t check)
{
	return identity->firstline == (uint32_t)check && identity->version == check >> 32;
}

#define CPYTHON_OWNER_GENERATOR 1u
#define CPYTHON_OWNER_BOUNDARY	3u /* this, and what is larger: a frame of C, not of Python */

#define CPYTHON_NO_INSTRUCTION	UINT32_MAX

struct cpython_frame {
	uint64_t code; /* the code object */
	struct cpython_identity identity;
	/* where the frame's instruction pointer is, in bytes from the start of the code object: cpython_code__line().
	 * CPYTHON_NO_INSTRUCTION: elsewhere. */
	uint32_t instruction;
	uint8_t owner;
};

/* Frames first … first + count - 1, innermost first. None: the loop has just begun, or its frames did not fit. */
struct cpython_group {
	uint64_t anchor; /* 0: none was reached; the last group only */
	uint32_t first, count;
};

enum cpython_end {
	CPYTHON_END_ROOT,
	CPYTHON_END_LIMIT,	/* deeper than requested */
	CPYTHON_END_UNREADABLE, /* from there on */
	CPYTHON_END_CUT, /* at a generator that was just being left: what it is called by is missing */
	CPYTHON_END_TORN, /* what the chain leads to are no frames: nothing is kept */
	CPYTHON_ENDS
};

struct cpython_stack {
	/* the caller's, with their sizes */
	struct cpython_frame *frames;
	struct cpython_group *groups;
	size_t frames_max, groups_max;
	/* frames beyond frames_max that are passed on the way to the anchor of the last one's group */
	size_t passed_max;
	/* the result */
	size_t frame_count, group_count;
	enum cpython_end end;
	bool restarted; /* 3.11, 3.12: the innermost loop was just being entered, and is left out */
};

void cpython__walk(const struct cpython *py, struct target_memory *m, uint64_t thread_state,
		   struct cpython_stack *stack);

#endif
