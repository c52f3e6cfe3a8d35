/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Perf maps, text files with which runtimes report where they put code: "START SIZE NAME" a line, in hexadecimal
 * (linux/tools/perf/Documentation/jit-interface.txt). The writer is untrusted: a malformed line is counted and
 * skipped.
 */
#ifndef JIT_PERF_MAP_H
#define JIT_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define PERF_MAP_LINE_MAX (64u * 1024) /* longer ones are malformed; V8 ends names at 4 KB */

struct perf_map_entry {
	uint64_t start, end; /* [start, end); equal: only this address is known to be code */
	const char *name;    /* `name_size` bytes without NUL, as they are in the file */
	size_t name_size;
};

/*
 * One line, without its newline; a carriage return at its end is not part of it. Numbers may have "0x" in front of
 * them. False: it is no entry, or has addresses that a process cannot have.
 */
bool perf_map_parse_line(const char *line, size_t size, struct perf_map_entry *entry);

/* A map that is read piece by piece. All zero is ready. */
struct perf_map_reader {
	VEC(char) rest; /* of the last piece: a line without an end */
	bool skipping;	/* the rest of a line that is too long */
	uint64_t entries, bad_lines;
};

/* Valid during the call. Nonzero ends the reading and is returned. */
typedef int (*perf_map_entry_fn)(void *context, const struct perf_map_entry *entry);

/* 0, what `visit` returned, or -ENOMEM. Empty lines are ignored. */
int perf_map_reader__feed(struct perf_map_reader *r, const char *bytes, size_t size,
			  perf_map_entry_fn visit, void *context);
/* The file is complete: the bytes left are its last line. */
int perf_map_reader__finish(struct perf_map_reader *r, perf_map_entry_fn visit, void *context);
void perf_map_reader__fini(struct perf_map_reader *r);

#endif
