/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of JavaScript, by their SharedFunctionInfo ("SFI"): the one object that all closures and all code of a function
 * share, and that is seldom moved. All words here are tagged, as they are in frames and in the heap.
 *
 * How it is used: a walk of stacks notes the SFI of a frame. The first time, soon after, it is read by
 * v8_function__read(), which gives its number as well; each later time v8_function__number() is compared with that.
 */
#ifndef RUNTIMES_V8_FUNCTION_H
#define RUNTIMES_V8_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

struct managed_function;
struct v8_reader;
struct v8_script;

struct v8_function {
	uint64_t sfi;	  /* where it was read: not where it was sought, if it was moved */
	uint64_t number;  /* v8_function__number() */
	int32_t start;	  /* position in its source; -1: unknown */
	bool is_builtin;  /* V8's own: it has no script, and never had */
	bool lost_script; /* the script could not be read: what is known is the name */
};

/*
 * Names the function at an SFI, without rows (see lines.h). 0; -ENODATA: there is none, or no more; -EAGAIN: it is just
 * being changed, even at the second look; or as target_memory__read(). Untouched on failure are only `about`.
 */
int v8_function__read(struct v8_reader *r, uint64_t sfi, struct managed_function *f,
		      struct v8_function *about);

/*
 * A number that no other function at this address has: frame_note.check of a walk of stacks. In the upper half the
 * number that V8 gives to each function of an isolate, or before it did (Node.js 20) its script's, which it gives to
 * each script; in the lower half the function's in its script. They are never changed, where the collector may move
 * what lies beside them. 0: unknown. It is read as the walk reads it, whatever is there. 0, or as
 * target_memory__read().
 */
int v8_function__number(struct v8_reader *r, uint64_t sfi, uint64_t *number);

/* The script of an SFI; NULL where it has none, as V8's own. 0, or as v8_script__find(). */
int v8_function__script(struct v8_reader *r, uint64_t sfi, struct v8_script **script);

#endif
