/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The visitor: what do threads wait for? Nothing is hooked and no thread is disturbed: a process
 * (live/parts/wall.c) runs these programs from time to time.
 *
 *  scan   goes through all threads, and finds those of targets that have run since the last visit
 *  visit  takes the account and the stacks of one of them
 *  pass   before Linux 6.7: both in one
 *
 * A thread that has not run since the last visit waits where it did. A running thread's stack
 * moves: the ticks have it. A visit reads another process's memory, which may sleep until a page is
 * there: for ever, if it is on a file system of that process. So only the visitor's process waits.
 *
 * The maps of tables, places and targets are the sampler's.
 */
#define VISITOR
#include "maps.bpf.h"
#include "cputime.bpf.h"
#include "filter.bpf.h"
#include "unwind.bpf.h"
#include "holders.bpf.h"
#include "completions.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
extern int bpf_iter_task_new(struct bpf_iter_task___own *it, struct task_struct *task,
			     unsigned int flags) __ksym __weak;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task___own *it) __ksym __weak;
extern void bpf_iter_task_destroy(struct bpf_iter_task___own *it) __ksym __weak;
extern int bpf_iter_num_new(struct bpf_iter_num___own *it, int start, int end) __ksym __weak;
extern int *bpf_iter_num_next(struct bpf_iter_num___own *it) __ksym __weak;
extern void bpf_iter_num_destroy(struct bpf_iter_num___own *it) __ksym __weak;

#define ALL_PROCESSES	       0	     /* BPF_TASK_ITER_ALL_PROCS: their leaders */
#define ALL_THREADS	       1	     /* BPF_TASK_ITER_ALL_THREADS */
#define PROCESS_THREADS	       2	     /* BPF_TASK_ITER_PROC_THREADS */
#define SEEN_THREADS	       65536u	     /* a power of two, unless it is made less */
#define LIST_NS		       1000000000ull /* a list of processes is not older */
#define WALKS_MORE	       3u
#define WALK_AGAIN_NS	       100000000ull /* then four times as long each */

#define JOBCTL_TRAP_FREEZE     0x00800000ul /* its control group is to be frozen */
#define TASK_STOPPED_OR_TRACED 0x000cu
#define TASK_PARKED_STATE      0x0040u
#define TASK_FROZEN_STATE      0x8000u
#define STATE_THROTTLED	       0x80000000u /* of seen_thread.state: no state of the kernel's */
#define FIRST_FAIR_PRIO	       100
#define GROUP_DEPTH	       64 /* levels of control groups */
#define WALK_TURNS	       (COPIED_PAGES + 32u)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_THREADS);
	__type(key, __u32);
	__type(value, struct seen_thread);
} seen_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1u << 22);
} visits SEC(".maps");

const volatile __u64 wanted_group;		   /* its id, if there is a filter */
const volatile __u32 seen_mask = SEEN_THREADS - 1; /* entries of seen_threads, less one */

struct visitor visitor;

static __always_inline void count(enum visit_line line)
{
	visitor.count[line]++;
}

static __always_inline struct seen_thread *seen_thread(__u32 tid)
{
	__u32 slot = tid & seen_mask;

	return bpf_map_lookup_elem(&seen_threads, &slot);
}

#define RUNS(task) BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu)

/* ---- clocks ---------------------------------------------------------------------------------- */

/*
 * The scheduler's times are in clocks of the run queues. The visitor's process has just been put on
 * its CPU, which has set that clock: CLOCK_MONOTONIC less it is a constant plus a few microseconds.
 * All CPUs have one such clock where the TSC is stable.
 */
static __always_inline void note_clock(__u64 now)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (HAVE_RQ_CLOCK)
		note_offset(visitor.clock_offset, &visitor.clock_window, now,
			    now - for_reading(task)->se.cfs_rq->rq->clock);
}

static __always_inline __s64 clock_offset(void)
{
	return least_offset(visitor.clock_offset);
}

