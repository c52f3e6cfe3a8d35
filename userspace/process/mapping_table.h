/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executable mappings of one process: sorted, without overlaps.
 *
 * A fork shares the table and the first change after it makes a copy, so the functions that change
 * one take the address of the owner's pointer. NULL is an empty table.
 */
#ifndef PROCESS_MAPPING_TABLE_H
#define PROCESS_MAPPING_TABLE_H

#include <stdbool.h>

#include <sysprof/mapping.h>

struct mapping_table;

struct mapping_table *mapping_table__ref(struct mapping_table *table); /* also returns it */
void mapping_table__unref(struct mapping_table *table);

size_t mapping_table__count(const struct mapping_table *table);
const struct mapping *mapping_table__get(const struct mapping_table *table, size_t i);
/* All of them; valid until the table changes. */
struct mappings mapping_table__all(const struct mapping_table *table);
/* The mapping of an address, or NULL; valid until the table changes. */
const struct mapping *mapping_table__find(const struct mapping_table *table, uint64_t address);

enum mapping_change {
	MAPPING_ADDED = 0, /* overlapping mappings were removed or cut */
	MAPPING_KNOWN = 1, /* it was known; nothing was allocated */
};

/*
 * A mapping appeared, or (from_read) was found in /proc; mapping->read is ignored.
 * enum mapping_change; -EINVAL: empty, or it wraps; -E2BIG: too many; -ENOMEM.
 */
int mapping_table__add(struct mapping_table **table, const struct mapping *mapping, bool from_read);

/*
 * Ends a reading of /proc, which began with the first from_read mapping: mappings from before it that were
 * not reported again are removed. Returns the number of mappings removed, or -ENOMEM.
 */
int mapping_table__end_read(struct mapping_table **table);

#endif
