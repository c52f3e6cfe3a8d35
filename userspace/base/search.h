/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary search. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stddef.h>

/*
 * How many of the numbers below `count`, from 0 on, `condition` holds for, if it holds for none
 * behind the first that it does not hold for. `index` is the name by which `condition` calls the
 * number it is asked about. For lists that are no arrays.
 */
#define partition_index(count, index, condition)                                                   \
	({                                                                                         \
		size_t low_ = 0, high_ = (count);                                                  \
		while (low_ < high_) {                                                             \
			const size_t index = low_ + (high_ - low_) / 2;                            \
			if (condition)                                                             \
				low_ = index + 1;                                                  \
			else                                                                       \
				high_ = index;                                                     \
		}                                                                                  \
		low_;                                                                              \
	})

/*
 * The same of the elements of an array. `element` is the name by which `condition` calls a pointer
 * to the one it is asked about:
 *
 *   size_t i = partition_point(maps, count, m, m->end <= address);   the first that ends above it
 */
#define partition_point(array, count, element, condition)                                          \
	partition_index(count, middle_, ({                                                         \
				const __typeof__((array)[0]) *element = &(array)[middle_];         \
				condition;                                                         \
			}))

#endif