/* When the task stopped running, or was last brought up to date if it runs. 0: unknown. */
static __always_inline __u64 ran_until(struct task_struct *task)
{
	struct rq *rq;

	if (!HAVE_RQ_CLOCK || !task->se.exec_start)
		return 0;
	rq = for_reading(task)->se.cfs_rq->rq;
	return task->se.exec_start + (rq->clock - rq->clock_task) + clock_offset();
}

/*
 * The run delay, with the wait so far of one that waits for a CPU. What its state says decides: a
 * thread that is being woken is queued before its state is another.
 */
static __always_inline __u64 delay_until(struct task_struct *task, __u32 found, __u64 now)
{
	__u64 queued, delay;

	if (!bpf_core_field_exists(task->sched_info))
		return 0;
	delay = task->sched_info.run_delay;
	queued = task->sched_info.last_queued;
	if (!(found & VISIT_RUNNABLE) || !queued || !HAVE_RQ_CLOCK)
		return delay;
	queued += clock_offset();
	return (__s64)(now - queued) > 0 ? delay + (now - queued) : delay;
}

/* ---- the scan -------------------------------------------------------------------------------- */

static __always_inline __u32 user_of(struct task_struct *task)
{
	return for_reading(task)->real_cred->uid.val;
}

/* A global function, verified once. */
__attribute__((noinline)) int is_in_bans(__u32 tgid, __u32 user)
{
#pragma unroll
	for (__u32 i = 0; i < VISIT_BANNED_MAX; i++)
		if (visitor.banned[i] == tgid || (user && visitor.banned_users[i] == user))
			return true;
	return false;
}

/* Did a read of its memory, or of its user's processes, hang? */
static __always_inline bool is_banned(struct task_struct *task)
{
	return visitor.banned[0] && is_in_bans(task->tgid, user_of(task));
}

static __always_inline bool is_of_kernel(struct task_struct *task)
{
	return task->flags & (PF_KTHREAD | PF_USER_WORKER | PF_IO_WORKER);
}

static __always_inline __u64 group_at(const struct cgroup *group, __u32 level)
{
	const void *ancestors = group;
	struct cgroup *ancestor;

	ancestors += bpf_core_field_offset(group->ancestors);
	if (bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
				  ancestors + level * sizeof(ancestor)))
		return 0;
	return BPF_CORE_READ(ancestor, kn, id);
}

/* Is it in the wanted group, or below? The first thread that is sets the group's level. */
static __noinline bool in_wanted_group(const struct task_struct *task)
{
	const struct cgroup *group = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	__u32 level = BPF_CORE_READ(group, level), known = visitor.group_level;

	if (known)
		return known <= level && group_at(group, known) == wanted_group;
	for (__u32 i = 0; i <= GROUP_DEPTH && i <= level; i++) {
		if (group_at(group, i) != wanted_group)
			continue;
		visitor.group_level = i;
		return true;
	}
	return false;
}

/* A question may be of a thread that only waits. */
static __always_inline long send_question(const struct name_question_event *question, __u64 size)
{
	return bpf_ringbuf_output(&visits, (void *)question, size, BPF_RB_NO_WAKEUP);
}

static __always_inline bool is_wanted(struct task_struct *task, struct task_ids *ours)
{
	struct task_ids initial = {task->tgid, task->pid};

	if (is_of_kernel(task))
		return false;
	if (exclude_self && is_own(task, task->tgid))
		return false;
	if (is_banned(task))
		return false;
	if (filter_cgroup && !in_wanted_group(task))
		return false;
	*ours = initial;
	if (pid_namespace_inode && !collector_ids(task, ours))
		return false;
	return choose_target(task, &initial, ours, visitor.made_at) == CHOICE_IN;
}

/* Is the quota of its control group, or of one above, used up? Before 6.18 by run queues. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	return HAVE_RQ_CLOCK && bpf_core_field_exists(struct cfs_rq, throttle_count) &&
	       !task->__state && task->prio >= FIRST_FAIR_PRIO &&
	       for_reading(task)->se.cfs_rq->throttle_count;
}

/* A thread that waits for a CPU can still become throttled. */
static __always_inline __u32 state_of(struct task_struct *task)
{
	return task->__state | (is_throttled(task) ? STATE_THROTTLED : 0);
}

