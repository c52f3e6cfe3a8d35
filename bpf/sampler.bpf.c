/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs in the kernel: entry points only.
 *
 *  tick      runs at each timer tick (or overflow of a hardware counter) of each CPU: filter,
 *            clocks, stacks, emit. Every run ends in one line of the CPU's books.
 *  tick_in_python  continues `tick` with the walk of the Python frames
 *  finish    the rest of both: stacks, emit
 *  on_fork   adds children of targets to the set before they run; they inherit runtimes
 *  on_exec   renames an executing thread to its process's number; makes COMMAND a target; wakes the
 *            collector
 *  on_exit   reports the last CPU time of a thread; system-wide only if it was sampled
 *  on_free   removes it from the set
 *  identify  walks over all tasks once, to find the threads that are targets
 *  prepare   is run by the collector (BPF_PROG_TEST_RUN), not by an event
 */
#include "maps.bpf.h"
#include "filter.bpf.h"
#include "groups.bpf.h"
#include "clock.bpf.h"
#include "cputime.bpf.h"
#include "unwind.bpf.h"
#include "emit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Of `task`, the current one, in the initial pid namespace. */
static __always_inline void current_ids(struct task_struct *task, struct task_ids *ids)
{
	__u64 both;

	if (HAVE_TYPED_TASK) {
		ids->tgid = task->tgid;
		ids->tid = task->pid;
		return;
	}
	both = bpf_get_current_pid_tgid();
	ids->tgid = both >> 32;
	ids->tid = (__u32)both;
}

static __always_inline void kernel_stack(struct bpf_perf_event_data *ctx, struct scratch *s)
{
	long size;

	if (!kernel_stacks)
		return;
	size = bpf_get_stack(ctx, s->sample.frames, SAMPLE_KERNEL_DEPTH_MAX * sizeof(__u64), 0);
	if (size > 0)
		s->sample.kernel_frames = size / sizeof(__u64);
}

/* Only programs' own stacks have notes; kernel workers have the registers of their maker. */
static __always_inline __u32 noted_runtimes(struct bpf_perf_event_data *ctx,
					    struct task_struct *task, bool from_user, __u32 tgid,
					    __u64 time)
{
	if (!use_tables || !user_stacks || !may_have_runtimes(tgid))
		return 0;
	if (from_user)
		return ctx->regs.cs == USER32_CS ? 0 : find_runtimes(tgid, time);
	if (TASK_READ(task, flags) & (PF_KTHREAD | PF_USER_WORKER | PF_IO_WORKER) ||
	    !has_user_stack(task))
		return 0;
	return find_runtimes(tgid, time);
}

/*
 * Has the tick interrupted the work of an interrupt? x86 does it on a stack of the CPU, but for
 * softirqs in ksoftirqd, and all of them with PREEMPT_RT.
 */
static __always_inline bool on_interrupt_stack(struct bpf_perf_event_data *ctx,
					       struct task_struct *task)
{
	return ctx->regs.rsp - (__u64)TASK_READ(task, stack) >= TASK_STACK_SIZE;
}

/* Into the ring of the ticks. */
static __always_inline long send_question(const struct name_question_event *question, __u64 size)
{
	return put_event(question, size, question->header.time);
}

/*
 * Why there is no sample of the current task; BOOK_DELIVERED: it is wanted, with these flags of the
 * sample.
 */
static __always_inline enum book_line choose_task(struct cpu_books *books, struct task_struct *task,
						  const struct task_ids *initial,
						  struct task_ids *ours, __u16 *flags)
{
	enum choice choice = choose_current(task, initial, ours, books->last_tick);

	if (choice == CHOICE_OUT) {
		/* an ending thread has had its last report, or needs none */
		if (filter_names && !(TASK_READ(task, flags) & PF_EXITING))
			note_filtered(initial->tid);
		return BOOK_FILTERED;
	}
	if (choice == CHOICE_LOST)
		return BOOK_RING_FULL;
	if (choice == CHOICE_TENTATIVE)
		*flags |= EVENT_TENTATIVE;
	if (follow_groups && HAVE_GROUPS &&
	    !in_wanted_group(task, books->last_tick, initial, ours->tgid))
		return BOOK_FILTERED;
	if (filter_names && has_filtered(initial->tid))
		*flags |= EVENT_AFTER_FILTERED;
	note_sampled(task, initial->tid);
	return BOOK_DELIVERED;
}

/* The same of the idle task, in which interrupts may work. They belong to no target. */
static __always_inline enum book_line choose_idle(bool interrupted)
{
	if (!interrupted)
		return BOOK_IDLE;
	if (filter_processes || filter_threads || filter_cgroup || include_kinds ||
	    pid_namespace_inode)
		return BOOK_FILTERED;
	return BOOK_DELIVERED;
}

/* The header of a sample, without stacks. BOOK_DELIVERED, or why there is no sample. */
static __always_inline enum book_line begin_sample(struct bpf_perf_event_data *ctx,
						   struct cpu_books *books, __u32 cpu)
{
	struct task_struct *task = current_task();
	bool from_user = (ctx->regs.cs & 3) == 3, interrupted;
	struct task_ids initial, ours;
	enum book_line line;
	struct scratch *s;
	struct now now;
	__u16 flags = 0;

