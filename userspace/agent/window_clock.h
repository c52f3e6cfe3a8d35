/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a window ends: at multiples of its length on the wall clock, shifted by a part of it that
 * the machine's id decides, so that a fleet set up by one image does not push at once. A step of
 * the wall clock or a suspend ends a window at once, because its times would be wrong in part.
 *
 * Nothing here reads a clock.
 */
#ifndef AGENT_WINDOW_CLOCK_H
#define AGENT_WINDOW_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock_readings {
	uint64_t monotonic, realtime, boottime; /* ns, of one moment */
};

struct window_clock {
	uint64_t length;	/* ns */
	uint64_t machine;	/* its phase is that modulo the length */
	uint64_t end;		/* of the open window, CLOCK_MONOTONIC ns */
	int64_t realtime_ahead; /* of CLOCK_MONOTONIC */
	int64_t boottime_ahead;
	uint64_t steps, suspends; /* that were seen */
};

/* `machine`: the machine's id, whatever its form; "" is one, too. */
void window_clock__init(struct window_clock *c, uint64_t length, const char *machine,
			const struct clock_readings *now);

/* Is the open window to end now? Then the next one is open. */
bool window_clock__ends(struct window_clock *c, const struct clock_readings *now);

/* Another length, from the next window on. */
void window_clock__set_length(struct window_clock *c, uint64_t length);

#endif