static __always_inline bool is_unchanged(struct task_struct *task, struct seen_thread *seen)
{
	return seen->started == task->start_time && seen->runtime == task->se.sum_exec_runtime &&
	       seen->switches == task->nvcsw + task->nivcsw && seen->state == state_of(task);
}

/* Was its account taken in this round? */
static __always_inline bool is_of_round(const struct seen_thread *seen)
{
	return seen->round == *(volatile __u32 *)&visitor.round;
}

/* Was its stack taken in this window? */
static __always_inline bool is_of_window(const struct seen_thread *seen)
{
	return seen->window == *(volatile __u32 *)&visitor.window;
}

/* It runs, but did not at the drawn moment. It may wait again before its stack is taken. */
static __always_inline bool has_just_begun(struct task_struct *task)
{
	return HAVE_RQ_CLOCK && bpf_core_field_exists(task->sched_info) &&
	       task->sched_info.last_arrival + clock_offset() >= visitor.drawn;
}

static __always_inline bool make_due(__u32 tid)
{
	__u32 at = visitor.due_count;

	if (at >= VISIT_DUE_MAX)
		return false;
	visitor.due[at & (VISIT_DUE_MAX - 1)] = tid;
	visitor.due_count = at + 1;
	return true;
}

/* Makes a wanted thread due, or counts why not. */
static __always_inline void look_at(struct task_struct *task, __u64 now)
{
	struct seen_thread *seen;

	if (task->exit_state)
		return;
	seen = seen_thread(task->pid);
	if (!seen)
		return;
	count(VISIT_LINE_LOOKS);
	if (!visitor.final) {
		if (RUNS(task) && !has_just_begun(task)) {
			count(VISIT_LINE_RUNNING);
			return;
		}
		if (!RUNS(task) && is_unchanged(task, seen) && is_of_window(seen) &&
		    is_of_round(seen) && (!seen->again || now < seen->again)) {
			seen->unchanged = now;
			count(VISIT_LINE_UNCHANGED);
			return;
		}
	}
	if (!make_due(task->pid))
		count(VISIT_LINE_TOO_MANY);
}

static __always_inline void look_at_all_threads(__u64 now)
{
	struct bpf_iter_task___own it;
	struct task_struct *task;
	struct task_ids ours;

	bpf_iter_task_new(&it, NULL, ALL_THREADS);
	while ((task = bpf_iter_task_next(&it)))
		if (is_wanted(task, &ours))
			look_at(task, now);
	bpf_iter_task_destroy(&it);
}

static __always_inline void look_at_threads(struct task_struct *process, __u64 now)
{
	struct bpf_iter_task___own it;
	struct task_struct *task;

	bpf_iter_task_new(&it, process, PROCESS_THREADS);
	while ((task = bpf_iter_task_next(&it)))
		if (!is_of_kernel(task))
			look_at(task, now);
	bpf_iter_task_destroy(&it);
}

static __always_inline void look_at_process(__u32 pid, __u64 now)
{
	/* an iterator takes it with a reference only */
	struct task_struct *process = bpf_task_from_pid(pid);
	struct task_ids ours;

	if (!process)
		return;
	if (is_wanted(process, &ours))
		look_at_threads(process, now);
	bpf_task_release(process);
}

/* It changes with each process and thread that is made. */
static __always_inline __u32 next_id(void)
{
	return BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid, numbers[0].ns, idr.idr_next);
}

static __always_inline void list_process(__u32 pid)
{
	__u32 at = visitor.listed_count;

	visitor.listed[at & (VISIT_LISTED_MAX - 1)] = pid;
	visitor.listed_count = at + 1;
}

