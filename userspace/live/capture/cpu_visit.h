/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readings that need their CPU: moving the calling thread there, the TSC, and perf's counter of it.
 * Readings of all clocks, for stream/clock.h.
 */
#ifndef LIVE_CAPTURE_CPU_VISIT_H
#define LIVE_CAPTURE_CPU_VISIT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "stream/clock.h"

#define CPU_VISIT_MAX 8192 /* CPU numbers are below this */
#define CPUS_ONLINE   "/sys/devices/system/cpu/online"

/* The affinity of the calling thread, to be restored. NULL: it cannot be read; then do not move. */
cpu_set_t *save_affinity(void);
/* Give it back, and free it. NULL is fine. */
void restore_affinity(cpu_set_t *set);

/* False: the cpuset forbids it. */
bool go_to_cpu(uint32_t cpu);

/* The TSC, when what is before it is done; 0: this machine has none. */
static inline uint64_t read_tsc(void)
{
#if defined(__x86_64__)
	unsigned int processor;

	return __rdtscp(&processor);
#else
	return 0;
#endif
}

/*
 * perf's counter of the TSC counts from its opening on. *base: the TSC at which the counter behind
 * `fd` was 0. *error: half the bracket of the best reading, in TSC ticks; a tenth of a microsecond
 * on the counter's own CPU, several from another one. 0 or -EIO.
 */
int tsc_counter_base(int fd, uint64_t *base, uint64_t *error);

/* TSC ticks per microsecond, exact enough to judge an error by. Takes a millisecond. */
uint64_t tsc_per_us(void);

/* Read all clocks, the best of several tries. with_tsc is for CPUs that have an invariant one. */
void clock_read(bool with_tsc, struct clock_reading *reading);

/* clock_read + clock__add. */
void clock__anchor_now(struct clock *clock, struct clock_anchor_event *event);

/* Init, and the two first anchors, 20 ms apart (without a TSC: no wait). Hand both events on. */
void clock__start(struct clock *clock, bool tsc, struct clock_anchor_event events[2]);

#endif
