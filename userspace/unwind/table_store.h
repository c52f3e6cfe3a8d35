/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables and the mappings of processes where the kernel reads them (sysprof/unwind_table.h).
 *
 * What the kernel may be reading is never changed: a table or a list of places is written first and
 * then pointed to, and what nothing points to any more is used again only after every CPU has left
 * the program that may have read it. So it costs nothing to read, and no system call to write.
 */
#ifndef UNWIND_TABLE_STORE_H
#define UNWIND_TABLE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_memory.h>

#include "unwind/unwind_table.h"

struct table_store;

/* NULL: no memory. `memory` is copied; what it points to must outlive the store. */
struct table_store *table_store__new(const struct unwind_memory *memory);
void table_store__free(struct table_store *s);

/*
 * The number of one file's table, in whose places it is used before there is a table: stacks end
 * there until then. Numbers of files that no process has mapped are given to others when all are
 * in use; this one is another file's once table_store__owns() says no. 0, -ENOSPC, -ENOMEM.
 */
struct table_number {
	uint32_t number;
	uint32_t holder; /* differs from that of every holder before */
};
int table_store__take_number(struct table_store *s, struct table_number *number);
bool table_store__owns(const struct table_store *s, const struct table_number *number);

/*
 * Put a table there, which becomes the store's; one without buckets says that there is nothing to
 * know of the file. -ENOSPC: there is no room, and all that could be put out has just been used.
 */
int table_store__put(struct table_store *s, uint32_t number,
		     const struct unwind_table_image *image);

/* The table, and the segment that it is in; NULL: it is not here. */
const struct unwind_table *table_store__get(const struct table_store *s, uint32_t number,
					    const void **segment);

/* Time passes (CLOCK_MONOTONIC ns): what is used from now on was used later than what was before. */
void table_store__advance(struct table_store *s, uint64_t now);

/* One executable mapping. `table` is UNWIND_NO_TABLE or a number of table_store__take_number(). */
struct unwind_placement {
	uint64_t start, end, bias;
	uint32_t table;
};

/*
 * The mappings of a process, ascending and without overlap, as they were at `as_of`
 * (CLOCK_MONOTONIC ns): if it execs later, they are ignored. More than UNWIND_PLACES_MAX are cut. 0,
 * -ENOSPC, -ENOMEM.
 */
int table_store__publish(struct table_store *s, uint32_t tgid,
			 const struct unwind_placement *placements, size_t count, uint64_t as_of);
void table_store__withdraw(struct table_store *s, uint32_t tgid);

struct table_store_stats {
	uint64_t tables, processes; /* there are now */
	uint64_t rows, table_bytes; /* of them */
	uint64_t segment_bytes;	    /* that were made for them */
	uint64_t evicted;	    /* tables, to make room for others */
	uint64_t refused;	    /* for want of room */
	uint64_t unpublished;	    /* processes, for want of room */
};
void table_store__stats(const struct table_store *s, struct table_store_stats *stats);

#endif
