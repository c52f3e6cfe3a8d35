/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reads facts of processes (program, control group, environment): of a process that was sampled, once
 * for each program that it runs. Facts that the process cannot block (the path of its program, its control group) are
 * reported at once; the rest comes from a reader process. OpenTelemetry's libraries publish their context after a
 * program has begun, so one that is sampled again later is read again, three times at most.
 *
 * The rates of both are limited (base/quota.h), whatever runs: in a storm of new processes most wait, and end before their turn.
 */
#ifndef LIVE_FACTS_H
#define LIVE_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "live/part.h"
#include "helpers/pool.h"
#include "stream/event_queue.h"

#define FACT_WAITING_MAX 4096u

struct facts_options {
	struct tasks *tasks;
	struct helper_pool *readers;
	unsigned int service; /* of theirs: fact_reader__serve */
	/* Variables that are wanted beside those of environment_names; copied. */
	const char *const *names;
	size_t name_count;
	event_push_fn push; /* EVENT_FACTS and EVENT_CGROUP */
	void *context;
};

/*
 * 0, -EINVAL: an invalid name, or too many; -ENOMEM, or why /proc cannot be opened. The pool must have ended before `free`.
 * `tick` returns 0, -ENOMEM, or what `push` has returned since the last call.
 */
int facts_part__new(const struct facts_options *options, struct live_part *part);

struct facts_stats {
	uint64_t requested, answered;
	uint64_t refused; /* without an answer */
	uint64_t dropped; /* too many waited */
};
void facts_part__stats(const struct live_part *part, struct facts_stats *stats);

#endif
