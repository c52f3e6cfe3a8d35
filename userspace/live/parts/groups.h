/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reports in which control groups processes run, by what the kernel side reports with their ticks: EVENT_CGROUP,
 * also of processes that end before their /proc is read. And it decides which groups are not sampled at all.
 *
 * A group is judged when the first tick in it is reported: until then it is sampled, so no wanted sample is
 * missed. A process that moves out of an excluded group starts anew: its CPU time until then is not recorded.
 */
#ifndef LIVE_GROUPS_H
#define LIVE_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "capture/bpf_session.h"
#include "live/part.h"
#include "procfs/proc_snapshot.h"
#include "stream/event_queue.h"

/* Are samples in the group of this path wanted? */
typedef bool (*group_wanted_fn)(void *context, const char *path);

struct groups_options {
	struct proc_snapshot *proc;
	group_wanted_fn wanted; /* NULL: all are */
	void *wanted_context;
	event_push_fn push; /* EVENT_CGROUP, EVENT_THREAD_CPU */
	void *context;
};

/* 0 or -ENOMEM. */
int groups_part__new(const struct groups_options *options, struct live_part *part);
/* The kernel side, which excludes groups; before this call none is excluded. */
void groups_part__attach(const struct live_part *part, struct bpf_session *session);

/* `wanted` may answer differently from now on. 0, -ENOMEM, or what `push` returned. */
int groups_part__judge_again(const struct live_part *part);

struct groups_stats {
	uint64_t entered;  /* reports */
	uint64_t unknown;  /* of them: the path could not be found */
	uint64_t excluded; /* groups that were left out */
};
void groups_part__stats(const struct live_part *part, struct groups_stats *stats);

#endif
