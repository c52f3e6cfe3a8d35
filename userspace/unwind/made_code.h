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

struct made_code;

struct made_code_options {
	struct table_store *store;
	size_t table_limit; /* bytes */
	/*
	 * Reads the frames in these areas from the process's memory, sorted and without overlap. `registers`
	 * are those of a thread, by DWARF number, or NULL. 0; -ENODATA: none; -ENOMEM.
	 */
	int (*read_frames)(void *context, struct made_runtime *runtime, const uint64_t *registers,
			   const struct made_area *areas, size_t area_count,
			   struct made_frame **frames, size_t *count);
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
 * Reads the frames of the process again, unless it was read recently. 1: its code has changed, so it must be
 * published again; 0; -ENOMEM. Adds the CPU time used to *cpu_ns.
 */
int made_code__ask(struct made_code *m, const struct made_moment *moment, uint64_t *cpu_ns);
/* Should this process be read again, because its code may have changed? */
bool made_code__is_due(const struct made_code *m, uint32_t tgid, uint64_t time);
void made_code__forget(struct made_code *m, uint32_t tgid);

#endif
