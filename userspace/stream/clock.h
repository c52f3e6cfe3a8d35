/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From raw TSC to CLOCK_MONOTONIC, by anchors.
 *
 * An anchor is one moment read on both clocks (and on CLOCK_REALTIME), with the error of that
 * reading. A TSC is converted along the line through the newest anchor taken at or before it and an
 * older one of the same epoch, so the answer depends on nothing that comes later: live capture and
 * replay agree if they show the same anchors at the same places of the stream.
 *
 * An anchor that departs from that line by more than 1000 ppm, or where the TSC ran backwards
 * (suspend, VM migration), starts a new epoch: no line is drawn across it.
 *
 * This is arithmetic alone; live/capture/cpu_visit reads the clocks.
 */
#ifndef STREAM_CLOCK_H
#define STREAM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#define CLOCK_HISTORY 1024

/* One moment on all clocks. */
struct clock_reading {
	uint64_t tsc;	    /* 0: not read */
	uint64_t monotonic; /* ns */
	uint64_t realtime;  /* ns since the Unix epoch */
	uint32_t error_ns;  /* half the bracket around the reading */
};

struct clock {
	bool tsc; /* samples carry a TSC; else anchors are only for CLOCK_REALTIME */
	uint32_t epoch;
	uint32_t count; /* anchors in history, oldest first */
	uint32_t first; /* of the last epoch in history */
	struct clock_point {
		uint64_t tsc, monotonic;
		uint32_t epoch;
	} history[CLOCK_HISTORY];
	uint64_t khz; /* running frequency, kept over epochs until the new one has its own */
};

void clock__init(struct clock *clock, bool tsc);

/*
 * Adds a reading to the clock and makes its anchor event. The first two must be at least 20 ms
 * apart and precede the first conversion; then at least one a second, one before each chunk, one at
 * the end.
 */
void clock__add(struct clock *clock, const struct clock_reading *reading,
		struct clock_anchor_event *event);

/* Replay: an anchor event of the stream, instead of a reading. */
void clock__observe(struct clock *clock, const struct clock_anchor_event *event);

/*
 * CLOCK_MONOTONIC ns of a TSC value. 0 without an anchor; with one anchor and no frequency the
 * anchor's time. Recent anchors are all kept, older ones ever more sparsely, so a TSC of any age
 * has its epoch's line.
 */
uint64_t clock__to_monotonic(const struct clock *clock, uint64_t tsc);

#endif
