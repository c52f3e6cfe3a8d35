/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that began and ended between two readings of the rings, and passed nothing on.
 *
 * Most processes of a shell script or a build live for a millisecond, and no tick meets them. Their
 * records are most of the side-band, and nothing needs them: no sample has an address in their
 * mappings, no child inherited them, and profiles lack processes without samples that are no
 * targets. So they are dropped early.
 *
 * A life is brief if its fork and exit records were read, and no fork by it between them. Its task
 * (live/tasks) has whether it was sampled. Decided once, at its fork record, for all of its
 * records.
 */
#ifndef LIVE_BRIEF_LIVES_H
#define LIVE_BRIEF_LIVES_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/map.h"

struct brief_life {
	uint32_t pid;
	bool forked;	 /* it has started a thread or a process */
	bool dropped;	 /* its records are dropped */
	uint64_t began;	 /* CLOCK_MONOTONIC ns; 0: its fork record was not read */
	uint64_t ended;	 /* 0: it lives */
	uint64_t latest; /* the time of its last record */
};

MAP_TYPE(brief_life_map, struct brief_life);

struct brief_lives {
	struct brief_life_map lives;
	uint64_t missed; /* records or samples until then are missing: no older life is brief */
};

#define BRIEF_LIVES_MAX 65536u

/* A fork or exit record of a ring, in any order. */
void brief_lives__note(struct brief_lives *b, const struct task_event *event);
/* A record or a sample of this time, ns, could not be noted, or several up to then. */
void brief_lives__miss(struct brief_lives *b, uint64_t time);
/*
 * At the fork record (`time`) of process `pid`: drops the life if it was brief. All records and
 * samples older than `all_read` have been read, ns. The caller checks whether it was sampled.
 */
bool brief_lives__drop(struct brief_lives *b, uint32_t pid, uint64_t time, uint64_t all_read);
/* Does a later record of process `pid`, at `time`, belong to a dropped life? */
bool brief_lives__dropped(const struct brief_lives *b, uint32_t pid, uint64_t time);
/* All records older than `before` have been passed on. */
void brief_lives__forget(struct brief_lives *b, uint64_t before);
void brief_lives__fini(struct brief_lives *b);

#endif
