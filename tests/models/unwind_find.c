/* SPDX-License-Identifier: BSD-2-Clause */
#include "models/unwind_find.h"

const struct unwind_rule *unwind_table__find(const void *segment, const struct unwind_table *t,
					     uint64_t address)
{
	static const struct unwind_rule NONE = {};
	const unsigned char *bytes = segment;
	uint64_t offset = address - t->base, bucket = offset >> UNWIND_BUCKET_BITS;
	const uint32_t *index = (const void *)(bytes + t->index);
	const unsigned char *addresses = bytes + t->addresses, *numbers = bytes + t->numbers;
	unsigned int low = offset & (UNWIND_BUCKET_SIZE - 1);
	uint32_t row, number;

	if (address < t->base || bucket >= t->buckets)
		return &NONE;
	for (row = index[bucket]; row < index[bucket + 1] && addresses[row] <= low; row++)
		;
	row--;
	number = t->number_size == 1 ? numbers[row]
				     : ((const uint16_t *)(const void *)numbers)[row];
	return (const struct unwind_rule *)(const void *)(bytes + t->dictionary) + number;
}