static __always_inline void find_processes(__u64 now)
{
	struct bpf_iter_task___own it;
	struct task_struct *leader;
	struct task_ids ours;

	visitor.listed_at = now;
	visitor.listed_next_id = next_id();
	visitor.listed_count = 0;
	bpf_iter_task_new(&it, NULL, ALL_PROCESSES);
	while ((leader = bpf_iter_task_next(&it))) {
		if (!is_wanted(leader, &ours))
			continue;
		list_process(leader->pid);
		look_at_process(leader->pid, now);
	}
	bpf_iter_task_destroy(&it);
}

static __always_inline void look_at_listed(__u64 now)
{
	struct bpf_iter_num___own it;
	int *at;

	bpf_iter_num_new(&it, 0, VISIT_LISTED_MAX);
	while ((at = bpf_iter_num_next(&it))) {
		__u32 i = *at;

		if (i >= visitor.listed_count)
			break;
		look_at_process(visitor.listed[i & (VISIT_LISTED_MAX - 1)], now);
	}
	bpf_iter_num_destroy(&it);
}

/*
 * The threads of target processes. Finding those among all processes takes longer than a few
 * visits. While no process is made they stay the same, but for what the collector adds.
 */
static __always_inline void look_at_processes(__u64 now)
{
	if (visitor.listed_count && visitor.listed_count <= VISIT_LISTED_MAX &&
	    visitor.listed_next_id == next_id() && now - visitor.listed_at < LIST_NS)
		look_at_listed(now);
	else
		find_processes(now);
}

SEC("syscall")
int scan(void *ctx __attribute__((unused)))
{
	__u64 now = bpf_ktime_get_ns();

	note_clock(now);
	visitor.due_count = 0;
	visitor.made_at = now;
	bpf_rcu_read_lock();
	if ((filter_processes || include_kinds) && !filter_cgroup)
		look_at_processes(now);
	else
		look_at_all_threads(now);
	bpf_rcu_read_unlock();
	return 0;
}

/* ---- one thread ------------------------------------------------------------------------------ */

/*
 * The timer interrupt that wakes the visitor also ends waits of others, whose timers have slack. A
 * thread woken then that has not run since was blocked at the drawn moment, and has that stack.
 */
static __always_inline bool was_woken_with_us(struct task_struct *task, __u32 state)
{
	__u64 since = ran_until(task), queued;

	if (visitor.final || !HAVE_RQ_CLOCK || !bpf_core_field_exists(task->sched_info) || state ||
	    RUNS(task) || is_throttled(task))
		return false;
	queued = task->sched_info.last_queued + clock_offset();
	return since < visitor.drawn && visitor.drawn <= queued;
}

/*
 * By the freezer of version 2, which leaves its state as it was. Some other waits count as frozen
 * for the group, of a stopped thread or for a child of vfork, but only a freezing group sets both.
 */
static __always_inline bool is_frozen(struct task_struct *task)
{
	return bpf_core_field_exists(task->frozen) && task->jobctl & JOBCTL_TRAP_FREEZE &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, frozen);
}

static __always_inline __u32 found_in(struct task_struct *task, __u32 state)
{
	__u32 found = 0;

	if (RUNS(task))
		found |= VISIT_RUNNING;
	else if (is_throttled(task))
		found |= VISIT_RUNNABLE | VISIT_THROTTLED;
	else if (!state)
		found |= VISIT_RUNNABLE;
	if (state & (TASK_STOPPED_OR_TRACED | TASK_PARKED_STATE | TASK_FROZEN_STATE) ||
	    is_frozen(task))
		found |= VISIT_STOPPED;
	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
		found |= VISIT_IO_WAIT;
	return found;
}

/* A running thread's account is as old as the scheduler's last update. */
static __always_inline __u64 used_until(struct task_struct *task, __u32 found, __u64 now)
{
	__u64 used = task->se.sum_exec_runtime, until = ran_until(task);

	if (!(found & VISIT_RUNNING) || !until || (__s64)(now - until) <= 0)
		return used;
	return used + (now - until);
}

