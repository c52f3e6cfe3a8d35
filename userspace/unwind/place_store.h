/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of processes (sysprof/unwind_table.h), and the shares of users.
 *
 * Room is limited, and each process decides how much of it it needs. If there is none left, places
 * are evicted: first of processes that were not sampled for PLACE_IDLE_NS, the longest idle first;
 * then of the user with the most, if that is more than the requesting user has. So no user gets
 * less than a share because of others, and a single user may have all. Among processes of one user,
 * one with more than twice the need of the requesting process gives way.
 *
 * table_store owns one; one thread uses both.
 */
#ifndef UNWIND_PLACE_STORE_H
#define UNWIND_PLACE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_memory.h>

#include "base/vec.h"

/* The free parts of a range of memory, as numbers: first fit, neighbours merged. */

struct extent {
	uint64_t start, size;
};

struct extents {
	VEC(struct extent) free; /* ascending */
};

/* 0 or -ENOMEM: the part is lost. */
int extents__free(struct extents *e, uint64_t start, uint64_t size);
/* *start: where `size` is free. 0 or -ENOSPC. */
int extents__take(struct extents *e, uint64_t size, uint64_t *start);
void extents__fini(struct extents *e);

struct place_store;
struct table_store_options;

/* One executable mapping. `table` is UNWIND_NO_TABLE or a number of table_store__take_number(). */
struct unwind_placement {
	uint64_t start, end, bias;
	uint32_t table;
};

#define PLACE_IDLE_NS 2000000000ull /* a process that was not sampled for so long is idle */

struct place_store_stats {
	uint64_t processes;    /* with places now */
	uint64_t idle_evicted; /* processes evicted because they were idle */
	uint64_t shared;       /* processes evicted because their user had the most */
	uint64_t refused;      /* updates without room: their user had its share */
	uint64_t too_many;     /* updates with more than UNWIND_PLACES_MAX places */
	uint64_t waited_ns;    /* for programs that may have been reading evicted places */
};

/*
 * `uses`: UNWIND_TABLES counts of places, by table number. `uses` and `stats` outlive the store.
 * NULL: no memory.
 */
struct place_store *place_store__new(const struct table_store_options *options, uint32_t *uses,
				     struct place_store_stats *stats);
void place_store__free(struct place_store *s);
/* The result of table_store_options.user_of. */
uint32_t place_store__user(const struct place_store *s, uint32_t tgid);

/* Sets the current time, CLOCK_MONOTONIC ns. */
void place_store__advance(struct place_store *s, uint64_t now);
/*
 * Publishes the mappings of a process at `as_of` (CLOCK_MONOTONIC ns), ascending and disjoint.
 * After a later execve the kernel side ignores them. 0; -E2BIG: more than UNWIND_PLACES_MAX;
 * -ENOSPC: no room; -ENOMEM. On failure the earlier publication is withdrawn, so that the kernel
 * side sends copies.
 */
int place_store__publish(struct place_store *s, uint32_t tgid,
			 const struct unwind_placement *placements, size_t count, uint64_t as_of);
void place_store__withdraw(struct place_store *s, uint32_t tgid);
/* Counts a process with too many mappings, and withdraws it. */
void place_store__refuse(struct place_store *s, uint32_t tgid);
/* Notes that the process was sampled: its places are in use. */
void place_store__sampled(struct place_store *s, uint32_t tgid);
/* Evicts a process in favour of this one, for another reason than room. False: none may be. */
bool place_store__evict(struct place_store *s, uint32_t tgid);

#endif
