/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control group of a process, reported at its first tick and at the first one after a move,
 * even if it ends before its /proc is read. Ticks of excluded groups end before a stack is walked.
 *
 * A group that the collector has not checked yet is sampled, so that a new target is sampled from
 * its first tick on. If it is excluded, the collector drops those samples later.
 */
#ifndef BPF_GROUPS_BPF_H
#define BPF_GROUPS_BPF_H

#include "tick_ring.bpf.h"

static __always_inline bool group_is_excluded(__u64 group)
{
	return any_excluded && bpf_map_lookup_elem(&excluded_groups, &group);
}

/* A process is where its leader is; in a threaded group other threads may be elsewhere. */
static __noinline __u64 leaders_group(void)
{
	return BPF_CORE_READ(current_task(), group_leader, cgroups, dfl_cgrp, kn, id);
}

static __noinline int emit_group(__u64 group, __u64 time, __u32 tgid, __u32 was_excluded)
{
	struct in_group_event event = {
		.header = {.size = sizeof(event), .type = EVENT_IN_GROUP, .time = time},
		.tgid = tgid,
		.was_excluded = was_excluded,
		.group = group,
	};

	return put_event(&event, sizeof(event), time);
}

/* Is the current process in a group that is sampled? `tgid`: in the collector's numbers. */
static __always_inline bool in_wanted_group(struct task_struct *task, __u64 time,
					    const struct task_ids *initial, __u32 tgid)
{
	__u32 at = (initial->tgid * 2654435761u) & (GROUP_SLOTS - 1);
	__u64 group = bpf_get_current_cgroup_id(), life;
	struct group_slot *slot = bpf_map_lookup_elem(&group_slots, &at);
	bool same, was_excluded;

	if (!slot)
		return true;
	life = HAVE_TYPED_TASK ? task->group_leader->start_time
			       : BPF_CORE_READ(task, group_leader, start_time);
	life ^= (__u64)initial->tgid << 40;
	same = slot->life == life;
	if ((!same || slot->group != group) && initial->tid != initial->tgid)
		group = leaders_group();
	if (same && slot->group == group)
		return !group_is_excluded(group);
	was_excluded = same && group_is_excluded(slot->group);
	/* else the ring is full, and the next tick tries again */
	if (!emit_group(group, time, tgid, was_excluded)) {
		slot->life = life;
		slot->group = group;
	}
	/* a thread of an excluded group has no CPU time baseline before this is reported */
	return !was_excluded && !group_is_excluded(group);
}

#endif
