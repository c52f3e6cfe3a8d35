/* SPDX-License-Identifier: BSD-2-Clause */
/* V8 in the memory of a process: layout, heap, scripts, functions, lines, code, findings. */
#ifndef RUNTIMES_V8_V8_H
#define RUNTIMES_V8_V8_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wire.h"
#include "runtimes/answers.h"
#include "runtimes/table.h"
#include "runtimes/v8/code.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"

struct v8_scripts;
struct v8_wasm;

/* ---- what a reader has found ----------------------------------------------------------------- */

/* V8 in a process and answers about its frames: shared by the files of this folder. */

/*
 * Do the constants fit this process? Of the first words of frames that should be
 * SharedFunctionInfos, nine of ten must lead to a plausible one. Otherwise nothing of this process
 * is named: wrong constants would give everything wrong names.
 */

#define V8_TRUST_CANDIDATES 50u
#define V8_TRUST_PERCENT    90u

enum v8_trust_state { V8_TRUST_OPEN, V8_TRUSTED, V8_REFUSED };

struct v8_trust {
	uint32_t seen, bad;
	enum v8_trust_state state;
};

/*
 * Checks one more candidate while the state is open; returns the state. The caller leaves out words
 * seen before, and those of frames that may be native code's: they are saved registers. What could
 * not be read for lack of time or rights does not count.
 */
enum v8_trust_state v8_trust__see(struct v8_trust *t, struct v8_reader *r, uint64_t sfi);

extern const struct runtime node_runtime;

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

#endif
