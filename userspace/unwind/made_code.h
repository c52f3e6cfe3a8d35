/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JIT code of PyPy and LuaJIT: where it is, and its unwind tables, which are read from the memory of the
 * process. Decides which process is read when.
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
	/* made_code__answer() is called, now or later. 0; -ENOMEM: it is not. */
	int (*request)(void *context, const struct made_request *request);
	void *context;
};

/* NULL: no memory. */
struct made_code *made_code__new(const struct made_code_options *options);
void made_code__free(struct made_code *m);

/*
 * How to unwind code at the start of [start, end), memory of that process without a file, up to piece->end.
 * UNWIND_LATER: nothing is known yet.
 */
void made_code__place(const struct made_code *m, uint32_t tgid, uint64_t start, uint64_t end,
		      struct unwind_placement *piece);

struct made_moment {
	uint32_t tgid;
	enum made_by by;
	uint64_t time; /* now, CLOCK_MONOTONIC ns */
	const struct made_area *areas;
	size_t area_count;
	/* Where a stack was truncated, and that thread's registers by DWARF number. NULL: no stack was. */
	uint64_t missed;
	const uint64_t *registers;
};

/*
 * Request the frames of a process, unless there was a request a moment ago. 1: it has been answered at once, there is
 * other code than before, and the process is to be published again; 0; -ENOMEM.
 */
int made_code__request(struct made_code *m, const struct made_moment *moment);
/* The same for an answer. It is ignored if the process is forgotten or there is a newer request. */
int made_code__answer(struct made_code *m, const struct made_answer *answer);
/* CPU time that all this took so far, ns. */
uint64_t made_code__cpu(const struct made_code *m);
/* May the code of this process have changed since the last request? Then another one is due. */
bool made_code__is_due(const struct made_code *m, uint32_t tgid, uint64_t time);
void made_code__forget(struct made_code *m, uint32_t tgid);

#endif
