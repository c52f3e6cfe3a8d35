/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CPU time of the running thread, exact, without a hook on context switches.
 *
 * The scheduler updates se.sum_exec_runtime at switches and at its own tick, up to 10 ms ago, and
 * stores the time of the update in se.exec_start. The missing part is the time since, in the same
 * clock: rq->clock_task, which is local_clock() less interrupt and stolen time. It is needed as of
 * *now*, but rq->clock is as old as sum_exec_runtime.
 *
 *  - perf's clock is local_clock(), too. An event's `enabled` time is that clock since the event
 *    was enabled, so (enabled - rq->clock) is a constant of this CPU plus the age of rq->clock. Its
 *    minimum over all readings is the constant; no drift, both are one clock. The collector finds
 *    it to a microsecond before the first sample: on each CPU it reads its own CPU time, which sets
 *    rq->clock, and runs `prepare` at once. Later readings can only improve it.
 *  - rq->clock - rq->clock_task is the time taken out so far.
 *
 * So: now_task = (enabled - constant) - (rq->clock - rq->clock_task). Time that a hypervisor has
 * stolen since the scheduler's last update is not in there yet: a sample can be that much too
 * large, never too small, and a later one corrects it.
 *
 * The run queue is reached through the task, se.cfs_rq->rq, which exists with
 * CONFIG_FAIR_GROUP_SCHED (the per-CPU symbol `runqueues` only with CONFIG_KALLSYMS_ALL). Without
 * it, exec_start replaces rq->clock_task: the "constant" then grows with interrupt and stolen time,
 * and its minimum is taken over the last 4 to 8 seconds.
 */
#ifndef BPF_CPUTIME_BPF_H
#define BPF_CPUTIME_BPF_H

#include "maps.bpf.h"

#define CLOCK_WINDOW_SHIFT 32 /* ns: 4.3 s */

/* The run queue's task clock now, for event time `enabled`; both in ns. */
static __always_inline __u64 task_clock_by_rq(struct cpu_books *books, struct task_struct *task,
					      __u64 enabled)
{
	__u64 clock, taken;
	__s64 offset;

	if (HAVE_TYPED_TASK) {
		struct rq *rq = for_reading(task)->se.cfs_rq->rq;

		clock = rq->clock;
		taken = clock - rq->clock_task;
	} else {
		struct rq *rq = BPF_CORE_READ(task, se.cfs_rq, rq);

		clock = BPF_CORE_READ(rq, clock);
		taken = clock - BPF_CORE_READ(rq, clock_task);
	}
	offset = enabled - clock;
	if (!books->clock_offset[0] || offset < books->clock_offset[0])
		books->clock_offset[0] = offset;
	return enabled - books->clock_offset[0] - taken;
}

/* `offsets`: the least one in the window of `now`, and the least in the window before. */
static __always_inline void note_offset(__s64 *offsets, __u64 *window, __u64 now, __s64 offset)
{
	__u64 present = (now >> CLOCK_WINDOW_SHIFT) + 1;

	if (*window != present) {
		offsets[1] = *window ? offsets[0] : offset;
		offsets[0] = offset;
		*window = present;
	}
	if (offset < offsets[0])
		offsets[0] = offset;
}

static __always_inline __s64 least_offset(const __s64 *offsets)
{
	return offsets[1] < offsets[0] ? offsets[1] : offsets[0];
}

static __always_inline __u64 task_clock_by_exec_start(struct cpu_books *books, __u64 enabled,
						      __u64 exec_start)
{
	note_offset(books->clock_offset, &books->clock_window, enabled, enabled - exec_start);
	return enabled - least_offset(books->clock_offset);
}

/* CPU time of `task`, which is the current one; `enabled`: of this CPU's event in `ticks`, now. */
static __always_inline __u64 cpu_time(struct cpu_books *books, struct task_struct *task,
				      __u64 enabled)
{
	__u64 exec_start = TASK_READ(task, se.exec_start);
	__u64 used = TASK_READ(task, se.sum_exec_runtime);
	__u64 now;

	if (HAVE_RQ_CLOCK)
		now = task_clock_by_rq(books, task, enabled);
	else
		now = task_clock_by_exec_start(books, enabled, exec_start);
	return (__s64)(now - exec_start) > 0 ? used + (now - exec_start) : used;
}

#endif
