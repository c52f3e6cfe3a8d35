/* SPDX-License-Identifier: BSD-2-Clause */
/* range_map against a plain search through all ranges. */
#include "unit.h"
#include "base/cleanup.h"
#include "symbolize/dwarf_private.h"
#include "symbolize/range_map.h"

#define ROUNDS	  300
#define RANGES	  40
#define ADDRESSES 120

struct plain {
	uint64_t start, end, rank;
};

static bool plain_find(const struct plain *ranges, size_t count, uint64_t address, uint32_t *value)
{
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		if (address < ranges[i].start || address >= ranges[i].end)
			continue;
		if (!found || ranges[i].rank >= ranges[*value].rank)
			*value = i;
		found = true;
	}
	return found;
}

TEST(random_ranges_agree_with_a_linear_search)
{
	srandom(7);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct plain ranges[RANGES];
		_cleanup_(range_map__fini) struct range_map map = {};
		size_t count = 1 + random() % RANGES;

		for (size_t i = 0; i < count; i++) {
			ranges[i] = (struct plain){random() % ADDRESSES, random() % ADDRESSES,
						   round % 3 ? (uint64_t)random() % 4 : i};
			assert_int_equal(range_map__add(&map, ranges[i].start, ranges[i].end, i,
							ranges[i].rank),
					 0);
		}
		assert_int_equal(range_map__build(&map), 0);
		for (uint64_t address = 0; address <= ADDRESSES; address++) {
			uint32_t expected = 0, value = 0, later = 0;
			bool found = plain_find(ranges, count, address, &expected);
			uint64_t until = UINT64_MAX;

			assert_int_equal(range_map__find(&map, address, &value, &until), found);
			assert_true(until > address);
			if (found)
				assert_int_equal(value, expected);
			for (uint64_t at = address; at < until && at <= ADDRESSES; at++) {
				assert_int_equal(plain_find(ranges, count, at, &later), found);
				assert_true(!found || later == expected);
			}
			/* in another order */
			until = UINT64_MAX;
			later = random() % ADDRESSES;
			found = plain_find(ranges, count, later, &expected);
			assert_int_equal(range_map__find(&map, later, &value, &until), found);
			assert_true(until > later && (!found || value == expected));
		}
	}
}

TEST(ranges_exclude_their_end_and_empty_ones_match_nothing)
{
	uint64_t until = UINT64_MAX;
	_cleanup_(range_map__fini) struct range_map map = {};
	uint32_t value = 0;

	assert_false(range_map__find(&map, 0, &value, &until));
	assert_int_equal(range_map__build(&map), 0);
	assert_int_equal(range_map__add(&map, 5, 5, 1, 0), 0);
	assert_int_equal(range_map__add(&map, 6, 5, 1, 0), 0);
	assert_int_equal(range_map__add(&map, 0, UINT64_MAX, 2, 0), 0);
	assert_int_equal(range_map__add(&map, UINT64_MAX - 1, UINT64_MAX, 3, 1), 0);
	assert_int_equal(range_map__build(&map), 0);
	assert_true(range_map__find(&map, 5, &value, &until));
	assert_int_equal(value, 2);
	assert_true(range_map__find(&map, UINT64_MAX - 1, &value, &until));
	assert_int_equal(value, 3);
	assert_false(range_map__find(&map, UINT64_MAX, &value, &until));
	range_map__clear(&map);
	assert_int_equal(range_map__build(&map), 0);
	assert_false(range_map__find(&map, 5, &value, &until));
}

TEST(the_innermost_of_many_nested_ranges_is_found)
{
	uint64_t until = UINT64_MAX;
	const uint32_t count = 200000;
	_cleanup_(range_map__fini) struct range_map map = {};
	uint32_t value = 0;

	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(range_map__add(&map, i, 2 * count - i, i, i), 0);
	assert_int_equal(range_map__build(&map), 0);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(range_map__find(&map, i, &value, &until));
		assert_int_equal(value, i);
		assert_true(range_map__find(&map, 2 * count - i - 1, &value, &until));
		assert_int_equal(value, i);
	}
}
