/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publishes a finished window: its services, the requests of each sink, a profile for a request, and sums for the
 * metrics.
 *
 * The finisher's thread hands windows in; the collector configures it and reads the sums. Handing in may take as long
 * as a disk does, and the collector must not wait for that: its functions have "try" in their names, and do nothing
 * while another thread is inside.
 */
#ifndef AGENT_PUBLISHER_H
#define AGENT_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/endpoint.h"
#include "agent/metrics.h"
#include "agent/settings.h"
#include "base/log.h"

struct publisher;

/*
 * `dry_run`: nothing is sent, what would be is written there; else NULL. 0 or negative errno with `failure` filled. The
 * sinks' threads come with publisher__try_configure().
 */
int publisher__new(FILE *dry_run, struct publisher **publisher, struct failure *failure);
/* Requests under way have `patience` (ns), windows that wait stay in the spools. NULL is fine. */
void publisher__free(struct publisher *p, uint64_t patience);

/*
 * Rules, labels and sinks. 0; -EBUSY: not now, which is no answer before windows come; negative errno with `failure`
 * filled: then the rules and labels are as they were.
 */
int publisher__try_configure(struct publisher *p, const struct agent_settings *settings,
			     struct failure *failure);

/*
 * Variables of environments that its rules need. Only before there are other threads; valid until it is configured
 * again.
 */
const char *const *publisher__variables(const struct publisher *p, size_t *count);

/* A window that could not be finished has no profile: it is counted. */
void publisher__take(struct publisher *p, uint64_t number, const struct profile *profile);

/* The sums, into the fields of *m that are a window's, a service's or a sink's. False: not now. */
bool publisher__try_fill(struct publisher *p, struct agent_metrics *m,
			 struct metrics_sink sinks[METRICS_SINKS_MAX]);

/*
 * The first window that begins at `since` (CLOCK_MONOTONIC ns) or later is what this request of `endpoint` is granted by.
 * False: not now, or another one is waited for.
 */
bool publisher__try_request(struct publisher *p, struct endpoint *endpoint,
			    const struct endpoint_request *request, uint64_t since);

/* Windows that were taken. Any thread, never waits. */
unsigned long long publisher__windows(const struct publisher *p);

/* ---- health ---------------------------------------------------------------------------------- */

/*
 * Is the agent of any use? It is not if it takes samples and nothing of them arrives anywhere: for three windows in a row
 * there were some, and no sink has sent a window. A host without samples is well, and so is an agent without sinks.
 */

#define HEALTH_SILENT_WINDOWS 3

/* All zero: well. */
struct health {
	unsigned int silent; /* windows in a row with samples, and nothing was sent meanwhile */
	uint64_t sent;	     /* windows, by all sinks, at the last look */
};

/* A window has ended: `samples` are in it; `sent` windows were sent so far, by `sinks` sinks together. */
void health__window(struct health *h, uint64_t samples, uint64_t sent, unsigned int sinks);

bool health__is_well(const struct health *h);

#endif
