/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which tasks are targets, and their numbers.
 *
 * The set has numbers of the initial pid namespace: the hooks have them at a task's birth and at
 * its very end, at no cost. A collector in another pid namespace does not, so its entries are
 * marked TARGET_IN_NAMESPACE and looked up by the task's number there. All output has its numbers.
 *
 * A member is removed when its task is freed, not when it exits: since 6.15 a process that frees a
 * lot of memory spends most of its exit after the exit hook.
 */
#ifndef BPF_FILTER_BPF_H
#define BPF_FILTER_BPF_H

#include "maps.bpf.h"
#include "names.bpf.h"

#define PID_NAMESPACE_DEPTH 32 /* MAX_PID_NS_LEVEL of the kernel */

struct task_ids {
	__u32 tgid, tid;
};

/* The task's number in the collector's pid namespace; 0: it is not visible there. */
static __noinline __u32 number_in_namespace(const struct task_struct *task)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	const void *number = pid;
	__u32 level;

	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	number += bpf_core_field_offset(pid->numbers);
	for (__u32 i = 0; i <= PID_NAMESPACE_DEPTH; i++) {
		const struct upid *upid = number;

		if (i > level)
			break;
		if (BPF_CORE_READ(upid, ns, ns.inum) == pid_namespace_inode)
			return BPF_CORE_READ(upid, nr);
		number += bpf_core_type_size(struct upid);
	}
	return 0;
}

/* The collector's numbers of any task. False: it has none. */
static __always_inline bool collector_ids(const struct task_struct *task, struct task_ids *ids)
{
	if (!pid_namespace_inode) {
		ids->tgid = BPF_CORE_READ(task, tgid);
		ids->tid = BPF_CORE_READ(task, pid);
		return true;
	}
	ids->tid = number_in_namespace(task);
	if (!ids->tid)
		return false;
	ids->tgid = number_in_namespace(BPF_CORE_READ(task, group_leader));
	return ids->tgid != 0;
}

/*
 * A number is reused as soon as its task is reaped, some milliseconds before the task and its entry
 * are freed. So the first task seen under a number is the target, and a later one is not.
 */
static __always_inline bool is_the_one(struct task_struct *task, __u64 *start_time)
{
	__u64 started;

	if (filter_threads)
		started = TASK_READ(task, start_time);
	else
		started = HAVE_TYPED_TASK ? for_reading(task)->group_leader->start_time
					  : BPF_CORE_READ(task, group_leader, start_time);
	if (!*start_time)
		*start_time = started;
	return *start_time == started;
}

/* Of the current task. `initial`: its numbers in the initial pid namespace. */
static __always_inline bool in_targets(struct task_struct *task, const struct task_ids *initial,
				       const struct task_ids *ours)
{
	__u64 key = filter_threads ? initial->tid : initial->tgid;
	__u64 *start_time = bpf_map_lookup_elem(&targets, &key);

	if (!start_time && pid_namespace_inode) {
		key = TARGET_IN_NAMESPACE | (filter_threads ? ours->tid : ours->tgid);
		start_time = bpf_map_lookup_elem(&targets, &key);
	}
	return start_time && is_the_one(task, start_time);
}

#define HELPER_NAME 0x2d666f7270737973ull /* sysprof- */

/*
 * Is `task` of a helper process: a child or grandchild of the collector with that name? COMMAND is
 * a child as well, but under its own name. No other process can match.
 */
static __noinline bool is_helper(const struct task_struct *task)
{
	__u32 mother, grandmother;
	__u64 name[2] = {};

	/* two loads, or four calls of a helper */
	if (HAVE_TYPED_TASK) {
		const struct task_struct *parent = for_reading(task)->real_parent;

		mother = parent->tgid;
		grandmother = parent->real_parent->tgid;
	} else {
		mother = BPF_CORE_READ(task, real_parent, tgid);
		grandmother = BPF_CORE_READ(task, real_parent, real_parent, tgid);
	}

	if (mother != self_tgid && grandmother != self_tgid)
		return false;
	BPF_CORE_READ_INTO(&name, task, comm);
	return name[0] == HELPER_NAME;
}

static __always_inline bool is_own(const struct task_struct *task, __u32 tgid)
{
	return tgid == self_tgid || is_helper(task);
}

/* By the set of targets, or by names. `ours`: its numbers for the collector; `now`: see there. */
static __always_inline enum choice choose_target(struct task_struct *task,
						 const struct task_ids *initial,
						 const struct task_ids *ours, __u64 now)
{
	bool is_chosen = filter_processes || filter_threads ? in_targets(task, initial, ours)
							    : !include_kinds;

	if (filter_names)
		return choose_by_names(task, ours->tgid, is_chosen, now);
	return is_chosen ? CHOICE_IN : CHOICE_OUT;
}

