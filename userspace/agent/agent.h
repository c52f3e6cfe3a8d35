/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Continuous profiling of a host: one session with windows, and what becomes of each of them.
 *
 *   collector (the caller of agent__*())   session, clock of the windows, budget, metrics
 *   finisher (window/finisher.h)          names a closed window and hands it to agent/publisher.h
 *   a thread a sink (agent/sink.h)         sends
 *   endpoint (agent/endpoint.h)            answers requests for metrics, health or a profile
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdio.h>

#include "agent/settings.h"
#include "base/log.h"

struct agent;

struct agent_start {
	const struct agent_settings *settings; /* copied as far as needed */
	const char *version;
	bool safe;     /* frame pointers alone; no symbols are read */
	FILE *dry_run; /* NULL: windows are sent; else what would be sent is written there */
	int wake_fd;   /* once it is readable agent__step() returns */
	void (*say)(const char *text); /* logs changes while it runs, a line each */
};

/* Opens everything, samples nothing. The caller has one thread. 0 or negative errno, `failure`. */
int agent__new(const struct agent_start *start, struct agent **agent, struct failure *failure);
/* The open window is lost, unless agent__stop() was called. NULL is fine. */
void agent__free(struct agent *a);

int agent__start(struct agent *a, struct failure *failure);

/* Waits for events, the `wake_fd`, or a second, and works. */
int agent__step(struct agent *a, struct failure *failure);

/*
 * Other settings, from the open window on; what takes a restart is reported through `say`. 0;
 * -EBUSY: not now, call again a little later; other errors: nothing has changed.
 */
int agent__configure(struct agent *a, const struct agent_settings *settings,
		     struct failure *failure);

/* Ends the last window and hands it to the sinks, which may spool it. Takes two seconds at most. */
int agent__stop(struct agent *a, struct failure *failure);

/* Windows that have been finished. */
unsigned long long agent__windows(struct agent *a);

#endif
