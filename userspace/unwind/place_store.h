/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of processes (sysprof/unwind_table.h), and the shares of users.
 *
 * The room is limited, and each process decides for itself how much of it it needs. So when a process needs room and
 * there is none, places are taken back: first of processes that were not sampled for IDLE, the longest ago first;
 * then of the user with the most, if that is more than the requesting user has. So no user gets less than a share
 * because of others, and a single user may have all. A user's own processes give way to one that needs less than half
 * of what they have.
 *
 * table_store has one, and both are used by one thread.
 */
#ifndef UNWIND_PLACE_STORE_H
#define UNWIND_PLACE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_memory.h>

#include "base/vec.h"

/* Which parts of a stretch of memory are free: first fit, neighbours merged. Numbers only. */

struct extent {
	uint64_t start, size;
};

struct extents {
	VEC(struct extent) free; /* ascending */
};

/* 0 or -ENOMEM: what was to become free is not used again then. */
int extents__free(struct extents *e, uint64_t start, uint64_t size);
/* Where `size` was found, or -ENOSPC. */
int extents__take(struct extents *e, uint64_t size, uint64_t *start);
void extents__fini(struct extents *e);

struct place_store;
struct table_store_options;

/* One executable mapping. `table` is UNWIND_NO_TABLE or a number of table_store__take_number(). */
struct unwind_placement {
	uint64_t start, end, bias;
	uint32_t table;
};

#define PLACE_IDLE_NS 2000000000ull /* not sampled for so long */

struct place_store_stats {
	uint64_t processes;    /* that have places now */
	uint64_t idle_evicted; /* processes evicted because they had not been sampled for a while */
	uint64_t shared;       /* processes evicted because their user had the most */
	uint64_t refused;      /* updates without room: their user had its share */
	uint64_t too_many;     /* updates with more than UNWIND_PLACES_MAX places */
	uint64_t waited_ns;    /* for programs that may have been reading what was taken back */
};

/*
 * `uses`: by number of a table, how many places have it; UNWIND_TABLES of them. Both outlive the store. NULL: no
 * memory.
 */
struct place_store *place_store__new(const struct table_store_options *options, uint32_t *uses,
				     struct place_store_stats *stats);
void place_store__free(struct place_store *s);
/* As table_store_options.user_of says. */
uint32_t place_store__user(const struct place_store *s, uint32_t tgid);

/* Sets the current time, CLOCK_MONOTONIC ns. */
void place_store__advance(struct place_store *s, uint64_t now);
/*
 * Publishes the mappings of a process at `as_of` (CLOCK_MONOTONIC ns), ascending and without overlap. After a
 * later execve they are ignored. 0; -E2BIG: more than UNWIND_PLACES_MAX; -ENOSPC: no room;
 * -ENOMEM. If it fails, what was published before is withdrawn, so that the kernel side sends copies of stacks.
 */
int place_store__publish(struct place_store *s, uint32_t tgid,
			 const struct unwind_placement *placements, size_t count, uint64_t as_of);
void place_store__withdraw(struct place_store *s, uint32_t tgid);
/* It has too many mappings to be published: counts that, and withdraws it. */
void place_store__refuse(struct place_store *s, uint32_t tgid);
/* It was sampled: its places are in use. */
void place_store__sampled(struct place_store *s, uint32_t tgid);
/* One process more has to give way, for another reason than room, to this one. False: none has to. */
bool place_store__evict(struct place_store *s, uint32_t tgid);

#endif
