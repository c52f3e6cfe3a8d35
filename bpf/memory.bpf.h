/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread whose stack is walked, and its memory: the current thread in the sampler; in the visitor (visit.bpf.c)
 * another one, whose memory is paged in if need be.
 */
#ifndef BPF_MEMORY_BPF_H
#define BPF_MEMORY_BPF_H

#include "maps.bpf.h"

#ifdef VISITOR

extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *task) __ksym;

/* The thread that is visited. Global functions cannot be given a task, so each read looks it up. */
struct {
	__u32 tid; /* in the initial pid namespace */
	int begun; /* UNWIND_STEP_ON, or why there is no user stack */
	__u64 started, fsbase;
	__u64 changes; /* visitor.table_changes, when it began */
	struct seen_thread as;
} visited;

static __always_inline long read_user(void *to, __u32 size, __u64 address)
{
	struct task_struct *task = bpf_task_from_pid(visited.tid);
	long err = -1;

	if (!task)
		return err;
	if (task->start_time == visited.started)
		err = bpf_copy_from_user_task(to, size, (void *)address, task, 0);
	bpf_task_release(task);
	return err;
}

static __always_inline __u64 thread_base(void)
{
	return visited.fsbase;
}

#else

static __always_inline long read_user(void *to, __u32 size, __u64 address)
{
	return bpf_probe_read_user(to, size, (void *)address);
}

/* As it was set through the kernel; a wrfsbase instruction is not seen. */
static __always_inline __u64 thread_base(void)
{
	return TASK_READ(current_task(), thread.fsbase);
}

#endif

#endif
