/* SPDX-License-Identifier: BSD-2-Clause */
/* Small arithmetic: the smaller and the larger of two numbers, their sum and product, multiples. */
#ifndef BASE_MINMAX_H
#define BASE_MINMAX_H

#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* UINT64_MAX on overflow. */
static inline uint64_t saturating_add_u64(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* UINT64_MAX on overflow. */
static inline uint64_t saturating_multiply_u64(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The next multiple of `alignment`, a power of two. Wraps to 0 if that is above 2^64 - 1. */
static inline uint64_t align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

#endif
