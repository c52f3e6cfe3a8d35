/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line through two anchors.
 *
 * One end is the newest anchor at or before the TSC in question; the other is the newest anchor of
 * the same epoch that is at least a second older, or the epoch's first known one. A second makes
 * the bracket of a reading (some 50 ns) an error of a few parts in 10^8; much longer lines would
 * lag behind when NTP changes the speed of CLOCK_MONOTONIC.
 *
 * TSC values order anchors only within an epoch. A TSC belongs to the newest epoch with it in
 * range, EPOCH_TAIL_NS after the last anchor included; else to that of the greatest anchor not
 * above it.
 */
#include "stream/clock.h"

#include <string.h>

#include "base/clocks.h"
#include "base/order.h"

#define BASELINE_NS	 NS_PER_SECOND
#define EPOCH_TAIL_NS	 (2 * NS_PER_SECOND) /* an epoch extends so far beyond its last anchor */
#define DEPARTURE_PPM	 1000
#define CLOCK_RECENT	 256   /* latest anchors, which are all kept */
#define CLOCK_DROPPED	 64    /* oldest anchors dropped if none is dispensable */
#define DEPARTURE_MIN_NS 20000 /* error of a badly bracketed reading */

void clock__init(struct clock *clock, bool tsc)
{
	memset(clock, 0, sizeof(*clock));
	clock->tsc = tsc;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* First anchor of the epoch that history[last] is of. */
static uint32_t epoch_first(const struct clock *clock, uint32_t last)
{
	if (last >= clock->first)
		return clock->first;
	while (last > 0 && clock->history[last - 1].epoch == clock->history[last].epoch)
		last--;
	return last;
}

/* The other end of the line that goes through history[end]. May be `end` itself. */
static uint32_t line_start(const struct clock *clock, uint32_t end)
{
	uint32_t first = epoch_first(clock, end);
	uint64_t now = clock->history[end].monotonic;
	uint32_t older = partition_point(clock->history + first, end - first, p,
					 now - p->monotonic >= BASELINE_NS);

	return older ? first + older - 1 : first;
}

/* `ticks` * ns / tsc, rounded to the nearest. */
static int64_t scale(int64_t ticks, uint64_t ns, uint64_t tsc)
{
	__int128 product = (__int128)ticks * ns;

	return (product + (product < 0 ? -(__int128)(tsc / 2) : (__int128)(tsc / 2))) / tsc;
}

/* CLOCK_MONOTONIC at `tsc` on the line that ends in history[end]. */
static uint64_t on_line(const struct clock *clock, uint32_t end, uint64_t tsc)
{
	uint32_t start = line_start(clock, end);
	uint64_t dtsc = clock->history[end].tsc - clock->history[start].tsc;
	uint64_t dns = clock->history[end].monotonic - clock->history[start].monotonic;
	int64_t ticks = tsc - clock->history[end].tsc;
	int64_t time;

	if (!dtsc || !dns) {
		if (!clock->khz)
			return clock->history[end].monotonic;
		dtsc = clock->khz;
		dns = 1000000;
	}
	time = clock->history[end].monotonic + scale(ticks, dns, dtsc);
	return time < 0 ? 0 : time;
}

static uint64_t tail_ticks(const struct clock *clock)
{
	return clock->khz * (EPOCH_TAIL_NS / 1000000);
}

/* The anchor at or before `tsc`. There is at least one anchor. */
static uint32_t anchor_before(const struct clock *clock, uint64_t tsc)
{
	uint32_t best = 0, first;
	bool found = false;

	for (uint32_t last = clock->count; last-- > 0; last = first) {
		first = epoch_first(clock, last);
		if (tsc < clock->history[first].tsc ||
		    tsc > clock->history[last].tsc + tail_ticks(clock))
			continue;
		return first - 1 +
		       partition_point(clock->history + first, last + 1 - first, p, p->tsc <= tsc);
	}
	for (uint32_t i = 0; i < clock->count; i++) {
		if (clock->history[i].tsc > tsc)
			continue;
		if (!found || clock->history[i].tsc >= clock->history[best].tsc)
			best = i;
		found = true;
	}
	return best;
}

uint64_t clock__to_monotonic(const struct clock *clock, uint64_t tsc)
{
	if (!clock->count)
		return 0;
	return on_line(clock, anchor_before(clock, tsc), tsc);
}

static bool departs(const struct clock *clock, const struct clock_reading *reading,
		    int64_t *departure)
{
	uint32_t last = clock->count - 1;
	uint64_t elapsed, limit;

	*departure = 0;
	if (reading->tsc <= clock->history[last].tsc ||
	    reading->monotonic <= clock->history[last].monotonic)
		return true;
	if (!clock->khz)
		return false;
	*departure = reading->monotonic - on_line(clock, last, reading->tsc);
	/* an epoch has a line of its own from the second anchor on; until then, the last speed */
	if (line_start(clock, last) == last)
		return false;
	elapsed = reading->monotonic - clock->history[last].monotonic;
	limit = elapsed / (1000000 / DEPARTURE_PPM);
	if (limit < DEPARTURE_MIN_NS + 2ull * reading->error_ns)
		limit = DEPARTURE_MIN_NS + 2ull * reading->error_ns;
	return (uint64_t)(*departure < 0 ? -*departure : *departure) > limit;
}

/* Every second of the older anchors, but not the ends of an epoch. */
static bool is_dispensable(const struct clock *clock, uint32_t i)
{
	return i % 2 && i < clock->count - CLOCK_RECENT &&
	       clock->history[i - 1].epoch == clock->history[i].epoch &&
	       clock->history[i + 1].epoch == clock->history[i].epoch;
}

/*
 * Makes room. If all anchors are ends of epochs, which only a forged recording has, it drops
 * several of the oldest at once, because many more will come.
 */
static void thin_out(struct clock *clock)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < clock->count; i++)
		if (!is_dispensable(clock, i))
			clock->history[kept++] = clock->history[i];
	if (kept == clock->count) {
		kept -= CLOCK_DROPPED;
		memmove(&clock->history[0], &clock->history[CLOCK_DROPPED],
			kept * sizeof(clock->history[0]));
	}
	clock->count = kept;
	clock->first = 0;
	for (uint32_t i = 1; i < kept; i++)
		if (clock->history[i].epoch != clock->history[i - 1].epoch)
			clock->first = i;
}

