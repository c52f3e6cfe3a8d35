/* SPDX-License-Identifier: BSD-2-Clause */
/* Readings of the real clocks; what is made of them is in stream/clock.h. */
#ifndef CAPTURE_CLOCK_READER_H
#define CAPTURE_CLOCK_READER_H

#include <stdbool.h>

#include "stream/clock.h"

/* Read all clocks, the best of several tries. with_tsc is for CPUs that have an invariant one. */
void clock_read(bool with_tsc, struct clock_reading *reading);

/* clock_read + clock__add. */
void clock__anchor_now(struct clock *clock, struct clock_anchor_event *event);

/* Init, and the two first anchors, 20 ms apart (without a TSC: no wait). Hand both events on. */
void clock__start(struct clock *clock, bool tsc, struct clock_anchor_event events[2]);

#endif
