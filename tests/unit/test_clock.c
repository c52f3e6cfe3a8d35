/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock: lines through synthetic anchors; suspend, migration, steps; and one look at the real ones.
 */
#include "unit.h"
#include "base/io.h"
#include "live/capture/cpu_visit.h"
#include "stream/clock.h"

#define S    1000000000ull
#define MS   1000000ull
#define T0   5000000000000ull /* TSC of the first anchor */
#define M0   (100 * S)
#define REAL (1700000000 * S)

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* An anchor `ns` after the first, of a TSC that runs at `mhz`. */
static struct clock_reading at(uint64_t ns, uint64_t mhz)
{
	return (struct clock_reading){
		.tsc = T0 + ns * mhz / 1000,
		.monotonic = M0 + ns,
		.realtime = REAL + ns,
		.error_ns = 40,
	};
}

/* Of the running test: the clock, and its latest anchor. */
static struct clock clock_;
static struct clock_anchor_event event;

static void begin(void)
{
	clock__init(&clock_, true);
}

static uint64_t monotonic(uint64_t tsc)
{
	return clock__to_monotonic(&clock_, tsc);
}

static void add(struct clock_reading reading)
{
	clock__add(&clock_, &reading, &event);
	assert_int_equal(event.header.size, sizeof(event));
	assert_int_equal(event.header.type, EVENT_CLOCK_ANCHOR);
	assert_int_equal(event.header.time, reading.monotonic);
}

TEST(a_line_through_two_anchors)
{
	assert_int_equal(monotonic(T0), 0);
	add(at(0, 3000));
	assert_int_equal(event.tsc_khz, 0);
	assert_int_equal(monotonic(T0 + 99), M0);
	add(at(20 * MS, 3000));
	assert_int_equal(event.tsc_khz, 3000000);
	assert_int_equal(event.epoch, 0);
	assert_int_equal(monotonic(T0 + 3 * 20 * MS), M0 + 20 * MS);
	assert_int_equal(monotonic(T0 + 3 * S), M0 + S);
	/* between and before the anchors too */
	assert_int_equal(monotonic(T0 + 3 * 10 * MS), M0 + 10 * MS);
	assert_int_equal(monotonic(T0 - 3 * MS), M0 - MS);
}

TEST(what_comes_later_changes_nothing)
{
	uint64_t tsc = T0 + 3 * S + 3 * S / 2, before;

	add(at(0, 3000));
	add(at(20 * MS, 3000));
	add(at(1 * S, 3000));
	before = monotonic(tsc);
	assert_int_equal(before, M0 + S + S / 2);
	/* 300 ppm faster from here on: NTP at work, not a new epoch */
	for (int i = 2; i < 40; i++) {
		struct clock_reading reading = at(i * S, 3000);

		reading.monotonic += (i - 1) * 300000;
		add(reading);
		assert_int_equal(event.header.flags, 0);
		assert_int_equal(event.epoch, 0);
		if (i == 2)
			assert_int_equal(event.extrapolation_error_ns, 300000);
		if (i > 3)
			assert_true(llabs(event.extrapolation_error_ns) < 100);
	}
	assert_int_equal(monotonic(tsc), before);
}

TEST(readings_err_and_lines_stay_close)
{
	unsigned int seed = 7;

	for (uint64_t ns = 0; ns < 100 * S; ns += ns ? 100 * MS : 20 * MS) {
		struct clock_reading reading = at(ns, 2111);

		reading.monotonic += rand_r(&seed) % 101 - 50;
		add(reading);
		if (ns < 2 * S)
			continue;
		/* what comes until the next anchor */
		for (uint64_t ahead = 0; ahead <= 100 * MS; ahead += 25 * MS)
			assert_true(difference(monotonic(at(ns + ahead, 2111).tsc),
					       M0 + ns + ahead) < 130);
	}
	assert_true(difference(clock_.khz, 2111000) <= 1);
}

TEST(suspend_begins_an_epoch)
{
	struct clock_reading reading;

	for (int i = 0; i < 5; i++)
		add(at(i * S, 3000));
	/* an hour of sleep: the TSC went on, CLOCK_MONOTONIC did not */
	reading = at(5 * S, 3000);
	reading.tsc += 3600 * 3 * S;
	add(reading);
	assert_int_equal(event.header.flags, EVENT_NEW_EPOCH);
	assert_int_equal(event.epoch, 1);
	assert_int_equal(event.tsc_khz, 3000000);
	/* a moment before, a moment after; nothing between */
	assert_int_equal(monotonic(at(4 * S + S / 2, 3000).tsc), M0 + 4 * S + S / 2);
	assert_int_equal(monotonic(reading.tsc + 3 * MS), M0 + 5 * S + MS);
	add((struct clock_reading){.tsc = reading.tsc + 3 * S, .monotonic = M0 + 6 * S});
	assert_int_equal(event.header.flags, 0);
	assert_int_equal(event.epoch, 1);
	assert_int_equal(event.extrapolation_error_ns, 0);
}

