/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publishes a finished window: its services, each sink's requests, a requested profile, and sums
 * for the metrics.
 *
 * The finisher's thread hands windows in, which may take as long as a disk does. The collector
 * configures it and reads the sums, and must not wait: its functions have "try" in their names, and
 * do nothing while another thread is inside.
 */
#ifndef AGENT_PUBLISHER_H
#define AGENT_PUBLISHER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/endpoint.h"
#include "agent/metrics.h"
#include "agent/settings.h"
#include "base/log.h"

struct publisher;

/*
 * `dry_run`: where to write what would be sent, instead of sending; or NULL. 0 or negative errno
 * with `failure` filled. publisher__try_configure() starts the sinks' threads.
 */
int publisher__new(FILE *dry_run, struct publisher **publisher, struct failure *failure);
/* Requests under way have `patience` (ns), windows that wait stay in the spools. NULL is fine. */
void publisher__free(struct publisher *p, uint64_t patience);

/*
 * Prepares rules, labels and sinks. 0: publisher__settle() has to follow, which accepts them or
 * leaves all as it was; windows wait until then. -EBUSY: not now (never before windows come);
 * negative errno with `failure` filled: nothing has changed.
 */
int publisher__try_configure(struct publisher *p, const struct agent_settings *settings,
			     struct failure *failure);

void publisher__settle(struct publisher *p, bool accepted);

/* A window that could not be finished has no profile: it is counted. */
void publisher__take(struct publisher *p, uint64_t number, const struct profile *profile);

/* The sums, into the fields of *m that are a window's, a service's or a sink's. False: not now. */
bool publisher__try_fill(struct publisher *p, struct agent_metrics *m,
			 struct metrics_sink sinks[METRICS_SINKS_MAX]);

/*
 * The first window that begins at `since` (CLOCK_MONOTONIC ns) or later answers this request of
 * `endpoint`. False: not now, or another request waits.
 */
bool publisher__try_request(struct publisher *p, struct endpoint *endpoint,
			    const struct endpoint_request *request, uint64_t since);

/* Windows that were taken. Any thread, never waits. */
unsigned long long publisher__windows(const struct publisher *p);

/* ---- health ---------------------------------------------------------------------------------- */

/*
 * Is the agent of any use? Not if three windows with samples ended and no sink sent one. A host
 * without samples is well, and so is an agent without sinks.
 */

#define HEALTH_SILENT_WINDOWS 3

/* All zero: well. */
struct health {
	unsigned int silent; /* windows in a row with samples, and nothing was sent meanwhile */
	uint64_t sent;	     /* windows, by all sinks, at the last look */
};

/* A window has ended with `samples`; `sinks` sinks have sent `sent` windows together so far. */
void health__window(struct health *h, uint64_t samples, uint64_t sent, unsigned int sinks);

bool health__is_well(const struct health *h);

#endif
