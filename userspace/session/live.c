/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merges all sources into one stream.
 *
 * A tick reads every ring once. What it reads is complete up to the start of the tick, but for records
 * that were being written at that time. The eBPF programs publish since when they have been writing one
 * (bpf_session__written_until()); for the kernel's own records WRITING_TIME is enough. The queue passes on
 * everything older. A record that a hypervisor delays for longer is passed on late, and counted. Samples
 * get their time from the clock's anchors when they are read.
 *
 * There is a tick every LIVE_TICK_MS, when a ring is half full, and soon after a target's execve or a stack
 * that was truncated because mappings were unknown: the kernel side needs the mappings of a new process
 * before most of its life is over. Such early ticks are at least 2 ms apart, and take at most a twentieth
 * of one CPU; if they find nothing, the interval grows.
 *
 * Side-band records are kept aside until all rings of the tick are read, and then gone through by
 * time: a fork may lie in one CPU's ring and the child's mappings, or its own children, in another's,
 * and whether a process is a target decides whether its files are opened at all. Rings are read one
 * after the other, so what was written since the first of them was read has to wait for the next
 * tick: its cause may lie in a ring that was read before.
 *
 * One thread does all of it, so no record can be older than an anchor that was taken after it was
 * read: the conversion of a TSC uses nothing that comes later.
 */
#include "session/live.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "capture/clock_reader.h"
#include "capture/cpu_idle.h"
#include "jitwatch/jit_find.h"
#include "jitwatch/jit_tail.h"
#include "procfs/kernel_snapshot.h"
#include "procfs/machine_facts.h"
#include "procfs/proc_reread.h"
#include "procfs/proc_snapshot.h"
#include "procfs/process_watch.h"
#include "session/aside.h"
#include "session/family.h"
#include "session/jit_targets.h"
#include "stream/clock.h"
#include "stream/meta.h"

#define ANCHOR_INTERVAL 1000000000ull /* ns */
#define TSC_ERROR_MAX	2000ull	      /* ns by which a sample's two clocks may differ */
#define WRITING_TIME	1000000ull    /* ns: from a record's time until it is in the ring */
#define WAKE_SETTLES	1200000ull    /* ns: from a wake to the tick that finds its cause written */
#define WAKE_MIN	2000000ull    /* ns between ticks that are not on the timer */
#define WAKE_MAX	100000000ull
#define WAKE_COST	20 /* a tick's CPU time is at most such a part of the time to the next */
#define MAPS_LIBRARIES	16000000ull /* ns: from an execve to the last library, mostly */
#define WAIT_FDS	8

struct live {
	struct bpf_session *session;
	struct clock clock;
	VEC(uint64_t) tsc_lags; /* by CPU: ns that its TSC counter stood still for */
	struct event_queue *queue;
	struct family *family;
	struct dso_opener *opener;
	struct cpu_idle *idle;
	struct proc_snapshot *proc;
	struct proc_reread *reread;
	struct process_watch *watch;
	struct event_source_requests requests;
	struct jit_tail *jit;
	struct jit_targets jit_targets; /* that are followed there */

	enum target_mode mode;
	bool everyone;	   /* there is no target list: -a, or a cgroup */
	bool inherit;	   /* children are targets too */
	VEC(pid_t) roots;  /* processes asked for, or those of the threads asked for */
	VEC(uint32_t) ids; /* what was asked for */
	char *target_text, *command_line;
	unsigned int hz;

	struct aside sideband;
	uint64_t last_anchor;
	uint64_t due;	    /* the next tick; ns */
	uint64_t woken_cpu; /* CPU time of the thread when it was woken for the last one */
	bool ticked;	    /* since the last plan */
	uint64_t wake_interval;
	uint64_t soon; /* after an execve: until the next look at its libraries, 0: not any more */
	bool changed;  /* side-band of targets has come since the last tick */
	uint64_t start_time;
	uint64_t samples;
	uint64_t cpu_at_start, threads_counted;
	bool started, stopped;
};

/* ---- code that is made as it runs ------------------------------------------------------------ */

#define JIT_START_PATIENCE 100000000ull	 /* ns: to read what there is before sampling begins */
#define JIT_STOP_PATIENCE  1000000000ull /* ns: to read all once more */

static int take_jit_events(struct live *live, uint64_t now)
{
	return jit_tail__take(live->jit, now, event_queue__push, live->queue);
}