	current_ids(task, &initial);
	interrupted = !from_user && on_interrupt_stack(ctx, task);
	ours = initial;
	line = initial.tid ? choose_task(books, task, &initial, &ours, &flags)
			   : choose_idle(interrupted);
	if (line != BOOK_DELIVERED)
		return line;
	s = scratch();
	if (!s || !read_clocks(books, &now))
		return BOOK_INTERNAL;

	s->sample.header.type = EVENT_SAMPLE;
	s->sample.header.flags = flags | (interrupted ? EVENT_ON_INTERRUPT_STACK : 0);
	/* not softirqs and hardirqs on the way out of the guest, which the kernel accounts for as such */
	if (!from_user && !interrupted && TASK_READ(task, flags) & PF_VCPU)
		s->sample.header.flags |= EVENT_IN_GUEST;
	s->sample.tsc = now.tsc;
	s->sample.header.time = books->last_tick;
	s->sample.cpu_time = initial.tid ? cpu_time(books, task, now.event_clock) : 0;
	s->sample.tgid = ours.tgid;
	s->sample.tid = ours.tid;
	s->sample.cpu = cpu;
	s->sample.kernel_frames = 0;
	s->sample.user_frames = 0;
	s->sample.places_tag = 0;
	s->sample.period = counts_events ? books->events : 0;
	s->sample.from_user = from_user;
	s->probes = probes_of(task);
	s->runtimes = noted_runtimes(ctx, task, from_user, ours.tgid, books->last_tick);
	s->next_anchor = NO_ANCHOR;
	return BOOK_DELIVERED;
}

/* The tick ends in this line of the books. */
static __always_inline int end_tick(struct cpu_books *books, enum book_line line)
{
	if (line < BOOK_COUNT)
		books->count[line] += counts_events ? books->events : 1;
	books->busy = 0;
	return 0;
}

SEC("perf_event")
int finish(struct bpf_perf_event_data *ctx)
{
	struct cpu_books *books = cpu_books(bpf_get_smp_processor_id());
	struct scratch *s = scratch();
	enum book_line line;

	if (!books || !s)
		return 0;
	if (!s->sample.from_user)
		kernel_stack(ctx, s);
	s->sample.user_end = unwind_user(ctx, s, s->sample.from_user);
	line = emit_sample(s);
	/* otherwise the next sample of the thread has the flag */
	if (filter_names && line == BOOK_DELIVERED && s->sample.header.flags & EVENT_AFTER_FILTERED)
		forget_filtered((__u32)bpf_get_current_pid_tgid());
	return end_tick(books, line);
}

int tick_in_python(struct bpf_perf_event_data *ctx);

enum { PROGRAM_PYTHON, PROGRAM_FINISH, PROGRAM_COUNT };

/* Each is a program of its own: together they would exceed the verifier's limits. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PROGRAM_COUNT);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} programs SEC(".maps") = {
	.values =
		{
			[PROGRAM_PYTHON] = (void *)&tick_in_python,
			[PROGRAM_FINISH] = (void *)&finish,
		},
};

SEC("perf_event")
int tick_in_python(struct bpf_perf_event_data *ctx)
{
	struct cpu_books *books = cpu_books(bpf_get_smp_processor_id());
	struct notes *n = notes();
	struct scratch *s = scratch();

	if (n && s) {
		walk_python(n, s->sample.header.time + BUDGET_NS / 2);
		s->next_anchor = next_anchor(n);
		copy_codes(n);
	}
	bpf_tail_call_static(ctx, &programs, PROGRAM_FINISH);
	return books ? end_tick(books, BOOK_INTERNAL) : 0;
}

/*
 * How many events this overflow stands for. Of software events whose periods vary, the kernel
 * reports with an overflow the period that begins: this one ends the period before.
 */
static __always_inline void note_period(struct bpf_perf_event_data *ctx, struct cpu_books *books)
{
	__u64 ended = books->period_begun;

	books->period_begun = ctx->sample_period;
	books->events = periods_begin ? ended : ctx->sample_period;
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_books *books = cpu_books(cpu);
	struct scratch *s = scratch();
	enum book_line line;

	if (!books || !s)
		return 0;
	if (books->busy) {
		__sync_fetch_and_add(&books->count[BOOK_REENTRY],
				     counts_events ? ctx->sample_period : 1);
		return 0;
	}
	/* with a full barrier: see wait_for_programs() */
	__sync_fetch_and_add(&books->busy, 1);
	note_tick(ctx, books, bpf_ktime_get_ns());
	if (counts_events)
		note_period(ctx, books);
	line = begin_sample(ctx, books, cpu);
	if (line == BOOK_DELIVERED) {
		/* a constant number for each: the kernel turns it into a jump */
		if (s->runtimes & RUNTIME_PYTHON)
			bpf_tail_call_static(ctx, &programs, PROGRAM_PYTHON);
		bpf_tail_call_static(ctx, &programs, PROGRAM_FINISH);
		line = BOOK_INTERNAL;
	}
	return end_tick(books, line);
}

