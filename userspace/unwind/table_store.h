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

#include "elf/elf_file.h"

struct table_store;

/* NULL: no memory. `memory` is copied; what it points to must outlive the store. */
struct table_store *table_store__new(const struct unwind_memory *memory);
void table_store__free(struct table_store *s);

/*
 * Build the table of a file. *number is to be used in places; -ENODATA and the other errors of
 * unwind_table__build(); -ENOSPC: there is no room, and what could make room is in use.
 */
int table_store__add(struct table_store *s, struct elf_file *file, uint32_t *number);

/* A table that was added, and the segment that it is in. */
const struct unwind_table *table_store__get(const struct table_store *s, uint32_t number,
					    const void **segment);

/* One executable mapping. `table` is UNWIND_NO_TABLE or a number of table_store__add(). */
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
	uint64_t build_ns;	    /* spent on building */
	uint64_t failed;	    /* files without a table, for want of room */
	uint64_t unpublished;	    /* processes, for want of room */
};
void table_store__stats(const struct table_store *s, struct table_store_stats *stats);

#endif