/* ---- into the queue -------------------------------------------------------------------------- */

/* A mapping whose file is known. A mapping_answer_fn. */
static int push_mapping(void *context, struct mmap_event *mmap)
{
	struct live *live = context;
	int err = jit_targets__see(&live->jit_targets, mmap);

	return err ? err : event_queue__push(live->queue, &mmap->header);
}

static int see_and_push(struct live *live, struct event_header *event)
{
	struct mmap_event *mmap = (struct mmap_event *)event;

	if (event->type != EVENT_MMAP)
		return event_queue__push(live->queue, event);
	return dso_opener__see(live->opener, mmap, family__parent(live->family, mmap->pid),
			       push_mapping, live);
}

/* Passes on events older than `until` and older than every mapping whose file is not known yet. */
static int release_until(struct live *live, uint64_t until, event_sink_fn sink, void *context)
{
	until = min_u64(until, dso_opener__pending_since(live->opener));
	return event_queue__release(live->queue, until, sink, context);
}

/* An event from /proc: of targets only, so it needs no check. An event_push_fn. */
static int push_from_proc(void *context, struct event_header *event)
{
	struct live *live = context;

	if (event->type == EVENT_PROCESS) {
		const struct process_event *process = (const struct process_event *)event;
		int err = family__add_parent(live->family, process->pid, process->ppid);

		if (err)
			return err;
	}
	return see_and_push(live, event);
}

/*
 * The time of a sample, by its TSC. perf's counter of the TSC stands still for some microseconds
 * whenever the kernel rearranges a CPU's counters, as it does for each profiler that starts or ends,
 * and is late from then on. The program's own reading of the clock, half a microsecond before that
 * of the TSC, gives this away, and also where a new epoch has begun or the program was held up
 * between the two.
 */
static int refine_time(struct live *live, struct sample_event *sample)
{
	uint64_t told = sample->header.time, time, *lag;

	if (!sample->tsc)
		return 0;
	while (live->tsc_lags.count <= sample->cpu) {
		int err = vec_push(&live->tsc_lags, 0);

		if (err)
			return err;
	}
	lag = &live->tsc_lags.data[sample->cpu];
	time = clock__to_monotonic(&live->clock, sample->tsc) + *lag;
	if (time + TSC_ERROR_MAX < told)
		*lag += told - time;
	else if (time > told + TSC_ERROR_MAX)
		*lag -= time - told < *lag ? time - told : *lag;
	else
		sample->header.time = time;
	return 0;
}

/* What the rings tell. An event_push_fn. */
static int push_from_rings(void *context, struct event_header *event)
{
	struct live *live = context;
	int err;

	switch (event->type) {
	case EVENT_SAMPLE:
		err = refine_time(live, (struct sample_event *)event);
		live->samples++;
		process_watch__sampled(live->watch, ((const struct sample_event *)event)->tgid);
		return err ? err : event_queue__push(live->queue, event);
	case EVENT_FORK:
	case EVENT_MMAP:
	case EVENT_COMM:
	case EVENT_EXIT:
		return aside__add(&live->sideband, event);
	default:
		return event_queue__push(live->queue, event);
	}
}

/* The process of a side-band event. */
static pid_t sideband_pid(const struct event_header *event)
{
	switch (event->type) {
	case EVENT_MMAP:
		return ((const struct mmap_event *)event)->pid;
	case EVENT_COMM:
		return ((const struct comm_event *)event)->pid;
	default:
		return ((const struct task_event *)event)->pid;
	}
}

/* An event_push_fn. */
static int take_sideband(void *context, struct event_header *event)
{
	struct live *live = context;
	const struct task_event *task = (const struct task_event *)event;
	int err = 0;

	if (event->type == EVENT_FORK)
		err = family__fork(live->family, task);
	if (!err && family__is_target(live->family, sideband_pid(event), event->time)) {
		live->changed = true;
		if (event->type == EVENT_COMM && event->flags & EVENT_COMM_EXEC)
			live->soon = WAKE_MIN;
		err = see_and_push(live, event);
	}
	if (event->type == EVENT_EXIT) {
		family__exit(live->family, task);
		if (task->pid == task->tid)
			process_watch__forget(live->watch, task->pid);
	}
	if (event->type == EVENT_COMM && event->flags & EVENT_COMM_EXEC)
		process_watch__exec(live->watch, sideband_pid(event));
	if ((event->type == EVENT_EXIT && task->pid == task->tid) ||
	    (event->type == EVENT_COMM && event->flags & EVENT_COMM_EXEC)) {
		proc_reread__forget(live->reread, sideband_pid(event));
		err = err ? err : jit_targets__forget(&live->jit_targets, sideband_pid(event));
	}
	return err;
}

