/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary search. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stddef.h>

/*
 * How many of the `count` elements at `array`, from the first on, `condition` holds for, if it holds
 * for none behind the first that it does not hold for. `element` is the name by which `condition`
 * calls a pointer to the one it is asked about:
 *
 *   size_t i = partition_point(maps, count, m, m->end <= address);   the first that ends above it
 */
#define partition_point(array, count, element, condition)                                          \
	({                                                                                         \
		size_t low_ = 0, high_ = (count);                                                  \
		while (low_ < high_) {                                                             \
			size_t middle_ = low_ + (high_ - low_) / 2;                                \
			const __typeof__((array)[0]) *element = &(array)[middle_];                 \
			if (condition)                                                             \
				low_ = middle_ + 1;                                                \
			else                                                                       \
				high_ = middle_;                                                   \
		}                                                                                  \
		low_;                                                                              \
	})

#endif
