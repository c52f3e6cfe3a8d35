/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of last use. */
#include "unit.h"
#include "base/cleanup.h"
#include "files/lru.h"

#define SECOND 1000000000ull

static struct lru_clock lru_clock;

static void use(struct lru *l, uint32_t place, uint64_t now)
{
	lru_clock.now = now;
	lru__use(l, place);
}

static uint32_t idle(const struct lru *l, uint64_t now, uint64_t idle)
{
	lru_clock = (struct lru_clock){now, idle};
	return lru__idle(l);
}

TEST(released_places_are_reused_before_new_ones)
{
	_cleanup_(lru__fini) struct lru l = {};
	uint32_t place;

	lru__init(&l, &lru_clock, 100);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(lru__take(&l, 0, &place), 0);
		assert_int_equal(place, i);
		use(&l, place, i * SECOND);
	}
	assert_int_equal(l.count, 100);
	lru__release(&l, 7);
	lru__release(&l, 42);
	assert_int_equal(l.count, 98);
	assert_int_equal(lru__take(&l, 0, &place), 0);
	assert_int_equal(place, 42);
	assert_int_equal(lru__take(&l, 0, &place), 0);
	assert_int_equal(place, 7);
	assert_int_equal(lru__take(&l, 0, &place), 0);
	assert_int_equal(place, 100);
}

TEST(the_longest_idle_place_is_found_first)
{
	_cleanup_(lru__fini) struct lru l = {};
	uint32_t place;

	lru__init(&l, &lru_clock, 100);
	assert_int_equal(idle(&l, 100 * SECOND, 0), LRU_NONE);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(lru__take(&l, 0, &place), 0);
		use(&l, place, place * 10 * SECOND);
	}
	assert_int_equal(idle(&l, 40 * SECOND, 10 * SECOND), 0);
	assert_int_equal(idle(&l, 40 * SECOND, 40 * SECOND), LRU_NONE);
	use(&l, 0, 40 * SECOND);
	assert_int_equal(idle(&l, 40 * SECOND, 10 * SECOND), 1);
	assert_int_equal(lru__next_idle(&l, 1), 2);
	assert_int_equal(lru__next_idle(&l, 2), LRU_NONE);
	assert_int_equal(l.newest, 0);
	assert_int_equal(l.places.data[0].older, 4);
	/* what is out of the order is not found */
	lru__remove(&l, 1);
	lru__remove(&l, 1);
	assert_int_equal(idle(&l, 40 * SECOND, 10 * SECOND), 2);
	use(&l, 1, 41 * SECOND);
	assert_int_equal(l.newest, 1);
	/* in the middle and at both ends */
	lru__remove(&l, 3);
	lru__remove(&l, 2);
	lru__release(&l, 1);
	assert_int_equal(l.newest, 0);
	assert_int_equal(idle(&l, 100 * SECOND, 0), 4);
	lru__remove(&l, 4);
	lru__remove(&l, 0);
	assert_int_equal(idle(&l, 100 * SECOND, 0), LRU_NONE);
	assert_int_equal(l.newest, LRU_NONE);
}

TEST(uses_within_the_grain_count_once)
{
	_cleanup_(lru__fini) struct lru l = {};
	uint32_t a, b;

	lru__init(&l, &lru_clock, 100);
	assert_int_equal(lru__take(&l, 0, &a), 0);
	assert_int_equal(lru__take(&l, 0, &b), 0);
	use(&l, a, 10 * SECOND);
	use(&l, b, 10 * SECOND);
	use(&l, a, 10 * SECOND + LRU_GRAIN - 1);
	assert_int_equal(l.newest, b);
	assert_int_equal(idle(&l, 10 * SECOND + LRU_GRAIN, 0), LRU_NONE);
	use(&l, a, 10 * SECOND + LRU_GRAIN);
	assert_int_equal(l.newest, a);
	assert_int_equal(idle(&l, 10 * SECOND + LRU_GRAIN + 1, 0), b);
}