/* `window_end` 0: no window ends; else the books have that time. */
static int push_books(struct live *live, uint64_t window_end)
{
	uint32_t cpus = bpf_session__info(live->session)->cpus;

	cpu_idle__read(live->idle);

	for (uint32_t i = 0; i < cpus; i++) {
		struct books_event books;
		int err = 0;

		bpf_session__books(live->session, i, &books);
		cpu_idle__split(live->idle, &books);
		if (window_end) {
			books.header.time = window_end;
			err = cpu_idle__mark(live->idle, &books);
		}
		if (!err)
			err = event_queue__push(live->queue, &books.header);
		if (err)
			return err;
	}
	return 0;
}

static int push_anchor(struct live *live)
{
	struct clock_anchor_event anchor;

	clock__anchor_now(&live->clock, &anchor);
	live->last_anchor = anchor.monotonic;
	return event_queue__push(live->queue, &anchor.header);
}

/* The memory and the control groups of this program and of what ran. */
static int look_at_processes(struct live *live, uint64_t time)
{
	return process_watch__look(live->watch, live->roots.data, live->roots.count, time,
				   event_queue__push, live->queue);
}

/* Side-band records that are younger than `before` wait for the next time. */
static int read_everything(struct live *live, uint64_t before)
{
	int err = bpf_session__drain(live->session, push_from_rings, live);

	if (!err)
		err = aside__release(&live->sideband, before, take_sideband, live);
	if (!err)
		err = proc_reread__run(live->reread);
	return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int add_root(struct live *live, uint32_t id)
{
	pid_t pid = live->mode == TARGET_THREADS ? target_process_of(id) : (pid_t)id;
	int err;

	if (pid <= 0)
		return pid < 0 ? pid : -ESRCH;
	for (size_t i = 0; i < live->roots.count; i++)
		if (live->roots.data[i] == pid)
			return 0;
	err = family__add_target(live->family, pid);
	return err ? err : vec_push(&live->roots, pid);
}

static int add_target(struct live *live, uint32_t id, bool held, struct failure *failure)
{
	int err = 0;

	if (held)
		bpf_session__hold_target(live->session, id);
	else
		err = bpf_session__add_target(live->session, id);
	if (!err)
		err = vec_push(&live->ids, id);
	if (!err)
		err = add_root(live, id);
	if (err == -E2BIG)
		return fail(failure, err, "cannot record %u: too many targets", id);
	return err ? fail(failure, err, "cannot record %u: %s", id, strerror(-err)) : 0;
}

int live__add_command(struct live *live, pid_t pid, struct failure *failure)
{
	return add_target(live, pid, true, failure);
}

static int add_targets(struct live *live, const struct live_options *options,
		       struct failure *failure)
{
	for (size_t i = 0; i < options->id_count; i++) {
		int err = add_target(live, options->ids[i], false, failure);

		if (err)
			return err;
	}
	return 0;
}

/* Existing children of targets; the kernel side adds new ones. */
static int add_descendants(struct live *live, struct failure *failure)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t count = 0;
	int err = proc_snapshot__descendants(live->proc, live->roots.data, live->roots.count, &pids,
					     &count);

	for (size_t i = 0; i < count && !err; i++) {
		err = bpf_session__add_target(live->session, pids[i]);
		if (!err)
			err = family__add_target(live->family, pids[i]);
	}
	return err ? fail(failure, err, "cannot follow child processes: %s", strerror(-err)) : 0;
}