static void add_point(struct clock *clock, uint64_t tsc, uint64_t monotonic)
{
	uint32_t start;

	if (clock->count == CLOCK_HISTORY)
		thin_out(clock);
	if (clock->count && clock->history[clock->count - 1].epoch != clock->epoch)
		clock->first = clock->count;
	clock->history[clock->count] = (struct clock_point){tsc, monotonic, clock->epoch};
	start = line_start(clock, clock->count);
	if (start != clock->count && monotonic > clock->history[start].monotonic)
		clock->khz = scale(tsc - clock->history[start].tsc, 1000000,
				   monotonic - clock->history[start].monotonic);
	clock->count++;
}

void clock__add(struct clock *clock, const struct clock_reading *reading,
		struct clock_anchor_event *event)
{
	int64_t departure = 0;
	bool new_epoch = false;

	if (clock->tsc && clock->count)
		new_epoch = departs(clock, reading, &departure);
	if (new_epoch)
		clock->epoch++;
	if (clock->tsc)
		add_point(clock, reading->tsc, reading->monotonic);
	*event = (struct clock_anchor_event){
		.header = {.size = sizeof(*event),
			   .type = EVENT_CLOCK_ANCHOR,
			   .flags = new_epoch ? EVENT_NEW_EPOCH : 0,
			   .time = reading->monotonic},
		.tsc = clock->tsc ? reading->tsc : 0,
		.monotonic = reading->monotonic,
		.realtime = reading->realtime,
		.tsc_khz = clock->khz,
		.error_ns = reading->error_ns,
		.epoch = clock->epoch,
		.extrapolation_error_ns = departure,
	};
}

void clock__observe(struct clock *clock, const struct clock_anchor_event *event)
{
	if (!event->tsc)
		return;
	clock->tsc = true;
	clock->epoch = event->epoch;
	add_point(clock, event->tsc, event->monotonic);
}
