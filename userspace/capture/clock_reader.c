/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/clock_reader.h"

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/clocks.h"

#define FIRST_ANCHORS_NS 20000000
#define READINGS	 8

static uint64_t read_tsc(void)
{
#if defined(__x86_64__)
	unsigned int processor;

	/* waits for what is before it, unlike rdtsc */
	return __rdtscp(&processor);
#else
	return 0;
#endif
}

/* One reading: CLOCK_REALTIME and the TSC between two of CLOCK_MONOTONIC. */
static void read_once(bool with_tsc, struct clock_reading *reading)
{
	uint64_t before, after;

	before = monotonic_ns();
	reading->tsc = with_tsc ? read_tsc() : 0;
	reading->realtime = realtime_ns();
	after = monotonic_ns();
	reading->monotonic = before + (after - before) / 2;
	reading->error_ns = after - before > UINT32_MAX ? UINT32_MAX : (after - before + 1) / 2;
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
