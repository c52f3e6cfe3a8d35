/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges of addresses that may overlap, each with a value. */
#ifndef SYMBOLIZE_RANGE_MAP_H
#define SYMBOLIZE_RANGE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct range;
struct range_segment;

struct range_map {
	VEC(struct range) ranges;
	VEC(struct range_segment) segments;
	size_t last; /* those that start at or before the address of the last look-up */
};

void range_map__fini(struct range_map *map);
void range_map__clear(struct range_map *map);

/*
 * [start, end) is `value`'s; an empty or inverted one is left out. Of all that cover an address the
 * highest rank counts, of equal ones the one added last. 0, -ENOMEM.
 */
int range_map__add(struct range_map *map, uint64_t start, uint64_t end, uint32_t value,
		   uint64_t rank);
/* After the last add, before the first find. Costs O(n log n), whatever overlaps. 0, -ENOMEM. */
int range_map__build(struct range_map *map);

/* Ascending addresses are quickest. *until becomes less where the result changes before that. */
bool range_map__find(struct range_map *map, uint64_t address, uint32_t *value, uint64_t *until);

/* Every range with one value, ascending; nonzero stops and is returned. */
typedef int (*range_map_fn)(void *context, uint64_t start, uint64_t end);
int range_map__each(const struct range_map *map, range_map_fn visit, void *context);

#endif
