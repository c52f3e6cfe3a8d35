/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/clock_reader.h"

#include <time.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "capture/cpu_visit.h"

#define FIRST_ANCHORS_NS 20000000
#define READINGS	 8

/* One reading: CLOCK_REALTIME and the TSC between two of CLOCK_MONOTONIC. */
static void read_once(bool with_tsc, struct clock_reading *reading)
{
	uint64_t before, after;

	before = monotonic_ns();
	reading->tsc = with_tsc ? read_tsc() : 0;
	reading->realtime = realtime_ns();
	after = monotonic_ns();
	reading->monotonic = before + (after - before) / 2;
	reading->error_ns = min_u64((after - before + 1) / 2, UINT32_MAX);
}

void clock_read(bool with_tsc, struct clock_reading *reading)
{
	struct clock_reading try;

	read_once(with_tsc, reading); /* warms the vDSO */
	reading->error_ns = UINT32_MAX;
	for (int i = 0; i < READINGS; i++) {
		read_once(with_tsc, &try);
		if (try.error_ns < reading->error_ns)
			*reading = try;
	}
}

void clock__anchor_now(struct clock *clock, struct clock_anchor_event *event)
{
	struct clock_reading reading;

	clock_read(clock->tsc, &reading);
	clock__add(clock, &reading, event);
}

void clock__start(struct clock *clock, bool tsc, struct clock_anchor_event events[2])
{
	clock__init(clock, tsc);
	clock__anchor_now(clock, &events[0]);
	if (tsc)
		nanosleep(&(struct timespec){.tv_nsec = FIRST_ANCHORS_NS}, NULL);
	clock__anchor_now(clock, &events[1]);
}
