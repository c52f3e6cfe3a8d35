/* SPDX-License-Identifier: BSD-2-Clause */
/* Readings of the TSC on both sides of a reading of its counter. */
#include "capture/tsc_counter.h"

#include <errno.h>
#include <unistd.h>

#include "base/clocks.h"

#define TSC_READINGS 16

int tsc_counter_base(int fd, uint64_t *base, uint64_t *error)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TSC_READINGS; i++) {
		uint64_t count, before = read_tsc(), after;

		if (read(fd, &count, sizeof(count)) != sizeof(count))
			return -EIO;
		after = read_tsc();
		if (after - before >= best)
			continue;
		best = after - before;
		*base = before + (after - before) / 2 - count;
	}
	*error = best / 2;
	return 0;
}

uint64_t tsc_per_us(void)
{
	uint64_t start = monotonic_ns(), tsc = read_tsc(), now;

	do
		now = monotonic_ns();
	while (now - start < 1000000);
	return (read_tsc() - tsc) * 1000 / (now - start);
}
