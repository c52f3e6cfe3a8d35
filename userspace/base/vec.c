/* SPDX-License-Identifier: BSD-2-Clause */
/* The one growth step behind the macros of vec.h. */
#include "base/vec.h"

#include <errno.h>
#include <stdint.h>

#define FIRST_CAPACITY 8

int vec_grow(void **data, size_t *capacity, size_t want, size_t size)
{
	size_t next = *capacity ? *capacity : FIRST_CAPACITY, bytes;
	void *grown;

	if (want <= *capacity)
		return 0;
	if (__builtin_add_overflow(next, next / 2, &next) || next < want)
		next = want;
	if (__builtin_mul_overflow(next, size, &bytes) || bytes > PTRDIFF_MAX)
		return -ENOMEM;
	grown = realloc(*data, bytes);
	if (!grown)
		return -ENOMEM;
	*data = grown;
	*capacity = next;
	return 0;
}
