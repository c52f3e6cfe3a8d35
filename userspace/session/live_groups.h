/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which control groups processes run, by what the kernel side reports with their ticks: EVENT_CGROUP, also of processes
 * that are gone before anybody has read their /proc. And which groups are not sampled at all.
 *
 * A group is judged when the first tick in it is reported: until then it is sampled, and nothing of what is wanted is
 * missed. A process that moves out of an excluded group starts anew: what it used before is nobody's.
 */
#ifndef SESSION_LIVE_GROUPS_H
#define SESSION_LIVE_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "capture/bpf_session.h"
#include "procfs/proc_snapshot.h"
#include "stream/event_queue.h"

/* Are samples in the group of this path wanted? */
typedef bool (*group_wanted_fn)(void *context, const char *path);

struct live_groups;

struct live_groups_options {
	struct proc_snapshot *proc;
	group_wanted_fn wanted; /* NULL: all are */
	void *wanted_context;
	event_push_fn push; /* EVENT_CGROUP, EVENT_THREAD_CPU */
	void *context;
};

/* 0 or -ENOMEM. */
int live_groups__new(const struct live_groups_options *options, struct live_groups **groups);
void live_groups__free(struct live_groups *g);
/* Who is told which groups are excluded; before it there is none. */
void live_groups__attach(struct live_groups *g, struct bpf_session *session);

/* What the rings had. 0 or -ENOMEM. */
int live_groups__made(struct live_groups *g, const struct group_made_event *event);
int live_groups__entered(struct live_groups *g, const struct in_group_event *event);

/* All rings were read: what was entered is told. 0, -ENOMEM, or what `push` returned. */
int live_groups__settle(struct live_groups *g);

/* `wanted` has changed its mind. 0 or as above. */
int live_groups__judge_again(struct live_groups *g);

struct live_groups_stats {
	uint64_t entered;  /* reports */
	uint64_t unknown;  /* of them: nobody knows the path any more */
	uint64_t excluded; /* groups that were left out */
};
void live_groups__stats(const struct live_groups *g, struct live_groups_stats *stats);

#endif
