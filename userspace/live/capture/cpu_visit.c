/* SPDX-License-Identifier: BSD-2-Clause */
/* Affinity, for machines of any size; readings of a clock between two of another one. */
#include "live/capture/cpu_visit.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/minmax.h"

bool go_to_cpu(uint32_t cpu)
{
	cpu_set_t *set = CPU_ALLOC(CPU_VISIT_MAX);
	size_t size = CPU_ALLOC_SIZE(CPU_VISIT_MAX);
	bool there;

	if (!set)
		return false;
	CPU_ZERO_S(size, set);
	CPU_SET_S(cpu, size, set);
	there = !sched_setaffinity(0, size, set) && sched_getcpu() == (int)cpu;
	CPU_FREE(set);
	return there;
}

cpu_set_t *save_affinity(void)
{
	cpu_set_t *set = CPU_ALLOC(CPU_VISIT_MAX);

	if (set && sched_getaffinity(0, CPU_ALLOC_SIZE(CPU_VISIT_MAX), set)) {
		CPU_FREE(set);
		set = NULL;
	}
	return set;
}

void restore_affinity(cpu_set_t *set)
{
	if (!set)
		return;
	sched_setaffinity(0, CPU_ALLOC_SIZE(CPU_VISIT_MAX), set);
	CPU_FREE(set);
}

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

/* ---- all clocks ------------------------------------------------------------------------------ */

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
