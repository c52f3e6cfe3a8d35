/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reports control groups of processes (EVENT_CGROUP), which the kernel side reports
 * with ticks, also if they end before /proc is read. It also decides which groups are not sampled.
 *
 * A group is judged when its first tick is reported. It is sampled until then, so no wanted sample
 * is missed. The CPU time that a process used in an excluded group is not recorded.
 */
#ifndef LIVE_GROUPS_H
#define LIVE_GROUPS_H

#include <stdbool.h>

#include <sysprof/event.h>

#include "live/capture/bpf_session.h"
#include "live/part.h"
#include "live/proc/proc_snapshot.h"
#include "stream/event_queue.h"

/* Are samples in the group of this path wanted? */
typedef bool (*group_wanted_fn)(void *context, const char *path);

struct groups_options {
	struct proc_snapshot *proc;
	group_wanted_fn wanted; /* NULL: all are */
	void *wanted_context;
	event_push_fn push; /* for EVENT_CGROUP, EVENT_THREAD_CPU */
	void *context;
};

/* 0 or -ENOMEM. Before `opened` no group is excluded in the kernel. */
int groups_part__new(const struct groups_options *options, struct live_part *part);

#endif
