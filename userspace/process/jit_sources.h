/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of perf maps and jitdumps, by file, over all windows. Filled from events and queried when a
 * window has ended, both by the same thread.
 */
#ifndef PROCESS_JIT_SOURCES_H
#define PROCESS_JIT_SOURCES_H

#include <sysprof/event.h>

#include "jit/jit_code.h"

struct jit_sources;

struct jit_sources *jit_sources__new(void); /* NULL: no memory */
void jit_sources__free(struct jit_sources *s);

/* Events in stream order; other types are ignored. 0 or -ENOMEM. */
int jit_sources__event(struct jit_sources *s, const struct event_header *event);

/* A window has ended: makes everything so far available to queries. 0 or -ENOMEM. */
int jit_sources__settle(struct jit_sources *s);

struct jit_source {
	uint32_t file;
	struct jit_code *code; /* NULL: it was not followed */
	char *path;	       /* NULL: not reported */
	enum jit_file_state state;
};

/* The file of this number; NULL: there is none. Valid until the next event. */
struct jit_source *jit_sources__get(struct jit_sources *s, uint32_t file);

/* All files up to number `last` are forgotten but these, in any order: their processes are gone. */
void jit_sources__keep(struct jit_sources *s, const uint32_t *files, size_t count, uint32_t last);
size_t jit_sources__count(const struct jit_sources *s);

#endif
