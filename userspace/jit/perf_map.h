/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Perf maps, text files with which runtimes report JIT code: lines of "START SIZE NAME" in
 * hexadecimal (linux/tools/perf/Documentation/jit-interface.txt). The writer is untrusted:
 * malformed lines are counted and skipped.
 */
#ifndef JIT_PERF_MAP_H
#define JIT_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define PERF_MAP_LINE_MAX (64u * 1024) /* longer ones are malformed; V8 ends names at 4 KB */

struct perf_map_entry {
	uint64_t start, end; /* [start, end); equal: a single address that is known to be code */
	const char *name;    /* `name_size` bytes as in the file, without NUL at the end */
	size_t name_size;
};

/*
 * Parses a line without its newline; a carriage return at the end is dropped. Numbers may begin
 * with "0x". False: no entry, or addresses that no process can have.
 */
bool perf_map_parse_line(const char *line, size_t size, struct perf_map_entry *entry);

/* A map, read piece by piece. All zero is ready. */
struct perf_map_reader {
	VEC(char) rest; /* of the last piece: an incomplete line */
	bool skipping;	/* the rest of a line that is too long, or was lost */
	uint64_t entries, bad_lines;
};

/* The entry is valid during the call. Nonzero ends reading and is returned. */
typedef int (*perf_map_entry_fn)(void *context, const struct perf_map_entry *entry);

/* 0, the result of `visit`, or -ENOMEM. Empty lines are ignored. */
int perf_map_reader__feed(struct perf_map_reader *r, const char *bytes, size_t size,
			  perf_map_entry_fn visit, void *context);
/* The file is complete: parses the rest as its last line. */
int perf_map_reader__finish(struct perf_map_reader *r, perf_map_entry_fn visit, void *context);
void perf_map_reader__fini(struct perf_map_reader *r);

#endif
