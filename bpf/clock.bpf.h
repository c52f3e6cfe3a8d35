/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time of a tick, and the number of ticks before it that did not run the program.
 *
 * The kernel runs no perf_event program on a CPU that is inside bpf() (a map update, say), and does
 * not report it. But the timer of a clock event stays on a grid of CLOCK_MONOTONIC, whole periods
 * from its origin: a tick can be late, never early, and a missed one does not move the next. So the
 * grid points between two runs are the ticks that did not run the program.
 *
 * The origin is the time when the event was enabled (at this rate), which perf reports in the
 * event's own clock; the timer starts 5 to 20 us later. A tolerance of a sixteenth of a period
 * keeps jitter from counting a point twice. A very late tick adds to one gap what it takes from the
 * next, so the sum of all lines is the number of the last point. If perf restarts the timer (other
 * events on this CPU), the phase moves by microseconds, and the sum is off by one tick at most.
 */
#ifndef BPF_CLOCK_BPF_H
#define BPF_CLOCK_BPF_H

#include <linux/bpf_perf_event.h>

#include "maps.bpf.h"

static __always_inline void note_tick(struct bpf_perf_event_data *ctx, struct cpu_books *books,
				      __u64 now)
{
	struct bpf_perf_event_value value = {};
	__u64 period = books->period, point;

	books->last_tick = now;
	if (!period)
		return;
	if (!books->grid_origin) {
		if (bpf_perf_prog_read_value(ctx, &value, sizeof(value)))
			return;
		books->grid_origin = now - (value.enabled - books->grid_enabled);
	}
	point = (now - books->grid_origin + period / 16) / period;
	books->count[BOOK_NOT_RUN] += point - books->grid_point - 1;
	books->grid_point = point;
}

/*
 * The clocks of this CPU. `event_clock`: the enabled time of an event, which is perf's clock since
 * the event was opened; `tsc`: 0 where it is not the clock.
 */
struct now {
	__u64 tsc, event_clock;
};

/*
 * One call reads both from the TSC counter, or from the CPU's tick or side-band event. False: none.
 */
static __always_inline bool read_clocks(const struct cpu_books *books, struct now *now)
{
	struct bpf_perf_event_value value = {};

	/* always from the same event: clocks of two events differ */
	if (use_tsc && books->tsc_base) {
		if (bpf_perf_event_read_value(&tsc_counters, BPF_F_CURRENT_CPU, &value,
					      sizeof(value)))
			return false;
		now->tsc = books->tsc_base + value.counter;
	} else {
		if (bpf_perf_event_read_value(&ticks, BPF_F_CURRENT_CPU, &value, sizeof(value)))
			return false;
		now->tsc = 0;
	}
	now->event_clock = value.enabled;
	return value.enabled != 0;
}

#endif
