/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executable mappings of one process: sorted, without overlaps.
 *
 * A fork shares the table and the first change after it makes another, so the functions that change one take the
 * address of the owner's pointer. NULL is an empty table. Without another statement a function takes time in the
 * order of the logarithm of the number of mappings.
 */
#ifndef PROCESS_MAPPING_TABLE_H
#define PROCESS_MAPPING_TABLE_H

#include <stdbool.h>

#include <sysprof/mapping.h>

struct mapping_table;

struct mapping_table *mapping_table__ref(struct mapping_table *table); /* also returns it */
void mapping_table__unref(struct mapping_table *table);

size_t mapping_table__count(const struct mapping_table *table);
/* All of them as a list, which the table keeps until it changes; none if there is no memory for it. */
struct mappings mapping_table__all(struct mapping_table *table);
/*
 * The same to look up a few addresses: no list is made of a table that has changed. Valid until the table changes.
 */
struct mappings mapping_table__view(struct mapping_table *table);
/* Visits all of them in their order until `visit` returns something else than 0, and returns that. */
typedef int (*mapping_visit_fn)(void *context, const struct mapping *mapping);
int mapping_table__visit(const struct mapping_table *table, mapping_visit_fn visit, void *context);
/* The mapping of an address, or NULL; valid until the table changes. */
const struct mapping *mapping_table__find(const struct mapping_table *table, uint64_t address);

enum mapping_change {
	MAPPING_ADDED = 0, /* overlapping mappings were removed or cut */
	MAPPING_KNOWN = 1, /* it was known; nothing was allocated */
};

/*
 * A mapping appeared, or (from_read) was found in /proc; mapping->read is ignored.
 * enum mapping_change; -EINVAL: empty, or it wraps; -E2BIG: too many; -ENOMEM, after which the table is of no use.
 */
int mapping_table__add(struct mapping_table **table, const struct mapping *mapping, bool from_read);

/*
 * Ends a reading of /proc, which began with the first from_read mapping: mappings from before it that were
 * not reported again are removed. Returns the number of mappings removed, or -ENOMEM.
 */
int mapping_table__end_read(struct mapping_table **table);

#endif