static __always_inline void take_account(struct task_struct *task, struct scratch *s,
					 const struct task_ids *ours, struct seen_thread *seen)
{
	struct visit_account *v = &s->visit;
	__u32 state = task->__state;

	v->header.type = EVENT_VISIT;
	v->header.flags = 0;
	v->seen = bpf_ktime_get_ns();
	v->started = task->start_time;
	v->unchanged = seen->started == v->started ? seen->unchanged : 0;
	v->switches = task->nvcsw;
	v->call = VISIT_CALL_UNKNOWN;
	v->holder = 0;
	v->reserved = 0;
	v->found = found_in(task, state);
	v->run_delay = delay_until(task, v->found, v->seen);
	if (was_woken_with_us(task, state)) {
		v->seen = visitor.drawn;
		v->run_delay = task->sched_info.run_delay;
		v->found &= ~VISIT_RUNNABLE;
	}
	v->since = ran_until(task);
	s->sample.header.type = EVENT_SAMPLE;
	s->sample.header.flags = 0;
	s->sample.header.time = v->seen;
	s->sample.tsc = 0;
	s->sample.cpu_time = used_until(task, v->found, v->seen);
	s->sample.tgid = ours->tgid;
	s->sample.tid = ours->tid;
	s->sample.cpu = 0;
	s->sample.kernel_frames = 0;
	s->sample.user_frames = 0;
	s->sample.from_user = 0;
	s->sample.notes = 0;
	s->sample.places_tag = 0;
	s->sample.period = 0;
	s->sample.user_end = STACK_END_DISABLED;
	s->runtimes = 0;
}

static __always_inline void take_kernel_stack(struct task_struct *task, struct scratch *s)
{
	long size;

	if (!kernel_stacks)
		return;
	size = bpf_get_task_stack(task, s->sample.frames, SAMPLE_KERNEL_DEPTH_MAX * sizeof(__u64),
				  0);
	if (size > 0)
		s->sample.kernel_frames = size / sizeof(__u64);
}

static __always_inline __u32 runtimes_of(const struct scratch *s)
{
	if (!use_tables || !user_stacks || !may_have_runtimes(s->sample.tgid))
		return 0;
	return find_runtimes(s->sample.tgid, s->sample.header.time);
}

/* From here on memory of the thread is read. */
static __always_inline void begin_stack(struct task_struct *task, struct scratch *s)
{
	take_kernel_stack(task, s);
	take_kernel_lock(task, &s->visit);
	visited.tid = task->pid;
	visited.started = task->start_time;
	visited.fsbase = task->thread.fsbase;
	s->probes = probes_of(task);
	visited.probes_page = s->probes ? probes_page_of(task) : 0;
	visitor.visited_process = task->tgid;
	visitor.visited_user = user_of(task);
	visited.begun = entry_of(task, &s->regs);
	if (visited.begun != UNWIND_STEP_ON) {
		s->runtimes = 0;
		return;
	}
	visited.has_our_numbers = has_our_numbers(task);
	s->visit.call = (__s64)s->regs.orig_rax >= 0 ? (__s32)s->regs.orig_rax : VISIT_NO_CALL;
	if (has_pending_operations(task, s->visit.call, &s->regs))
		s->visit.found |= VISIT_PENDING;
}

/* The mappings and runtimes by which a stack is walked and named. 0: none is known. */
static __always_inline __u64 known_of_process(struct scratch *s)
{
	const struct notes *n = notes();

	s->runtimes = runtimes_of(s);
	find_process(s);
	return (__u64)s->sample.places_tag << 32 |
	       (s->runtimes && n ? (__u32)n->info.as_of | 1u : 0);
}

/*
 * Tables, mappings and runtimes of a process become known after its first visits, but a long wait
 * has no later ones. So its stack is taken a few more times, unless it is whole and up to date.
 */
static __always_inline void plan_again(const struct seen_thread *seen)
{
	__u32 walks = 0;

	if (seen->started == visited.as.started && seen->runtime == visited.as.runtime &&
	    seen->switches == visited.as.switches && seen->state == visited.as.state)
		walks = seen->walks + 1;
	visited.as.walks = walks;
	visited.as.again = walks < WALKS_MORE
				   ? visited.as.unchanged + (WALK_AGAIN_NS << (2 * walks))
				   : 0;
}

