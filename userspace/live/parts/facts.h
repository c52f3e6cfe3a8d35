/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reads facts (program, control group, environment) of sampled processes, once per
 * program. Facts that the process cannot block (program's path, control group) are reported at
 * once; the rest comes from a reader process. OpenTelemetry's libraries publish their context after
 * a program's start, so one that is sampled again later is read again, three times at most. Those
 * that service_names reads and reports (live/service_names.h) are read by that alone.
 *
 * Both rates are limited (tenants/quota.h): in a storm of new processes most end before their turn.
 */
#ifndef LIVE_PARTS_FACTS_H
#define LIVE_PARTS_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "live/part.h"
#include "stream/event_queue.h"
#include "tenants/outside_books.h"

#define FACT_WAITING_MAX 4096u

struct facts_options {
	struct tasks *tasks;
	const struct fact_readers *readers;
	struct outside_books *books; /* counts what limits leave out; or NULL */
	event_push_fn push;	     /* for EVENT_FACTS and EVENT_CGROUP */
	void *context;
};

/*
 * 0, -ENOMEM, or the error of opening /proc. `tick` returns 0, -ENOMEM, or an error of `push` since
 * its last call. The pool of readers must have ended before `free`.
 */
int facts_part__new(const struct facts_options *options, struct live_part *part);

#endif