/* A zombie does, until it is waited for. */
static bool process_exists(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

static int init_parts(struct live *live, const struct live_options *options)
{
	const struct target *target = &options->session.target;
	int err;

	live->mode = target->mode;
	live->everyone = target->mode == TARGET_ALL;
	live->inherit = target->inherit;
	live->hz = options->session.hz;
	live->target_text = strdup(options->target_text);
	live->command_line = strdup(options->command_line);
	live->queue = event_queue__new(0);
	live->family = family__new(live->everyone, target->inherit, process_exists);
	live->idle = cpu_idle__new();
	if (!live->target_text || !live->command_line || !live->queue || !live->family ||
	    !live->idle)
		return -ENOMEM;
	err = dso_opener__new(NULL, &live->opener);
	if (!err)
		err = jit_tail__new(options->jvm_perfmap, &live->jit);
	jit_targets__init(&live->jit_targets, live->jit);
	if (!err)
		err = proc_snapshot__new(&live->proc);
	if (!err)
		err = process_watch__new(&live->watch);
	if (err)
		return err;
	live->reread = proc_reread__new(live->proc, push_from_proc, live);
	if (!live->reread)
		return -ENOMEM;
	live->requests = (struct event_source_requests){
		.context = live->reread,
		.reread_process = proc_reread__request,
	};
	return 0;
}

int live__open(const struct live_options *options, struct live **result, struct failure *failure)
{
	struct live *live = calloc(1, sizeof(*live));
	int err = live ? init_parts(live, options) : -ENOMEM;

	if (err) {
		fail(failure, err, "cannot prepare the recording: %s", strerror(-err));
		goto err_out;
	}
	err = bpf_session__open(&options->session, &live->session, failure);
	if (err)
		goto err_out;
	err = add_targets(live, options, failure);
	if (err)
		goto err_out;
	*result = live;
	return 0;
err_out:
	live__free(live);
	return err;
}

void live__free(struct live *live)
{
	if (!live)
		return;
	bpf_session__free(live->session);
	jit_tail__free(live->jit);
	jit_targets__fini(&live->jit_targets);
	proc_reread__free(live->reread);
	process_watch__free(live->watch);
	proc_snapshot__free(live->proc);
	dso_opener__free(live->opener);
	cpu_idle__free(live->idle);
	family__free(live->family);
	event_queue__free(live->queue);
	vec_free(&live->tsc_lags);
	vec_free(&live->roots);
	vec_free(&live->ids);
	aside__fini(&live->sideband);
	free(live->target_text);
	free(live->command_line);
	free(live);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int push_meta(struct live *live)
{
	const struct bpf_session_info *info = bpf_session__info(live->session);
	uint64_t now = monotonic_ns();
	char number[32];
	const struct {
		const char *key, *value;
	} facts[] = {
		{META_COMMAND, live->command_line},
		{META_TARGET, live->target_text},
		{META_EVENT, info->event},
		{META_CLOCK, info->tsc ? "tsc" : "monotonic"},
		{META_CLOCK_REASON, info->clock_reason},
		{META_CPU_TIME_METHOD, info->cpu_time_source},
	};
	int err = machine_facts__emit(event_queue__push, live->queue, now);

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]) && !err; i++)
		err = meta_event__emit(event_queue__push, live->queue, now, facts[i].key,
				       facts[i].value);
	snprintf(number, sizeof(number), "%u", live->hz);
	if (!err)
		err = meta_event__emit(event_queue__push, live->queue, now, META_HZ, number);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)info->period);
	if (!err)
		err = meta_event__emit(event_queue__push, live->queue, now, META_PERIOD, number);
	return err;
}

static int take_snapshot(struct live *live)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t count = 0;
	int err;

	if (live->everyone)
		return proc_snapshot__all(live->proc, true, push_from_proc, live);
	err = family__living_targets(live->family, &pids, &count);
	for (size_t i = 0; i < count && !err; i++)
		err = proc_snapshot__process(live->proc, pids[i], true, push_from_proc, live);
	return err;
}

struct cpu_reading {
	struct live *live;
	uint64_t threads;
	uint64_t time; /* 0: that of each reading */
};

static int push_thread_cpu(void *context, struct event_header *event)
{
	struct cpu_reading *reading = context;

	reading->threads++;
	if (reading->time)
		event->time = reading->time;
	return event_queue__push(reading->live->queue, event);
}

/* CPU of every thread of every target, as of now. */
static int read_thread_cpu(struct live *live, struct cpu_reading *reading)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t count = 0;
	int err;

	if (live->everyone)
		return proc_snapshot__thread_cpu_all(live->proc, push_thread_cpu, reading);
	err = family__living_targets(live->family, &pids, &count);
	for (size_t i = 0; i < count && !err; i++)
		err = proc_snapshot__thread_cpu(live->proc, pids[i], push_thread_cpu, reading);
	return err;
}

struct cpu_sum {
	const struct live *live;
	uint64_t sum;
};

