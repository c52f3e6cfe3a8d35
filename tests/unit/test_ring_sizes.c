/* SPDX-License-Identifier: BSD-2-Clause */
/* The sizes of rings, for large machines. */
#include "unit.h"
#include "live/capture/tick_rings.h"

#define MB     (1024u * 1024)
#define KB     1024u
#define RECORD 3192 /* 127 kernel and 256 user frames */

static struct ring_sizes sizes_of(size_t cpus, size_t sampled, unsigned int hz, size_t record,
				  size_t bytes)
{
	const struct ring_needs needs = {
		.hz = hz, .record = record, .cpus = cpus, .sampled = sampled, .bytes = bytes};

	return ring_sizes_for(&needs);
}

static void expect(size_t cpus, unsigned int hz, size_t sample, size_t sideband)
{
	struct ring_sizes sizes = sizes_of(cpus, cpus, hz, RECORD, 0);

	if (sizes.sample != sample || sizes.sideband != sideband)
		print_error("%zu CPUs, %u Hz: %zu and %zu KB\n", cpus, hz, sizes.sample / KB,
			    sizes.sideband / KB);
	assert_int_equal(sizes.sample, sample);
	assert_int_equal(sizes.sideband, sideband);
}

TEST(by_the_number_of_cpus)
{
	expect(1, 999, 8 * MB, 512 * KB);
	expect(2, 999, 8 * MB, 512 * KB);
	expect(8, 999, 4 * MB, 512 * KB);
	expect(64, 999, 512 * KB, 256 * KB);
	expect(256, 999, 128 * KB, 64 * KB);
	expect(1024, 999, 16 * KB, 16 * KB);
	/* no more than is of use at that rate */
	expect(1, 99, 1 * MB, 512 * KB);
	expect(2, 99, 1 * MB, 512 * KB);
	expect(8, 99, 1 * MB, 512 * KB);
	expect(64, 99, 512 * KB, 256 * KB);
	expect(1, 9, 256 * KB, 512 * KB);
	expect(1, 20000, 8 * MB, 512 * KB);
	expect(1024, 20000, 16 * KB, 16 * KB);
}

static void is_power(size_t size)
{
	assert_true(size >= 4096);
	assert_int_equal(size & (size - 1), 0);
}

TEST(within_the_limit)
{
	static const size_t cpus[] = {1, 2, 3, 8, 60, 64, 96, 256, 768, 1024};
	static const unsigned int rates[] = {1, 99, 999, 4000, 20000, UINT32_MAX};
	static const size_t limits[] = {8 * MB, 64 * MB, 1024 * MB};

	for (size_t c = 0; c < sizeof(cpus) / sizeof(*cpus); c++)
		for (size_t r = 0; r < sizeof(rates) / sizeof(*rates); r++)
			for (size_t l = 0; l < sizeof(limits) / sizeof(*limits); l++)
				for (size_t sampled = 0; sampled <= cpus[c];
				     sampled = 2 * sampled + 1) {
					struct ring_sizes s = sizes_of(cpus[c], sampled, rates[r],
								       RECORD, limits[l]);
					uint64_t sum = cpus[c] * (uint64_t)(s.sideband + s.other) +
						       sampled * tick_ring_bytes(s.sample);

					is_power(s.sample);
					is_power(s.sideband);
					is_power(s.other);
					assert_true(s.sample >= 2 * RECORD);
					if (s.sample > s.sample_least && s.sideband > 16 * KB)
						assert_true(sum <= limits[l]);
					if (limits[l] == 64 * MB)
						assert_true(sum <= limits[l]);
				}
}

/* What comes in until the next reading has room, four times over, for as many CPUs as there are in one machine. */
TEST(room_until_the_next_reading)
{
	for (size_t cpus = 1; cpus <= 256; cpus++)
		assert_true(sizes_of(cpus, cpus, 99, RECORD, 0).sample >= 4 * 99 / 10 * RECORD);
	for (size_t cpus = 1; cpus <= 32; cpus++)
		assert_true(sizes_of(cpus, cpus, 999, RECORD, 0).sample >= 2 * 999 / 10 * RECORD);
}

TEST(the_deepest_stacks)
{
	struct ring_sizes sizes = sizes_of(1024, 1024, 99, 9352, 0); /* --max-depth 1024 */

	assert_int_equal(sizes.sample, 32 * KB);
	sizes = sizes_of(8192, 8192, 99, 9352, 0);
	assert_int_equal(sizes.sample, 32 * KB);
	assert_int_equal(sizes.sideband, 16 * KB);
}
