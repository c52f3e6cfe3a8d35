/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WORLD_MAPPING_TABLE_H
#define WORLD_MAPPING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/mapping.h>

struct mapping_table;

/*
 * The executable mappings of one process: sorted, without overlaps. NULL is an empty table.
 *
 * A fork shares the table; the first change after it makes a copy, so functions that change a table
 * take the address of the owner's pointer. Unless stated otherwise, a function takes time
 * logarithmic in the number of mappings.
 */

struct mapping_table *mapping_table__ref(struct mapping_table *table); /* also returns it */
/* The same for a forked child, which the end of a reading of its parent does not change. NULL: empty, or out of memory. */
struct mapping_table *mapping_table__fork(struct mapping_table *table);
void mapping_table__unref(struct mapping_table *table);

size_t mapping_table__count(const struct mapping_table *table);
/* All mappings as a list, valid until the table changes; empty if there is no memory for it. */
struct mappings mapping_table__all(struct mapping_table *table);
/* For a few look-ups: makes no list of a changed table. Valid until the table changes. */
struct mappings mapping_table__view(struct mapping_table *table);
/* Visits all mappings in order until `visit` returns nonzero, and returns that. */
typedef int (*mapping_visit_fn)(void *context, const struct mapping *mapping);
int mapping_table__visit(const struct mapping_table *table, mapping_visit_fn visit, void *context);
/* The mapping of an address, or NULL; valid until the table changes. */
const struct mapping *mapping_table__find(const struct mapping_table *table, uint64_t address);

enum mapping_change {
	MAPPING_ADDED = 0, /* overlapping mappings were removed or cut */
	MAPPING_KNOWN = 1, /* it was known; nothing was allocated */
};

/*
 * Adds a mapping; from_read: found in /proc. mapping->read is ignored. Returns enum mapping_change;
 * -EINVAL: empty, or it wraps; -E2BIG: too many; -ENOMEM: the table is of no use any more.
 */
int mapping_table__add(struct mapping_table **table, const struct mapping *mapping, bool from_read);

/*
 * Ends a reading of /proc, which began with the first from_read mapping: removes older mappings
 * that it did not report. Returns their number, or -ENOMEM.
 */
int mapping_table__end_read(struct mapping_table **table);

#endif
