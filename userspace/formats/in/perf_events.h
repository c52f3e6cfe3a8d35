/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of events as perf prints them, and which of several a profile is of. */
#ifndef FORMATS_IN_PERF_EVENTS_H
#define FORMATS_IN_PERF_EVENTS_H

#include "formats/in/text_span.h"

#define PERF_EVENT_NAME_SIZE 256

/* The highest is the profile's. */
enum perf_event_rank {
	PERF_EVENT_SOFTWARE, /* and tracepoints: what happened, not where time goes */
	PERF_EVENT_HARDWARE,
	PERF_EVENT_CYCLES,
	PERF_EVENT_CLOCK,
};

/*
 * What it counts: "cpu_core/cycles/P" and "cycles:ppp" are "cycles", "cycles:uppp" is "cycles:u".
 * `name` has PERF_EVENT_NAME_SIZE bytes; a longer one is cut.
 */
void perf_event_name(struct span printed, char *name);
enum perf_event_rank perf_event_rank(const char *name);
/* Without a period each sample of a tracepoint is one event. */
bool perf_event_is_tracepoint(const char *name);

#endif