static int sum_thread_cpu(void *context, struct event_header *event)
{
	const struct thread_cpu_event *thread = (const struct thread_cpu_event *)event;
	struct cpu_sum *sum = context;
	bool wanted = sum->live->mode != TARGET_THREADS;

	for (size_t i = 0; i < sum->live->ids.count && !wanted; i++)
		wanted = sum->live->ids.data[i] == thread->tid;
	sum->sum += wanted ? thread->cpu_time : 0;
	return 0;
}

/* CPU time so far of the requested targets that still live, without children. */
static uint64_t asked_for_cpu(const struct live *live)
{
	struct cpu_sum sum = {.live = live};

	for (size_t i = 0; i < live->roots.count; i++)
		proc_snapshot__thread_cpu(live->proc, live->roots.data[i], sum_thread_cpu, &sum);
	return sum.sum;
}

static int push_first_events(struct live *live)
{
	struct clock_anchor_event anchors[2];
	int err;

	clock__start(&live->clock, bpf_session__info(live->session)->tsc, anchors);
	live->last_anchor = anchors[1].monotonic;
	err = event_queue__push(live->queue, &anchors[0].header);
	if (!err)
		err = event_queue__push(live->queue, &anchors[1].header);
	if (!err)
		err = push_meta(live);
	if (!err)
		err = kernel_snapshot__kallsyms(monotonic_ns(), event_queue__push, live->queue);
	/* without kallsyms the kernel has no symbols; the profile says so, it is not an error */
	return err == -ENOMEM || !err ? err : 0;
}

int live__begin(struct live *live, struct failure *failure)
{
	int err = push_first_events(live);

	if (err)
		return fail(failure, err, "cannot read the clocks and the kernel's symbols: %s",
			    strerror(-err));
	err = bpf_session__enable_sideband(live->session, failure);
	if (err)
		return err;
	if (live->inherit && live->mode == TARGET_PROCESSES) {
		err = add_descendants(live, failure);
		if (err)
			return err;
	}
	err = take_snapshot(live);
	if (err)
		return fail(failure, err, "cannot read the processes in /proc: %s", strerror(-err));
	jit_tail__settle(live->jit, JIT_START_PATIENCE);
	return 0;
}

int live__announce(struct live *live, event_sink_fn sink, void *context)
{
	uint64_t began = monotonic_ns();
	int err = read_everything(live, began - WRITING_TIME);

	return err ? err : release_until(live, began - WRITING_TIME, sink, context);
}

int live__start(struct live *live, struct failure *failure)
{
	struct cpu_reading reading = {.live = live};
	char number[32];
	/* baselines, as late as can be: a snapshot of a big system takes its time */
	int err = read_thread_cpu(live, &reading);

	if (!err)
		err = look_at_processes(live, monotonic_ns());
	if (err)
		return fail(failure, err, "cannot read the processes in /proc: %s", strerror(-err));
	live->cpu_at_start = asked_for_cpu(live);
	cpu_idle__start(live->idle);
	live->start_time = monotonic_ns();
	err = bpf_session__enable_ticks(live->session, failure);
	if (err)
		return err;
	live->started = true;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)live->start_time);
	err = meta_event__emit(event_queue__push, live->queue, live->start_time,
			       META_SAMPLING_START, number);
	return err ? fail(failure, err, "cannot start: %s", strerror(-err)) : 0;
}

/* ---- running --------------------------------------------------------------------------------- */

/* When the next tick is due, after one and what the caller did with it. */
static void plan_next(struct live *live, uint64_t now)
{
	uint64_t cost = thread_cpu_ns() - live->woken_cpu;
	uint64_t least = max_u64(WAKE_MIN, cost * WAKE_COST);

	live->wake_interval = live->changed ? least : max_u64(least, 2 * live->wake_interval);
	live->wake_interval = min_u64(live->wake_interval, WAKE_MAX);
	bpf_session__set_wake_interval(live->session, live->wake_interval);
	live->due = now + LIVE_TICK_MS * 1000000ull;
	if (live->soon) {
		live->due = min_u64(live->due, now + max_u64(live->soon, least));
		live->soon = live->soon < MAPS_LIBRARIES ? 2 * live->soon : 0;
	}
	live->changed = live->ticked = false;
}

