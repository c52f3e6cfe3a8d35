/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reads, from time to time, how much memory processes have and which control group they are in.
 *
 * A process that does not run does not change, so a round reads the processes that were sampled since the last one,
 * at most WATCH_MOST of them, the busiest first. The control group is read in the first round, after an execve (a
 * container's first process is moved before that) and then every WATCH_CGROUP_NS. So the cost of a round is bounded,
 * and a fork costs nothing.
 */
#ifndef LIVE_MEMORY_H
#define LIVE_MEMORY_H

#include <stdbool.h>
#include <sys/types.h>

#include "live/part.h"
#include "stream/event_queue.h"

#define WATCH_MOST	64u
#define WATCH_CGROUP_NS 16000000000ull

struct pid_list {
	pid_t *data;
	size_t count, capacity;
};

struct memory_options {
	struct tasks *tasks;
	/* Memory is only read together with the control group, since that shows which threads are the kernel's. */
	bool groups_only;
	const struct pid_list *always; /* read in each round, WATCH_MOST at most */
	event_push_fn push;	       /* EVENT_MEMORY and EVENT_CGROUP */
	void *context;
};

/* 0, -ENOMEM, or why /proc cannot be opened. `second` returns 0, -ENOMEM, -EMFILE, -ENFILE, or what `push` returned. */
int memory_part__new(const struct memory_options *options, struct live_part *part);

#endif
