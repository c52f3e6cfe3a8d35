/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_ALIGN_H
#define BASE_ALIGN_H

#include <stdint.h>

/* The next multiple of `alignment`, a power of two. Wraps to 0 if that is above 2^64 - 1. */
static inline uint64_t align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

#endif
