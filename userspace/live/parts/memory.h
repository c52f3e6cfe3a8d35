/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reads memory and control groups of processes, once a second.
 *
 * A process that does not run does not change, so a round reads the processes sampled since the
 * last one, at most WATCH_MOST, the busiest first. The control group is read in a program's first
 * round (a container's first process is moved before its execve), unless facts just were, and then
 * every WATCH_CGROUP_NS. So a round has a bounded cost, and a fork costs nothing.
 */
#ifndef LIVE_PARTS_MEMORY_H
#define LIVE_PARTS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
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
	/* Read memory only with the control group: it shows which threads are the kernel's. */
	bool groups_only;
	const struct pid_list *always; /* read in each round, WATCH_MOST at most */
	event_push_fn push;	       /* for EVENT_MEMORY and EVENT_CGROUP */
	void *context;
};

/* 0, -ENOMEM, error of opening /proc. `second`: 0, -ENOMEM, -EMFILE, -ENFILE, result of `push`. */
int memory_part__new(const struct memory_options *options, struct live_part *part);

#endif
