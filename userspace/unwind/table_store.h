/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes unwind tables and mappings of processes where the kernel reads them
 * (sysprof/unwind_table.h).
 *
 * Data that the kernel may be reading is never changed: a table or a list of places is written
 * first, then linked. Unlinked memory is reused only after every CPU has left the program run that
 * may have read it. So readers need no locks, and writing needs no system call.
 */
#ifndef UNWIND_TABLE_STORE_H
#define UNWIND_TABLE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/unwind_memory.h>

#include "tenants/outside_books.h"
#include "unwind/place_store.h"
#include "unwind/unwind_table.h"

struct table_store;

struct table_store_options {
	const struct unwind_memory *memory; /* copied; what it points to must outlive the store */
	/*
	 * The user of a process; users share the room. NULL: all are one user's. Called for
	 * processes that request tables, and, if places are scarce, for those that have some.
	 */
	uint32_t (*user_of)(void *context, uint32_t tgid);
	void *context;
	struct outside_books *books; /* counts what finds no room; or NULL */
	bool old_first;		     /* tables unused for 30 s are evicted before memory is added */
};

/* NULL: no memory. */
struct table_store *table_store__new(const struct table_store_options *options);
void table_store__free(struct table_store *s);
/* The places of the processes that use its tables. */
struct place_store *table_store__places(const struct table_store *s);

/*
 * The number of one file's table. Places can use it before the table exists; until then stacks end
 * there. If all numbers are in use, those of files that no process maps are reused;
 * table_store__owns() is then false for the old holder. If all files are mapped, other processes
 * give way to `tgid`, which needs the number, as for places. 0, -ENOSPC, -ENOMEM.
 */
struct table_number {
	uint32_t number;
	uint32_t holder; /* unique: differs from that of every earlier holder */
};
int table_store__take_number(struct table_store *s, uint32_t tgid, struct table_number *number);
bool table_store__owns(const struct table_store *s, const struct table_number *number);

/*
 * Loads a copy of a table. Without buckets: the file describes no code. Its room is charged to the
 * user of `tgid`, the requesting process. -ENOSPC: no room, because all other tables were used
 * recently and no other user has more of them.
 */
int table_store__put(struct table_store *s, uint32_t number, uint32_t tgid,
		     const struct unwind_table_image *image);

/* Counts what a limit leaves out of a table for this process, or the whole table. */
void table_store__leave(struct table_store *s, uint32_t tgid, enum outside_thing thing,
			uint64_t count);

/* The table and its segment; NULL: not loaded. */
const struct unwind_table *table_store__get(const struct table_store *s, uint32_t number,
					    const void **segment);

/* Sets the current time (CLOCK_MONOTONIC ns), by which the last use of tables is ordered. */
void table_store__advance(struct table_store *s, uint64_t now);

struct table_store_stats {
	uint64_t tables;	    /* currently loaded */
	uint64_t rows, table_bytes; /* of them */
	uint64_t segment_bytes;	    /* allocated for them */
	uint64_t evicted;	    /* tables, in favour of others */
	uint64_t refused;	    /* tables, for lack of room */
	struct place_store_stats places;
};
void table_store__stats(const struct table_store *s, struct table_store_stats *stats);

#endif