void live__wait(struct live *live, struct pollfd *others, size_t count, uint64_t until)
{
	struct pollfd fds[WAIT_FDS + 2] = {
		{.fd = bpf_session__wake_fd(live->session), .events = POLLIN},
		{.fd = bpf_session__epoll_fd(live->session), .events = POLLIN},
	};
	int ready;

	if (live->ticked)
		plan_next(live, monotonic_ns());
	if (count > WAIT_FDS)
		count = WAIT_FDS;
	memcpy(fds + 2, others, count * sizeof(*others));
	do {
		uint64_t now = monotonic_ns();
		uint64_t end = min_u64(until, live->due);
		uint64_t left = end > now ? end - now : 0;
		struct timespec timeout = {left / 1000000000, left % 1000000000};

		ready = ppoll(fds, count + 2, &timeout, NULL);
		if (ready > 0 && fds[0].revents) {
			bpf_session__take_wake(live->session);
			live->due = min_u64(live->due, monotonic_ns() + WAKE_SETTLES);
			ready--;
		}
	} while ((ready == 0 && monotonic_ns() < live->due && monotonic_ns() < until) ||
		 (ready < 0 && errno == EINTR));
	live->woken_cpu = thread_cpu_ns();
	memcpy(others, fds + 2, count * sizeof(*others));
}

int live__tick(struct live *live, event_sink_fn sink, void *context)
{
	uint64_t began = monotonic_ns();
	/* less what a sample may be refined by */
	uint64_t until = bpf_session__written_until(live->session, began - WRITING_TIME) -
			 TSC_ERROR_MAX;
	int err = read_everything(live, began - WRITING_TIME);

	if (!err && began >= live->last_anchor + ANCHOR_INTERVAL) {
		err = push_anchor(live);
		if (!err)
			err = push_books(live, 0);
		if (!err)
			err = look_at_processes(live, live->last_anchor);
	}
	if (!err)
		err = take_jit_events(live, monotonic_ns());
	if (!err)
		err = release_until(live, until, sink, context);
	live->ticked = true;
	return err;
}

int live__stop(struct live *live, event_sink_fn sink, void *context)
{
	struct event_header end = {.size = sizeof(end), .type = EVENT_END};
	struct cpu_reading reading = {.live = live};
	int err;

	if (live->stopped || !live->started)
		return 0;
	live->stopped = true;
	/* once before the end: what was lost from a full ring comes with a later record */
	err = read_everything(live, monotonic_ns() - WRITING_TIME);
	if (err)
		return err;
	bpf_session__disable(live->session);
	end.time = monotonic_ns();
	reading.time = end.time;
	err = read_everything(live, UINT64_MAX);
	jit_tail__finish(live->jit, JIT_STOP_PATIENCE);
	if (!err)
		err = take_jit_events(live, end.time);
	if (!err)
		err = read_thread_cpu(live, &reading);
	live->threads_counted = reading.threads;
	if (!err)
		err = look_at_processes(live, end.time);
	if (!err)
		err = push_books(live, 0);
	if (!err)
		err = push_anchor(live);
	if (!err)
		err = event_queue__flush(live->queue, sink, context);
	if (err)
		return err;
	end.time = live->last_anchor > end.time ? live->last_anchor : end.time;
	return sink(context, &end);
}

/* What was counted by then belongs to the window: its samples are older, or nearly so. */
int live__end_window(struct live *live)
{
	struct event_header window = {
		.size = sizeof(window), .type = EVENT_WINDOW, .time = monotonic_ns()};
	int err = push_books(live, window.time);

	return err ? err : event_queue__push(live->queue, &window);
}

void live__set_stage(struct live *live, event_stage_fn stage, void *context)
{
	event_queue__set_stage(live->queue, stage, context);
}

const struct event_source_requests *live__requests(struct live *live)
{
	return &live->requests;
}

uint64_t live__target_cpu(const struct live *live)
{
	uint64_t sum = asked_for_cpu(live);

	return sum > live->cpu_at_start ? sum - live->cpu_at_start : 0;
}

struct dso_opener *live__dso_opener(struct live *live)
{
	return live->opener;
}

struct bpf_session *live__session(struct live *live)
{
	return live->session;
}

void live__stats(const struct live *live, struct live_stats *stats)
{
	*stats = (struct live_stats){
		.samples = live->samples,
		.threads_at_stop = live->threads_counted,
		.jit_cpu = jit_tail__cpu(live->jit),
		.memory = bpf_session__memory(live->session),
	};
	event_queue__stats(live->queue, &stats->queue);
	stats->memory += stats->queue.memory_peak;
}
