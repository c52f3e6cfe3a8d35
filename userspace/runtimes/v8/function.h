/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_V8_FUNCTION_H
#define RUNTIMES_V8_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

struct managed_function;
struct v8_reader;
struct v8_script;

/*
 * Functions of JavaScript, by their SharedFunctionInfo ("SFI"): the one object that all closures
 * and all code of a function share, and that is seldom moved. All words here are tagged, as in
 * frames and in the heap. A walk of stacks notes the SFI of a frame. Soon after the first time
 * v8_function__read() reads it, and its number; later v8_function__number() is compared with that.
 */

struct v8_function {
	uint64_t sfi;	  /* where it was read: not where it was sought, if it was moved */
	uint64_t number;  /* v8_function__number() */
	int32_t start;	  /* position in its source; -1: unknown */
	bool is_builtin;  /* V8's own: it has no script, and never had */
	bool lost_script; /* the script could not be read: what is known is the name */
};

/*
 * Names the function at an SFI, without rows. 0; -ENODATA: none, or no more; -EAGAIN: it is
 * changing, even at the second look; or as target_memory__read(). A failure changes *f, but not
 * *about.
 */
int v8_function__read(struct v8_reader *r, uint64_t sfi, struct managed_function *f,
		      struct v8_function *about);

/*
 * A number that no other function at this address has: frame_note.check of a walk of stacks. Its
 * upper half is the number that V8 gives to each function of an isolate, or before it did (Node.js
 * 20) to each script; its lower half the function's number in its script. They never change, but
 * the collector may move what is beside them. 0: unknown. It is read as the walk reads it, whatever
 * is there. 0, or as target_memory__read().
 */
int v8_function__number(struct v8_reader *r, uint64_t sfi, uint64_t *number);

/* The script of an SFI; NULL where it has none, as V8's own. 0, or as v8_script__find(). */
int v8_function__script(struct v8_reader *r, uint64_t sfi, struct v8_script **script);

#endif