/*
 * Is `task`, the current one, a target? `initial`: its initial numbers; fills in the collector's.
 */
static __always_inline enum choice choose_current(struct task_struct *task,
						  const struct task_ids *initial,
						  struct task_ids *ours, __u64 now)
{
	if (exclude_self && is_own(task, initial->tgid))
		return CHOICE_OUT;
	if (!pid_namespace_inode)
		*ours = *initial;
	else if (!collector_ids(task, ours))
		return CHOICE_OUT;
	if (filter_cgroup && bpf_current_task_under_cgroup(&cgroups, 0) != 1)
		return CHOICE_OUT;
	return choose_target(task, initial, ours, now);
}

/* The same in a hook: it may be one. */
static __always_inline bool current_is_wanted(struct task_struct *task,
					      const struct task_ids *initial, struct task_ids *ours)
{
	return choose_current(task, initial, ours, 0) != CHOICE_OUT;
}

/*
 * A thread that the collector has added, found among all tasks. Its key becomes its number in the
 * initial pid namespace, the only earlier number that on_exec has. Its start time is stored,
 * because otherwise the end of the old leader would remove the entry.
 */
static __always_inline void identify_thread(const struct task_struct *task)
{
	struct task_ids ours = {};
	__u64 key, initial = (__u32)BPF_CORE_READ(task, pid);
	__u64 *known, started = BPF_CORE_READ(task, start_time);

	if (!collector_ids(task, &ours))
		return;
	key = ours.tid;
	if (pid_namespace_inode)
		key |= TARGET_IN_NAMESPACE;
	known = bpf_map_lookup_elem(&targets, &key);
	if (!known || *known)
		return;
	if (!bpf_map_update_elem(&targets, &initial, &started, BPF_ANY) && key != initial)
		bpf_map_delete_elem(&targets, &key);
}

/* The current task (`parent`) has made `child`. */
static __always_inline void follow_fork(const struct task_ids *parent,
					const struct task_struct *child)
{
	struct task_ids initial = {BPF_CORE_READ(child, tgid), BPF_CORE_READ(child, pid)};
	struct task_ids ours = {};
	__u64 key = filter_threads ? initial.tid : initial.tgid;
	__u64 start_time = BPF_CORE_READ(child, start_time);

	if (filter_processes && initial.tgid == parent->tgid)
		return;
	if (pid_namespace_inode && !collector_ids(current_task(), &ours))
		return;
	if (!in_targets(current_task(), parent, &ours))
		return;
	if (bpf_map_update_elem(&targets, &key, &start_time, BPF_ANY))
		__sync_fetch_and_add(&target_set_full, 1);
}

/*
 * An exiting task was added by its number in the collector's namespace, which it is about to lose:
 * use its initial number from here on.
 */
static __always_inline void rename_exiting(struct task_struct *task, const struct task_ids *initial,
					   const struct task_ids *ours)
{
	__u64 key = TARGET_IN_NAMESPACE | (filter_threads ? ours->tid : ours->tgid);
	__u64 start_time;

	if (filter_processes && initial->tid != initial->tgid)
		return;
	if (!bpf_map_lookup_elem(&targets, &key))
		return;
	start_time = BPF_CORE_READ(task, start_time);
	bpf_map_delete_elem(&targets, &key);
	key = filter_threads ? initial->tid : initial->tgid;
	bpf_map_update_elem(&targets, &key, &start_time, BPF_ANY);
}

/* The task is freed. The leader of a process is the last to go. */
static __always_inline void forget_task(const struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	__u64 key = tid, *start_time;

	if (filter_processes && tid != (__u32)BPF_CORE_READ(task, tgid))
		return;
	start_time = bpf_map_lookup_elem(&targets, &key);
	/* a new task may have got the number already */
	if (start_time && (!*start_time || *start_time == BPF_CORE_READ(task, start_time)))
		bpf_map_delete_elem(&targets, &key);
}

/* The thread is sampled. One that exits has had its last report, or needs none. */
static __always_inline void note_sampled(const struct task_struct *task, __u32 tid)
{
	__u32 slot = tid % SAMPLED_THREADS;
	__u32 *noted = ends_of_sampled ? bpf_map_lookup_elem(&sampled_threads, &slot) : NULL;

	if (noted && *noted != tid && !(TASK_READ(task, flags) & PF_EXITING))
		*noted = *noted ? SAMPLED_MANY : tid;
}

/* The thread ends: may it have been sampled? */
static __always_inline bool was_sampled(__u32 tid)
{
	__u32 slot = tid % SAMPLED_THREADS;
	__u32 *noted = ends_of_sampled ? bpf_map_lookup_elem(&sampled_threads, &slot) : NULL;

	if (!noted || *noted == SAMPLED_MANY)
		return true;
	if (*noted != tid)
		return false;
	*noted = 0;
	return true;
}

#endif
