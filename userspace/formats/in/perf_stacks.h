/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks in the text of perf script. Most frames occur often, so the text of a frame, with what is inlined in it, is
 * read once for each process.
 */
#ifndef FORMATS_IN_PERF_STACKS_H
#define FORMATS_IN_PERF_STACKS_H

#include "base/map.h"
#include "base/vec.h"
#include "formats/in/frames.h"
#include "formats/in/perf_lines.h"

struct import_failure;

/* The lines of one frame and what is inlined in it. */
struct perf_location {
	struct span text;
	struct process_id process;
	struct location_id location;
};
MAP_TYPE(perf_locations, struct perf_location);

/* A line, and the source line below it. */
struct perf_frame_line {
	struct perf_frame frame;
	struct span file;
	uint32_t line;
};

/* Begins with the first three, the start of the file, and zeros. */
struct perf_stacks {
	struct profile_builder *b;
	struct frames *frames;
	struct import_failure *failure;
	const char *start;
	struct perf_locations locations;
	/* scratch, innermost first: of a sample; of a location */
	VEC(struct location_id) path;
	VEC(struct perf_frame_line) parsed;
	VEC(struct profile_line) lines;
};

void perf_stacks__fini(struct perf_stacks *s);

/*
 * The stack of lines with frames, and source lines below them; `in_line`: a single frame, if there is one, in the rest
 * of a line. A sample without frames has one that is nowhere. 0; -E2BIG, -ENOMEM.
 */
int perf_stacks__read(struct perf_stacks *s, struct span text, bool in_line,
		      struct process_id process, struct stack_id *stack);

#endif
