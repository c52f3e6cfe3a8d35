/* SPDX-License-Identifier: BSD-2-Clause */
/* V8 in a process, as a reader has found it, and the answers about its frames: between the files of this folder. */
#ifndef RUNTIMES_V8_FOUND_H
#define RUNTIMES_V8_FOUND_H

#include <stdint.h>

#include "runtimes/answers_private.h"
#include "runtimes/v8/bytecodes.h"
#include "runtimes/v8/function.h"
#include "runtimes/v8/heap.h"

/*
 * Do the constants fit this process? Of the first words of frames that should be SharedFunctionInfos, nine of ten
 * must lead to a plausible one. Otherwise nothing of this process is named: wrong constants would name everything,
 * and wrongly.
 */

struct v8_reader;

#define V8_TRUST_CANDIDATES 50u
#define V8_TRUST_PERCENT    90u

enum v8_trust_state { V8_TRUST_OPEN, V8_TRUSTED, V8_REFUSED };

struct v8_trust {
	uint32_t seen, bad;
	enum v8_trust_state state;
};

/*
 * Checks one more candidate while the state is open, and returns the state. Words that were seen before are the
 * caller's to leave out, as are those of frames that may be native code's: what lies there are saved registers. What
 * could not be read for want of time or rights does not count.
 */
enum v8_trust_state v8_trust__see(struct v8_trust *t, struct v8_reader *r, uint64_t sfi);

extern const struct runtime node_runtime;

struct v8_wasm;

#define V8_FUNCTIONS_REPORTED 1024u /* a power of two */

/* A function that was reported completely. */
struct v8_reported {
	uint64_t sfi, number; /* 0: none */
};

struct v8_found {
	bool is_read;
	bool was_looked_for;	 /* else `verdict` is none */
	enum v8_verdict verdict; /* of the V8 that was found; ABSENT: of none */
	struct v8_layout layout;
	struct v8_bytecodes bytecodes;
	struct v8_scripts *scripts;
	struct v8_reader reader;
	struct v8_trust trust;
	uint64_t seen[V8_TRUST_CANDIDATES]; /* what it was tried on */
	struct v8_reported *reported; /* V8_FUNCTIONS_REPORTED, by a few bits of their address */
	struct v8_wasm *wasm;	      /* NULL: it was not needed */
};

/* As runtime_memory.answer. found->reader.memory is set. */
int v8_answers__function(struct code_answers *answers, struct v8_found *found,
			 const struct code_question *q);
int v8_answers__wasm(struct code_answers *answers, struct v8_found *found,
		     const struct code_question *q);
int v8_answers__frame(struct code_answers *answers, struct v8_found *found,
		      const struct code_question *q);

/* The offsets by which the kernel reads its frames. */
struct runtime_v8 v8_info(const struct v8_layout *v8);

#endif
