/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A runtime that was made up. A function of it is an object in memory, and its heap is an array of such ones behind a word of
 * its own: see the whole of what a folder in userspace/runtimes/ has to have.
 */
#ifndef TESTS_UNIT_MADEUP_RUNTIME_H
#define TESTS_UNIT_MADEUP_RUNTIME_H

#define MADEUP_MAGIC	 0x70756564616d2121ull
#define MADEUP_FUNCTIONS 8u
#define MADEUP_NOTE                                                                                \
	FRAME_NOTE_V8_FRAME /* numbers are those of event.h; V8 is not in the test's table */

struct madeup_function {
	uint64_t number; /* no other function ever gets it */
	uint32_t line;
	char name[20];
};

struct madeup_heap {
	uint64_t magic, version;
	struct madeup_function functions[MADEUP_FUNCTIONS];
};

#endif