static __always_inline bool is_up_to_date(const struct seen_thread *seen)
{
	return seen->again && seen->known && seen->known == visited.as.known;
}

static __always_inline enum visit_line look_again(struct seen_thread *seen)
{
	plan_again(seen);
	seen->unchanged = visited.as.unchanged;
	seen->walks = visited.as.walks;
	seen->again = visited.as.again;
	return VISIT_LINE_UNCHANGED;
}

static __always_inline enum visit_line emit_visit(struct scratch *s, struct seen_thread *seen)
{
	__u64 frames = (__u64)s->sample.kernel_frames + s->sample.user_frames;
	__u64 size;

	if (frames > FRAMES_MAX)
		return VISIT_LINE_NO_ROOM;
	size = append_notes(s, sizeof(struct sample_event) + frames * sizeof(__u64));
	s->sample.header.size = size;
	s->visit.header.size = sizeof(s->visit) + size;
	s->visit.header.time = bpf_ktime_get_ns();
	UNWIND_HIDE(size);
	if (size > SAMPLE_SPACE ||
	    bpf_ringbuf_output(&visits, &s->visit, sizeof(s->visit) + size, BPF_RB_NO_WAKEUP))
		return VISIT_LINE_NO_ROOM;
	plan_again(seen);
	*seen = visited.as;
	return VISIT_LINE_WALKED;
}

static __always_inline void note_thread(struct task_struct *task)
{
	visited.as.started = task->start_time;
	visited.as.runtime = task->se.sum_exec_runtime;
	visited.as.switches = task->nvcsw + task->nivcsw;
	visited.as.state = state_of(task);
	visited.as.window = *(volatile __u32 *)&visitor.window;
	visited.as.round = *(volatile __u32 *)&visitor.round;
	visited.changes = *(volatile __u64 *)&visitor.table_changes;
}

/* VISIT_LINE_COUNT: it goes on. */
static __always_inline enum visit_line begin_thread(struct task_struct *task, struct scratch *s)
{
	struct seen_thread *seen = seen_thread(task->pid);
	struct task_ids ours = {task->tgid, task->pid};

	if (!seen || task->exit_state || (pid_namespace_inode && !collector_ids(task, &ours)))
		return VISIT_LINE_GONE;
	note_thread(task);
	if (!visitor.final && RUNS(task))
		return VISIT_LINE_RUNNING;
	take_account(task, s, &ours, seen);
	visited.as.unchanged = s->visit.seen;
	if (visitor.final ||
	    (!is_of_round(seen) && is_of_window(seen) && is_unchanged(task, seen))) {
		visited.as.known = seen->known;
		s->visit.found |= VISIT_ACCOUNT;
		return emit_visit(s, seen);
	}
	visited.as.known = known_of_process(s);
	if (is_up_to_date(seen) && is_of_window(seen) && is_unchanged(task, seen))
		return look_again(seen);
	begin_stack(task, s);
	return VISIT_LINE_COUNT;
}

/* The readings of a thread have to be of one moment: it must not have run meanwhile. */
static __always_inline enum visit_line finish_thread(struct task_struct *task, struct scratch *s)
{
	struct seen_thread *seen = seen_thread(task->pid);

	if (!seen || task->exit_state || task->start_time != visited.started)
		return VISIT_LINE_GONE;
	if (!is_unchanged(task, &visited.as) || RUNS(task) ||
	    visited.changes != *(volatile __u64 *)&visitor.table_changes)
		return VISIT_LINE_MOVED;
	/* a lock may get another holder while the thread waits */
	if (s->sample.user_end != STACK_END_ROOT || s->visit.holder)
		visited.as.known = 0;
	return emit_visit(s, seen);
}

static __always_inline void take_python(struct scratch *s)
{
	struct notes *n = notes();

	if (!n)
		return;
	if (visited.has_our_numbers && !(s->visit.found & VISIT_LOCK) && !s->visit.holder)
		s->visit.holder = gil_holder(&n->info.python, &s->regs);
	walk_python(n, s->sample.header.time + BUDGET_NS / 2);
	s->next_anchor = next_anchor(n);
}

