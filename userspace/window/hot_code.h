/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine code of a window's functions, until the hottest of all modules are chosen. */
#ifndef WINDOW_HOT_CODE_H
#define WINDOW_HOT_CODE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "base/vec.h"
#include "stream/event_queue.h"

/* The events of a function, one behind the other. */
struct hot_function {
	uint64_t samples; /* as symbolizer_job.code has them */
	uint32_t number;  /* in order of arrival */
	size_t first, size;
};

/* The place of its strings in `texts`; size 0: it could not be read there, or is not emitted. */
struct hot_source {
	size_t path, text, size;
	enum source_state state;
	int root_fd;  /* as in symbolizer_source */
	uint8_t root; /* as in profile_source */
	bool is_script;
};

struct hot_root {
	int fd;
	uint8_t number;
};

struct hot_code {
	VEC(char) bytes;
	VEC(struct hot_function) functions;
	VEC(struct hot_source) sources; /* the hottest first */
	VEC(struct hot_root) roots;	/* of sources */
	VEC(char) texts;
};

void hot_code__fini(struct hot_code *h);
/* What symbolizer_job.code gets, of this dso. 0, -ENOMEM. */
int hot_code__add(struct hot_code *h, struct dso_id dso, const void *events, size_t size);

/* `is_script`: a runtime names it. */
int hot_code__add_source(struct hot_code *h, const struct symbolizer_source *source,
			 bool is_script);

/*
 * Numbers the roots, before they are emitted. Roots with the same paths and texts share a number. Scripts
 * have none, because functions of several roots are one: of those that differ the text is left out, and
 * *several is the number of these paths; of equal ones the worst state counts. 0, -ENOMEM.
 */
int hot_code__number_roots(struct hot_code *h, size_t *several);
/* SOURCE_ROOT_NONE: it has no sources, or is unknown (-1), and others have some. */
uint8_t hot_code__root(const struct hot_code *h, int root_fd);

struct hot_code_counts {
	size_t functions, left_functions, sources, left_sources;
	uint64_t bytes, left_bytes; /* of events, and of sources */
};

/*
 * Passes on the events of the hottest functions, with this time, and then of the sources, as many as
 * have room in `limit` bytes. 0, or what `push` returned.
 */
int hot_code__emit(struct hot_code *h, uint64_t limit, uint64_t time, event_push_fn push,
		   void *context, struct hot_code_counts *counts);

#endif
