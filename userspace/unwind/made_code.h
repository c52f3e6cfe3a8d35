/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JIT code of PyPy and LuaJIT: its places and unwind tables, from the memory of the process.
 * Decides when which process is read.
 */
#ifndef UNWIND_MADE_CODE_H
#define UNWIND_MADE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/made_frames.h>

#include "unwind/table_store.h"

#define MADE_CODE_DIVISOR 20 /* of the time may be spent on requests */

struct made_code;

struct made_code_options {
	struct table_store *store;
	size_t table_limit; /* bytes */
	/* Calls made_code__answer(), now or later. 0; -ENOMEM: it will not be called. */
	int (*request)(void *context, const struct made_request *request);
	void *context;
};

/* NULL: no memory. */
struct made_code *made_code__new(const struct made_code_options *options);
void made_code__free(struct made_code *m);

/*
 * How to unwind code at the start of [start, end), memory of that process without a file; valid up
 * to piece->end. UNWIND_LATER: unknown so far; UNWIND_BY_CODE: reading gives no frames.
 */
void made_code__place(const struct made_code *m, uint32_t tgid, uint64_t start, uint64_t end,
		      struct unwind_placement *piece);

struct made_moment {
	uint32_t tgid;
	enum made_by by;
	uint64_t time; /* now, CLOCK_MONOTONIC ns */
	const struct made_area *areas;
	size_t area_count;
	/* Where a stack was truncated, and its registers by DWARF number. NULL: none was. */
	uint64_t missed;
	const uint64_t *registers;
};

/*
 * Requests the frames of a process, unless the last request is recent. 1: answered at once with
 * other code than before, publish the process again; 0; -ENOMEM.
 */
int made_code__request(struct made_code *m, const struct made_moment *moment);
/* Takes an answer; the same results. Ignored if the process is forgotten or a request is newer. */
int made_code__answer(struct made_code *m, const struct made_answer *answer);
/* CPU time of all this so far, ns. */
uint64_t made_code__cpu(const struct made_code *m);
/* May the code of this process have changed since the last request, so that another is due? */
bool made_code__is_due(const struct made_code *m, uint32_t tgid, uint64_t time);
void made_code__forget(struct made_code *m, uint32_t tgid);

#endif
