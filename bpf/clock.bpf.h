/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time of a tick, and the number of ticks before it that did not run the program.
 *
 * The kernel runs no perf_event program on a CPU that is inside bpf() (a map update, say), and does not report it. The timer
 * of a clock event, however, stays on a grid of CLOCK_MONOTONIC, a whole number of periods from its origin: a tick can be
 * late, never early, and a missed one does not move the next. So the number of grid points between two runs is the number of
 * ticks that did not run the program.
 *
 * The origin is the time at which the event was enabled (at this rate), which perf reports in the event's own clock; the timer
 * starts some 5 to 20 us later. Points are counted with a tolerance of a sixteenth of a period, so that no jitter around a
 * point counts it twice; a very late tick adds to one gap what it takes from the next. The sum of all lines is then the number
 * of the last point. If perf restarts the timer (other events on this CPU), the phase moves by microseconds, and the sum is
 * off by one tick at most.
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
 * The clocks of this CPU. `event_clock` is the enabled time of an event, which is perf's clock since it was opened; `tsc` is 0
 * where it is not the clock.
 */
struct now {
	__u64 tsc, event_clock;
};

/*
 * One call reads both from the TSC counter. A CPU without one has the event of its ticks, or of its side-band. False: there
 * is none.
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
