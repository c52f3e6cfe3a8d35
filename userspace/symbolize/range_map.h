/* SPDX-License-Identifier: BSD-2-Clause */
/* Address ranges that may overlap in any way -> the one that counts at an address. */
#ifndef SYMBOLIZE_RANGE_MAP_H
#define SYMBOLIZE_RANGE_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct range_map {
	VEC(struct range) ranges;
	VEC(struct range_segment) segments;
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

bool range_map__find(const struct range_map *map, uint64_t address, uint32_t *value);

#endif
