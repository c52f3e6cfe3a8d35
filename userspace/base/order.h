/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order and search. One line defines a function for qsort(), by the first field that differs:
 *
 *	DEFINE_ORDER(compare_ticks, struct tick, ASCENDING(node) ?: ASCENDING(line));
 *
 * The expression may be any of `x` and `y`, which point to the elements.
 */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

#include <stddef.h>

#define order_of(a, b)	  (((a) > (b)) - ((a) < (b)))
#define ASCENDING(field)  order_of(x->field, y->field)
#define DESCENDING(field) order_of(y->field, x->field)

#define DEFINE_ORDER(NAME, TYPE, ORDER)                                                            \
	static int NAME(const void *a, const void *b)                                              \
	{                                                                                          \
		TYPE const *x = a;                                                                 \
		TYPE const *y = b;                                                                 \
                                                                                                   \
		return ORDER;                                                                      \
	}                                                                                          \
	struct NAME

/* The first element of an array that fulfils `condition`, which calls the pointer to it `element`. */
#define find_first(array, count, element, condition)                                               \
	({                                                                                         \
		__typeof__((array)[0]) *found_ = NULL;                                             \
		const size_t count_ = (count);                                                     \
                                                                                                   \
		for (size_t i_ = 0; i_ < count_ && !found_; i_++) {                                \
			__typeof__((array)[0]) *const element = &(array)[i_];                      \
			found_ = (condition) ? element : NULL;                                     \
		}                                                                                  \
		found_;                                                                            \
	})

#define any_of(array, count, element, condition)                                                   \
	(find_first(array, count, element, condition) != NULL)

/*
 * How many numbers from 0 on, below `count`, fulfil `condition`, which calls the number `index`. No
 * number after the first that does not may fulfil it. For lists that are no arrays.
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

/* The same; searches from `last`, the previous result, because the next is often close. */
#define ascending_point(count, last, index, condition)                                             \
	({                                                                                         \
		const size_t count_ = (count);                                                     \
		size_t next_ = (last), tries_ = 0;                                                 \
		bool close_ = next_ <= count_;                                                     \
                                                                                                   \
		if (close_ && next_) {                                                             \
			const size_t index = next_ - 1;                                            \
			close_ = (condition);                                                      \
		}                                                                                  \
		while (close_ && next_ < count_) {                                                 \
			const size_t index = next_;                                                \
			if (!(condition))                                                          \
				break;                                                             \
			next_++;                                                                   \
			close_ = ++tries_ < 8;                                                     \
		}                                                                                  \
		close_ ? next_ : partition_index(count_, index, condition);                        \
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
