/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes unwind tables and mappings of processes where the kernel reads them (sysprof/unwind_table.h).
 *
 * Data that the kernel may be reading is never changed: a table or list of places is written first and
 * linked then. Unlinked memory is reused only after every CPU has left the program run that may have read
 * it. So readers need no locks, and writing needs no system call.
 */
#ifndef UNWIND_TABLE_STORE_H
#define UNWIND_TABLE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/unwind_memory.h>

#include "unwind/place_store.h"
#include "unwind/unwind_table.h"

struct table_store;

struct table_store_options {
	const struct unwind_memory *memory; /* copied; what it points to must outlive the store */
	/*
	 * The user of a process: users share the room. NULL: all are one user's. Called for processes that request
	 * tables, and, if places are scarce, for those that have some.
	 */
	uint32_t (*user_of)(void *context, uint32_t tgid);
	void *context;
	struct outside_books *books; /* where it is counted what finds no room; or NULL */
	bool old_first; /* tables that were not used for 30 s give way before memory is added */
};

/* NULL: no memory. */
struct table_store *table_store__new(const struct table_store_options *options);
void table_store__free(struct table_store *s);
/* Of the processes that use its tables. */
struct place_store *table_store__places(const struct table_store *s);

/*
 * The number of one file's table. Places can use it before the table exists; until then stacks end there. If
 * all numbers are in use, those of files that no process has mapped are reused: then table_store__owns()
 * is false for the old holder. `tgid` is the process that needs it: where all numbers are those of mapped files,
 * others give way to it as for places. 0, -ENOSPC, -ENOMEM.
 */
struct table_number {
	uint32_t number;
	uint32_t holder; /* differs from that of every holder before */
};
int table_store__take_number(struct table_store *s, uint32_t tgid, struct table_number *number);
bool table_store__owns(const struct table_store *s, const struct table_number *number);

/*
 * Loads a table, which the store owns then; a table without buckets means that the file describes no code. `tgid` is
 * the requesting process: its room is part of its user's share. -ENOSPC: refused, there is no room, all other tables
 * have just been used, and no other user has more of them.
 */
int table_store__put(struct table_store *s, uint32_t number, uint32_t tgid,
		     const struct unwind_table_image *image);

/* The table requested by this process never comes: building it would exceed a limit. */
void table_store__leave(struct table_store *s, uint32_t tgid);

/* The table, and its segment; NULL: it is not loaded. */
const struct unwind_table *table_store__get(const struct table_store *s, uint32_t number,
					    const void **segment);

/* Sets the current time (CLOCK_MONOTONIC ns), by which the last use of tables is ordered. */
void table_store__advance(struct table_store *s, uint64_t now);

struct table_store_stats {
	uint64_t tables;	    /* currently loaded */
	uint64_t rows, table_bytes; /* of them */
	uint64_t segment_bytes;	    /* allocated for them */
	uint64_t evicted;	    /* tables, to make room for others */
	uint64_t refused;	    /* tables, because there was no room */
	struct place_store_stats places;
};
void table_store__stats(const struct table_store *s, struct table_store_stats *stats);

#endif
