/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's metrics: text for Prometheus (format 0.0.4). Every figure is from one plain struct,
 * which the owner of the session fills every two seconds and publishes (agent/endpoint.h).
 *
 * The number of series does not depend on what runs on the machine: no service, process or error
 * text is a label. Labels have values from a list, but for sinks, named in the configuration.
 *
 * The books: ticks due = ticks sent, idle, filtered, lost by reason, or unexplained (of a CPU idle
 * since); windows that a sink took = windows by result, dropped by its spool, or still in it.
 */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/budget.h"
#include "agent/sink.h"
#include "agent/usage.h"
#include "formats/out/describe.h"

#define METRICS_TYPE	  "text/plain; version=0.0.4; charset=utf-8"

#define METRICS_SINKS_MAX 16 /* more are not shown */

struct metrics_sink {
	const char *name; /* of the configuration, without secrets: "pyroscope:http://host:4040" */
	struct sink_stats stats;
};

/* Sums are since the start of the agent, over all sessions that it had. */
struct agent_metrics {
	const char *version, *kernel;
	uint64_t started; /* ns since the epoch */
	uint64_t now;	  /* the same, when these were read */
	bool healthy, safe_mode;

	/* samples */
	uint64_t figures[FIGURE_COUNT]; /* VISITED, VISITS_HZ, CLOCK_ERROR: of the last window */
	uint64_t parked_ns;		/* of the states of WALL_STATES: left out of the series */
	unsigned int hz, configured_hz;

	/* names: of samples' innermost frames */
	uint64_t frames_named, frames_unnamed;
	uint64_t names_put_off; /* addresses without a name in a window, to save time */

	/* windows */
	uint64_t windows_finished, windows_failed,
		windows_put_off; /* put off: a rotation was refused */
	uint64_t window_length;	 /* ns */
	uint64_t clock_steps;	 /* and suspends, which split a window */

	/* services of the last window */
	uint64_t services, services_other; /* in `_other`: over the limit of series */
	uint64_t samples_unknown_service;

	/* what it costs */
	struct usage_report usage;
	struct budget_state budget;
	struct budget_stats budget_stats;
	double cpu_limit;      /* share of one CPU; 0: none */
	uint64_t memory_limit; /* bytes; 0: none */

	const struct metrics_sink *sinks;
	size_t sink_count;
};

/* Adds the figures of a window. */
void metrics__add(struct agent_metrics *metrics, const struct profile *window);

/* The whole text, NUL-terminated; the caller frees. `size` may be NULL. 0 or -ENOMEM. */
int metrics__text(const struct agent_metrics *metrics, char **text, size_t *size);

#endif
