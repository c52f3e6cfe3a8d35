/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/radix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS	   (1u << DIGIT_BITS)

static void sort_by_digit(const struct radix_item *items, size_t count, unsigned int shift,
			  struct radix_item *sorted)
{
	size_t places[DIGITS] = {}, sum = 0;

	for (size_t i = 0; i < count; i++)
		places[items[i].key >> shift & (DIGITS - 1)]++;
	for (size_t i = 0; i < DIGITS; i++) {
		size_t of_digit = places[i];

		places[i] = sum;
		sum += of_digit;
	}
	for (size_t i = 0; i < count; i++)
		sorted[places[items[i].key >> shift & (DIGITS - 1)]++] = items[i];
}

int radix_sort(struct radix_item *items, size_t count)
{
	struct radix_item *other = malloc((count + 1) * sizeof(*other));
	uint64_t used = 0;

	if (!other)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		used |= items[i].key;
	for (unsigned int shift = 0; shift < 64 && used >> shift; shift += DIGIT_BITS) {
		sort_by_digit(items, count, shift, other);
		memcpy(items, other, count * sizeof(*items));
	}
	free(other);
	return 0;
}
