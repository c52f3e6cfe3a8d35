/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A growing array. `VEC(int) v = {}; vec_push(&v, 3); v.data[0]; v.count; vec_free(&v);`
 *
 * vec_push, vec_append and vec_reserve are 0 or -ENOMEM; on failure the vector is unchanged.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *data;                                                                        \
		size_t count, capacity;                                                            \
	}

/* Make room for at least `want` elements of `size` bytes: 0, -ENOMEM (overflow too). */
int vec_grow(void **data, size_t *capacity, size_t want, size_t size);

#define vec_reserve(v, want)                                                                       \
	((want) <= (v)->capacity                                                                   \
		 ? 0                                                                               \
		 : vec_grow((void **)&(v)->data, &(v)->capacity, (want), sizeof(*(v)->data)))

#define vec_push(v, ...)                                                                           \
	({                                                                                         \
		int vec_err_ = vec_reserve((v), (v)->count + 1);                                   \
		if (!vec_err_)                                                                     \
			(v)->data[(v)->count++] = (__VA_ARGS__);                                   \
		vec_err_;                                                                          \
	})

/* Add `n` elements that lie one behind the other at `from`. */
#define vec_append(v, from, n)                                                                     \
	({                                                                                         \
		size_t vec_n_ = (n);                                                               \
		int vec_err_ = vec_reserve((v), (v)->count + vec_n_);                              \
		if (!vec_err_ && vec_n_) {                                                         \
			memcpy((v)->data + (v)->count, (from), vec_n_ * sizeof(*(v)->data));       \
			(v)->count += vec_n_;                                                      \
		}                                                                                  \
		vec_err_;                                                                          \
	})

/* The element with this number; missing ones are added as zeros. NULL: no memory. */
#define vec_at(v, number)                                                                          \
	({                                                                                         \
		size_t vec_n_ = (number), vec_old_ = (v)->count;                                   \
		int vec_err_ = vec_n_ < vec_old_ ? 0 : vec_reserve((v), vec_n_ + 1);               \
		if (!vec_err_ && vec_n_ >= vec_old_) {                                             \
			(v)->count = vec_n_ + 1;                                                   \
			memset((v)->data + vec_old_, 0,                                            \
			       ((v)->count - vec_old_) * sizeof(*(v)->data));                      \
		}                                                                                  \
		vec_err_ ? NULL : (v)->data + vec_n_;                                              \
	})

/* Drop the first `n` elements. */
#define vec_drop(v, n)                                                                             \
	do {                                                                                       \
		size_t vec_n_ = (n);                                                               \
		(v)->count -= vec_n_;                                                              \
		if (vec_n_ && (v)->count)                                                          \
			memmove((v)->data, (v)->data + vec_n_, (v)->count * sizeof(*(v)->data));   \
	} while (0)

/* qsort() and qsort_r() of all elements, which may be none. */
#define vec_sort(v, compare)                                                                       \
	do {                                                                                       \
		if ((v)->count)                                                                    \
			qsort((v)->data, (v)->count, sizeof(*(v)->data), (compare));               \
	} while (0)

#define vec_sort_r(v, compare, context)                                                            \
	do {                                                                                       \
		if ((v)->count)                                                                    \
			qsort_r((v)->data, (v)->count, sizeof(*(v)->data), (compare), (context));  \
	} while (0)

#define vec_free(v)                                                                                \
	do {                                                                                       \
		free((v)->data);                                                                   \
		(v)->data = NULL;                                                                  \
		(v)->count = (v)->capacity = 0;                                                    \
	} while (0)

/* With what its elements own: `item` points to each, for the expression that frees it. */
#define vec_free_with(v, item, ...)                                                                \
	do {                                                                                       \
		for (size_t vec_i_ = 0; vec_i_ < (v)->count; vec_i_++) {                           \
			__typeof__((v)->data) item = &(v)->data[vec_i_];                           \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		vec_free(v);                                                                       \
	} while (0)

#endif