TEST(migration_resets_the_tsc)
{
	for (int i = 0; i < 5; i++)
		add(at(i * S, 3000));
	/* a host that has just booted, and is slower */
	add((struct clock_reading){.tsc = 1000, .monotonic = M0 + 5 * S});
	assert_int_equal(event.header.flags, EVENT_NEW_EPOCH);
	add((struct clock_reading){.tsc = 1000 + 2 * S, .monotonic = M0 + 6 * S});
	/*
	 * the second anchor of an epoch cannot depart: there is no line yet, only the last host's
	 * speed
	 */
	assert_int_equal(event.header.flags, 0);
	assert_int_equal(event.tsc_khz, 2000000);
	add((struct clock_reading){.tsc = 1000 + 4 * S, .monotonic = M0 + 7 * S});
	assert_int_equal(event.header.flags, 0);
	assert_int_equal(event.tsc_khz, 2000000);
	assert_int_equal(monotonic(1000 + 5 * S), M0 + 7 * S + S / 2);
	/* a late one of the old host */
	assert_int_equal(monotonic(at(4 * S + MS, 3000).tsc), M0 + 4 * S + MS);
}

/* Back by a little, so that TSC values of both epochs overlap: the newer one has them. */
TEST(a_small_step_back)
{
	for (int i = 0; i < 10; i++)
		add(at(i * S, 3000));
	for (int i = 10; i < 14; i++) {
		struct clock_reading reading = at(i * S, 3000);

		reading.tsc -= 5 * 3 * S;
		add(reading);
		assert_int_equal(event.header.flags, i == 10 ? EVENT_NEW_EPOCH : 0);
	}
	assert_int_equal(monotonic(at(8 * S, 3000).tsc), M0 + 13 * S);
	assert_int_equal(monotonic(at(2 * S, 3000).tsc), M0 + 2 * S);
}

TEST(realtime_may_step)
{
	struct clock_reading reading;

	add(at(0, 3000));
	add(at(S, 3000));
	reading = at(2 * S, 3000);
	reading.realtime -= 3600 * S;
	add(reading);
	assert_int_equal(event.header.flags, 0);
	assert_int_equal(event.extrapolation_error_ns, 0);
	assert_int_equal(event.realtime, REAL + 2 * S - 3600 * S);
}

TEST(replay_agrees_with_live)
{
	struct clock live, replay;
	unsigned int seed = 3;
	uint64_t tsc = T0, now = M0;

	clock__init(&live, true);
	clock__init(&replay, false);
	for (int i = 0; i < 300; i++) {
		struct clock_reading reading;

		tsc += 3 * S / 10 + rand_r(&seed) % 1000;
		now += S / 10;
		if (i % 50 == 49)
			tsc -= 7 * S;
		reading = (struct clock_reading){.tsc = tsc, .monotonic = now};
		clock__add(&live, &reading, &event);
		clock__observe(&replay, &event);
		for (int k = -5; k < 5; k++)
			assert_int_equal(clock__to_monotonic(&live, tsc + k * (int64_t)S / 7),
					 clock__to_monotonic(&replay, tsc + k * (int64_t)S / 7));
	}
	assert_int_equal(live.epoch, replay.epoch);
	assert_true(live.epoch >= 6);
}

/* Three hours with a suspend in each: what is old has the line of its epoch all the same. */
TEST(old_moments_are_kept)
{
	uint64_t asleep = 0;

	for (uint64_t s = 0; s < 3 * 3600; s++) {
		struct clock_reading reading = at(s * S, 3000);

		if (s % 3600 == 1800)
			asleep += 600 * 3 * S;
		reading.tsc += asleep;
		add(reading);
	}
	assert_int_equal(clock_.epoch, 3);
	assert_true(clock_.count <= CLOCK_HISTORY);
	asleep = 0;
	for (uint64_t s = 0; s < 3 * 3600; s += 7) {
		uint64_t ns = s * S + S / 3;

		asleep = (s / 3600 + (s % 3600 >= 1800)) * 600 * 3 * S;
		assert_int_equal(monotonic(at(ns, 3000).tsc + asleep), M0 + ns);
	}
}

/* Nothing but ends of epochs: the oldest go. */
TEST(nothing_but_epochs)
{
	for (uint64_t i = 0; i < 3 * CLOCK_HISTORY; i++) {
		struct clock_reading reading = at(i * S, 3000);

		/* two of each, which give its speed */
		reading.tsc += i / 2 * 600 * 3 * S;
		add(reading);
		assert_true(clock_.count <= CLOCK_HISTORY);
		assert_int_equal(monotonic(reading.tsc + 3 * MS), M0 + i * S + MS * (i > 0));
	}
}

TEST(without_a_tsc)
{
	struct clock_anchor_event events[2];

	clock__start(&clock_, false, events);
	assert_int_equal(events[0].tsc, 0);
	assert_int_equal(events[1].tsc_khz, 0);
	assert_true(events[1].realtime > S * 1600000000);
	assert_true(events[0].monotonic <= events[1].monotonic);
	assert_int_equal(monotonic(12345), 0);
}

TEST(the_real_clocks)
{
	struct clock_anchor_event events[2];
	struct clock_reading reading;
	uint64_t worst = 0;

#if !defined(__x86_64__)
	skip();
#endif
	clock__start(&clock_, true, events);
	assert_true(events[1].monotonic - events[0].monotonic >= 20 * MS);
	assert_in_range(events[1].tsc_khz, 100000, 10000000);
	for (int i = 0; i < 100; i++) {
		uint64_t off;

		clock_read(true, &reading);
		off = difference(monotonic(reading.tsc), reading.monotonic);
		/* what was interrupted says so itself */
		if (off > reading.error_ns && off - reading.error_ns > worst)
			worst = off - reading.error_ns;
	}
	/* 20 ms of line and microseconds of extrapolation */
	assert_true(worst < 20000 + events[0].error_ns + events[1].error_ns);
}

EACH_TEST_WITH(begin, NULL);
