/* SPDX-License-Identifier: BSD-2-Clause */
/* Binary search. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stddef.h>

/*
 * The count of the numbers from 0 on, below `count`, for which `condition` holds, if it holds for none after the
 * first for which it does not. `condition` calls the number `index`. For lists that are no arrays.
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
 * The same of the elements of an array. `condition` calls the pointer to the element `element`:
 *
 *   size_t i = partition_point(maps, count, m, m->end <= address);   the first that ends above it
 */
#define partition_point(array, count, element, condition)                                          \
	partition_index(count, middle_, ({                                                         \
				const __typeof__((array)[0]) *element = &(array)[middle_];         \
				condition;                                                         \
			}))

#endif