/* The current task has created a process. */
static __always_inline void inherit_runtimes(const struct task_ids *parent,
					     const struct task_struct *child)
{
	struct task_ids ours = *parent, its;

	if (pid_namespace_inode && !collector_ids(current_task(), &ours))
		return;
	if (collector_ids(child, &its))
		note_fork(ours.tgid, its.tgid, bpf_ktime_get_ns());
}

SEC("raw_tp/" HOOK_FORK)
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *child = (struct task_struct *)ctx->args[1];
	struct task_ids parent;

	current_ids(current_task(), &parent);
	if (follow_children)
		follow_fork(&parent, child);
	if (use_tables && (__u32)BPF_CORE_READ(child, tgid) != parent.tgid)
		inherit_runtimes(&parent, child);
	return 0;
}

/* The published mappings belong to the previous program. */
static __always_inline void note_exec(__u32 tgid, __u64 now)
{
	__u32 hash = unwind_hash(tgid);
	__u64 *word = bpf_map_lookup_elem(&unwind_execs, &hash);

	if (word)
		*word = unwind_exec_word(tgid, now);
}

/* COMMAND was held until now; it becomes the target here. */
static __always_inline void begin_command(__u32 tgid, __u32 initial_tgid)
{
	__u64 key = initial_tgid, unknown_start = 0;

	if (!held_tgid || tgid != held_tgid)
		return;
	held_tgid = 0;
	if (bpf_map_update_elem(&targets, &key, &unknown_start, BPF_ANY))
		__sync_fetch_and_add(&target_set_full, 1);
}

/* args: task, its previous number, bprm. A thread that calls execve gets its leader's number. */
SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 old = (__u32)ctx->args[1], new, now = bpf_ktime_get_ns(), started;
	struct task_struct *task = current_task();
	struct task_ids initial, ours;

	current_ids(task, &initial);
	new = initial.tid;
	ours = initial;
	if (pid_namespace_inode && !collector_ids(task, &ours))
		return 0;
	if (use_tables)
		note_exec(ours.tgid, now);
	if (filter_processes)
		begin_command(ours.tgid, initial.tgid);
	if (old != new) {
		/* it has got the leader's number and start */
		started = TASK_READ(task, start_time);
		if (bpf_map_lookup_elem(&targets, &old) &&
		    bpf_map_update_elem(&targets, &new, &started, BPF_ANY))
			__sync_fetch_and_add(&target_set_full, 1);
	}
	if (use_tables && execs_wake && current_is_wanted(task, &initial, &ours))
		wake_collector(&hook_wakes, now);
	return 0;
}

static __always_inline void report_end(void *ctx, struct cpu_books *books, struct task_struct *task,
				       const struct task_ids *ours)
{
	struct now now;
	__u64 used;

	books->hook_since = bpf_ktime_get_ns();
	used = read_clocks(books, &now) ? cpu_time(books, task, now.event_clock)
					: TASK_READ(task, se.sum_exec_runtime);
	emit_thread_cpu(ctx, ours->tgid, ours->tid, used);
	books->hook_since = 0;
}

SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = current_task();
	struct cpu_books *books = cpu_books(bpf_get_smp_processor_id());
	struct task_ids initial, ours;
	bool was_filtered;

	current_ids(task, &initial);
	if (!books || !initial.tid || TASK_READ(task, flags) & PF_KTHREAD)
		return 0;
	was_filtered = filter_names && has_filtered(initial.tid);
	if (!current_is_wanted(task, &initial, &ours) || !was_sampled(initial.tid))
		return 0;
	/* else its CPU time is of before it was a target, but for less than a tick */
	if (!was_filtered)
		report_end(ctx, books, task, &ours);
	if (pid_namespace_inode && (filter_processes || filter_threads))
		rename_exiting(task, &initial, &ours);
	return 0;
}

SEC("raw_tp/sched_process_free")
int on_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];

	forget_task(task);
	/* not at its exit: it has ticks after that, while its memory is freed */
	if (filter_names)
		forget_filtered(BPF_CORE_READ(task, pid));
	return 0;
}

SEC("iter/task")
int identify(struct bpf_iter__task___own *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		identify_thread(task);
	return 0;
}

/*
 * Run by the collector, on each CPU in turn right after rq->clock was set: stores the collector's
 * number, and the difference of the run queue's clock and the event's (see cputime.bpf.h).
 */
SEC("raw_tp")
int prepare(void *ctx __attribute__((unused)))
{
	struct cpu_books *books = cpu_books(bpf_get_smp_processor_id());
	struct now now;

	self_tgid = bpf_get_current_pid_tgid() >> 32;
	cpu_time_source = HAVE_RQ_CLOCK ? CPU_TIME_BY_RQ_CLOCK : CPU_TIME_BY_EXEC_START;
	if (books && read_clocks(books, &now))
		cpu_time(books, current_task(), now.event_clock);
	return 0;
}
