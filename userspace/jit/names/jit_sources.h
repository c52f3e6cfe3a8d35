/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of perf maps and jitdumps, by file, over all windows. Filled from events and queried
 * when a window has ended, both by the same thread.
 *
 * Memory is limited for each user whose processes have such files and for all together. Beyond a
 * limit, the largest file of the user with the most makes room: code that has ended goes first,
 * then code not sampled for the longest time. Names that go are counted as left.
 */
#ifndef JIT_NAMES_JIT_SOURCES_H
#define JIT_NAMES_JIT_SOURCES_H

#include <sysprof/event.h>
#include <sysprof/profile_builder.h>

#include "jit/jit_code.h"
#include "world/recorder.h"

struct jit_sources;

struct jit_sources *jit_sources__new(void); /* NULL: no memory */
/* Other limits than QUOTA_JIT_NAMES (tenants/quota.h), bytes, before anything is fed. */
void jit_sources__limit(struct jit_sources *s, uint64_t user, uint64_t all);
/* Keeps machine code of jitdumps as well, as far as there is room. */
void jit_sources__keep_text(struct jit_sources *s);
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
	bool was_read; /* the caller's own, as is the next; false after jit_sources__settle() */
	bool noted;    /* that it was left */
	uint64_t noted_records;	  /* of its code, which were left */
	enum jit_file_state left; /* names were left out: why; NONE: none since the last horizon */
	uint64_t left_at;
	uint32_t user;	 /* the user that it is charged to */
	uint64_t memory; /* of its code, as it was charged */
};

/*
 * A window is finished, and nothing before `horizon` (CLOCK_MONOTONIC ns) will be requested: forget
 * code that had ended by then. 0 or -ENOMEM.
 */
int jit_sources__forget(struct jit_sources *s, uint64_t horizon);

/* The file of this number; NULL: none, or there are too many. Valid until the next event. */
struct jit_source *jit_sources__get(struct jit_sources *s, uint32_t file);

/* All files up to number `last` are forgotten but these, in any order: their processes are gone. */
void jit_sources__keep(struct jit_sources *s, const uint32_t *files, size_t count, uint32_t last);

/* EVENT_JIT_BYTES as the readers of JIT files take it. */

/* The bytes stay the event's. */
static inline struct jit_piece jit_piece_of(const struct jit_bytes_event *e)
{
	return (struct jit_piece){
		.bytes = e->bytes,
		.size = e->size,
		.after = e->after,
		.before = e->before,
		.begins_snapshot = e->flags & JIT_SNAPSHOT_BEGIN,
		.ends_snapshot = e->flags & JIT_SNAPSHOT_END,
	};
}

#endif
