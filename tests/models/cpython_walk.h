/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chain of Python frames of a thread, from its state on: the same steps, with the same limits, as a program in the
 * kernel takes them.
 *
 * Each interpreter loop of the thread, a frame of its C stack, has an object in it that the chain passes: the anchor. The
 * Python frames that run in one loop are a group. Where the loop is among the native frames is found by the anchor's
 * address (cpython_merge.h).
 */
#ifndef TESTS_MODELS_CPYTHON_WALK_H
#define TESTS_MODELS_CPYTHON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/python/code.h"
#include "runtimes/python/cpython.h"
#include "runtimes/target_memory.h"

#define CPYTHON_OWNER_GENERATOR 1u

#define CPYTHON_NO_INSTRUCTION	UINT32_MAX

struct cpython_frame {
	uint64_t code; /* the code object */
	struct cpython_identity identity;
	/* where the frame's instruction pointer is, in bytes from the start of the code object.
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