/* Up to the innermost frame. UNWIND_STEP_ON or an end. A global function, verified once. */
__attribute__((noinline)) int begin_walk(void)
{
	struct scratch *s = scratch();
	int begun = visited.begun;

	if (!s)
		return STACK_END_NO_FRAME;
	if (begun != UNWIND_STEP_ON && begun != STACK_END_COMPAT)
		return begun;
	s->sample.user_frames = 0;
	s->sample.header.time = bpf_ktime_get_ns();
	s->next_anchor = NO_ANCHOR;
	begin_at_entry(s);
	if (begun == UNWIND_STEP_ON) {
		if (visited.has_our_numbers && !(s->visit.found & VISIT_LOCK))
			s->visit.holder = mutex_holder(&s->regs);
		if (s->runtimes)
			s->runtimes = runtimes_of(s);
		if (s->runtimes & RUNTIME_PYTHON)
			take_python(s);
	}
	return push_innermost(s, begun);
}

/*
 * With copied pages: restarts whenever one was missing. A turn adds a page, or walks some 128 frames.
 */
static __always_inline void take_user_stack(struct task_struct *task, struct scratch *s)
{
	int end = begin_walk();

	for (__u32 i = 0; i < WALK_TURNS; i++) {
		if (end == UNWIND_STEP_ON)
			end = unwind_steps();
		if (by_copies && copy_missing(task)) {
			end = begin_walk();
			continue;
		}
		if (end != UNWIND_STEP_ON)
			break;
		if (bpf_ktime_get_ns() - s->sample.header.time > BUDGET_NS)
			end = STACK_END_BUDGET;
	}
	if (end == UNWIND_STEP_ON)
		end = STACK_END_DEPTH;
	s->sample.user_end = may_be_apart(end) ? explain_end(task, s, end) : end;
	s->sample.header.time = s->visit.seen;
}

static __always_inline enum visit_line visit_thread(struct task_struct *task, struct scratch *s)
{
	enum visit_line line = begin_thread(task, s);

	if (line != VISIT_LINE_COUNT)
		return line;
	take_user_stack(task, s);
	return finish_thread(task, s);
}

/*
 * A thread that has just begun to run is visited again after all others. This makes up for ends of
 * waits that visits miss: they find the beginning of the next wait.
 */
static __always_inline bool put_off(struct task_struct *task)
{
	return !visitor.final && !(visitor.visited & VISIT_SECOND) && RUNS(task) &&
	       has_just_begun(task) && make_due(task->pid | VISIT_SECOND);
}

/* Of the thread that the process has put into visitor.visited. */
SEC("syscall")
int visit(void *ctx __attribute__((unused)))
{
	struct task_struct *task = bpf_task_from_pid(visitor.visited & ~VISIT_SECOND);
	struct scratch *s = scratch();

	unwind_epoch = visitor.used_epoch;
	if (!task || !s)
		count(VISIT_LINE_GONE);
	else if (!put_off(task))
		count(visit_thread(task, s));
	if (task)
		bpf_task_release(task);
	return 0;
}

/* ---- before Linux 6.7: all of a visit -------------------------------------------------------- */

static __always_inline void begin_pass(__u64 now)
{
	note_clock(now);
	visitor.made_at = now;
	unwind_epoch = visitor.used_epoch;
}

SEC("iter.s/task")
int pass(struct bpf_iter__task___own *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 now = bpf_ktime_get_ns();
	struct scratch *s = scratch();
	struct task_ids ours;

	if (!task || !s)
		return 0;
	if (!ctx->meta->seq_num)
		begin_pass(now);
	if (!is_wanted(task, &ours))
		return 0;
	visitor.due_count = 0;
	look_at(task, now);
	if (!visitor.due_count)
		return 0;
	visitor.visited = task->pid;
	begin_copies();
	count(visit_thread(task, s));
	visitor.visited = 0;
	return 0;
}
