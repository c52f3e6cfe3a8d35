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
 * live_pace.c decides when ticks are.
 *
 * Side-band records are kept aside until all rings of the tick are read, and then gone through by
 * time: a fork may lie in one CPU's ring and the child's mappings, or its own children, in another's,
 * and whether a process is a target decides whether its files are opened at all. Rings are read one
 * after the other, so what was written since the first of them was read has to wait for the next
 * tick: its cause may lie in a ring that was read before.
 *
 * One thread does all of it, so no record can be older than an anchor that was taken after it was
 * read: the conversion of a TSC uses nothing that comes later.
 *
 * A process can map more in a moment than can be gone through in one. So a tick spends a slice of time on
 * what was set aside and another on what leaves the queue, and the rest waits for the next tick, which comes at
 * once: in between the caller looks at signals and the time, and all rings are read. What is set aside has a
 * limit; records beyond it are lost, and counted like those that did not fit into a ring.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "capture/clock_reader.h"
#include "capture/cpu_idle.h"
#include "jitwatch/jit_find.h"
#include "jitwatch/jit_tail.h"
#include "procfs/kernel_snapshot.h"
#include "procfs/machine_facts.h"
#include "session/live_private.h"
#include "session/readers.h"
#include "stream/meta.h"
#include "stream/outside_event.h"
#include "unwind/build_service.h"

#define ANCHOR_INTERVAL	  1000000000ull /* ns */
#define CPU_LOOK_INTERVAL 250000000ull	/* ns between looks which CPUs are online */
#define TSC_ERROR_MAX	  2000ull	/* ns by which a sample's two clocks may differ */
#define WRITING_TIME	  1000000ull	/* ns: from a record's time until it is in the ring */
#define FILES_PATIENCE	  500000ull	/* ns: for readers to find a file, within a tick */
#define FILES_AT_START	  2000000000ull /* ns: the same for all files of all processes there are */
#define DRAIN_INTERVAL	  50000000ull	/* ns between two readings of the rings, at least */
#define FILES_AT_END	  2000000000ull
#define CODE_AT_START	  200000000ull /* ns: for runtimes of processes that are there */
#define CODE_AT_END	  100000000ull /* ns: for functions that were seen in the last moment */
#define SLICE		  50000000ull  /* ns */
#define SLICE_EVENTS	  16	       /* between two looks at the clock */
#define ASIDE_MAX	  262144       /* side-band records */

/* ---- code that is made as it runs ------------------------------------------------------------ */

#define JIT_START_PATIENCE 100000000ull	 /* ns: to read what there is before sampling begins */
#define JIT_STOP_PATIENCE  1000000000ull /* ns: to read all once more */

/* An event_push_fn. */
static int push_jit_event(void *context, struct event_header *event)
{
	struct live *live = context;
	const struct jit_file_event *file = (const struct jit_file_event *)event;

	if (event->type == EVENT_JIT_FILE && jit_file_state_is_followed(file->state))
		live_code__reports(live->code, file->pid);
	return event_queue__push(live->queue, event);
}

static int take_jit_events(struct live *live, uint64_t now)
{
	return jit_tail__take(live->jit, now, push_jit_event, live);
}

/* ---- into the queue -------------------------------------------------------------------------- */

/* A mapping whose file is known. A mapping_answer_fn. */
static int push_mapping(void *context, struct mmap_event *mmap)
{
	struct live *live = context;
	int err = jit_targets__see(&live->jit_targets, mmap);

	if (!err)
		err = live_code__mapped(live->code, mmap);

	if (mmap->file_state == FILE_STATE_LATE) /* it may be told later */
		proc_reread__request(live->reread, mmap->pid);
	return err ? err : event_queue__push(live->queue, &mmap->header);
}

static int see_and_push(struct live *live, struct event_header *event)
{
	struct mmap_event *mmap = (struct mmap_event *)event;

	if (event->type == EVENT_MAPS_READ)
		return dso_opener__pass(live->opener, event, event_queue__push, live->queue);
	if (event->type != EVENT_MMAP)
		return event_queue__push(live->queue, event);
	return dso_opener__see(live->opener, mmap, family__parent(live->family, mmap->pid),
			       push_mapping, live);
}

/* Takes what readers have answered, until all is, or for so long (ns). */
static int settle_readers(struct live *live, uint64_t patience)
{
	int err = dso_opener__settle(live->opener, patience);

	return err ? err : proc_snapshot__error(live->proc);
}

static void begin_slice(struct live *live)
{
	live->handled = 0;
	live->slice_end = live->stopped ? UINT64_MAX : monotonic_ns() + SLICE;
}

/* Called before each event. The first ones of a slice always pass. */
static bool slice_is_over(struct live *live)
{
	if (++live->handled % SLICE_EVENTS || monotonic_ns() <= live->slice_end)
		return false;
	live->handled--; /* it stays over */
	live->unfinished = true;
	return true;
}

/* The stage of the queue. */
static int stage_event(void *context, const struct event_header **event)
{
	struct live *live = context;

	if (slice_is_over(live))
		return STAGE_WAIT;
	return live->stage ? live->stage(live->stage_context, event) : 0;
}

/* Passes on events older than `until` and older than every mapping whose file is not known yet. */
static int release_until(struct live *live, uint64_t until, event_sink_fn sink, void *context)
{
	until = min_u64(until, dso_opener__pending_since(live->opener));
	until = min_u64(until, proc_snapshot__pending_since(live->proc));
	until = min_u64(until, aside__oldest(&live->sideband));
	begin_slice(live);
	return event_queue__release(live->queue, until, sink, context);
}

static int push_from_rings(void *context, struct event_header *event);

/* While /proc is read, which can take seconds: the rings have not room for that much of what happens meanwhile. */
static int drain_in_time(struct live *live)
{
	uint64_t now = monotonic_ns();

	if (live->started || now < live->drained + DRAIN_INTERVAL)
		return 0;
	live->drained = now;
	return bpf_session__drain(live->session, push_from_rings, live);
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
		err = drain_in_time(live);
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

static int set_aside(struct live *live, const struct event_header *event)
{
	if (live->sideband.order.count < ASIDE_MAX)
		return aside__add(&live->sideband, event);
	if (!live->sideband_lost++ || event->time < live->lost_since)
		live->lost_since = event->time;
	return 0;
}

static int report_lost_sideband(struct live *live)
{
	struct lost_event lost = {
		.header = {.size = sizeof(lost), .type = EVENT_LOST, .time = monotonic_ns()},
		.source = LOST_SIDEBAND,
		.cpu = ~0u,
		.count = live->sideband_lost,
		.since = live->lost_since,
	};

	if (!live->sideband_lost)
		return 0;
	live->sideband_lost = 0;
	return event_queue__push(live->queue, &lost.header);
}

/* What the rings tell. An event_push_fn. */
static int push_from_rings(void *context, struct event_header *event)
{
	struct live *live = context;
	int err;

	switch (event->type) {
	case EVENT_IN_GROUP:
		return live_groups__entered(live->groups, (struct in_group_event *)event);
	case EVENT_GROUP_MADE:
		return live_groups__made(live->groups, (struct group_made_event *)event);
	case EVENT_CODE_COPY:
		return live_code__copied(live->code, (const struct code_copy_event *)event);
	case EVENT_SAMPLE:
		err = refine_time(live, (struct sample_event *)event);
		live->samples++;
		process_watch__sampled(live->watch, ((const struct sample_event *)event)->tgid);
		if (live->facts)
			fact_asker__sampled(live->facts, ((const struct sample_event *)event)->tgid,
					    event->time);
		if (!err)
			err = live_code__sampled(live->code, (const struct sample_event *)event);
		return err ? err : event_queue__push(live->queue, event);
	case EVENT_FORK:
	case EVENT_MMAP:
	case EVENT_COMM:
	case EVENT_EXIT:
		return set_aside(live, event);
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

	if (slice_is_over(live))
		return ASIDE_LATER;
	if (event->type == EVENT_FORK) {
		err = family__fork(live->family, task);
		if (!err)
			err = live_code__forked(live->code, task->ppid, task->pid, event->time);
	}
	if (!err && family__is_target(live->family, sideband_pid(event), event->time)) {
		live->changed = true;
		if (event->type == EVENT_COMM && event->flags & EVENT_COMM_EXEC)
			live_pace__exec(live);
		err = see_and_push(live, event);
	}
	if (event->type == EVENT_EXIT) {
		family__exit(live->family, task);
		thread_targets__exit(&live->threads, task);
		if (task->pid == task->tid)
			process_watch__forget(live->watch, task->pid);
	}
	if (event->type == EVENT_COMM && event->flags & EVENT_COMM_EXEC)
		process_watch__exec(live->watch, sideband_pid(event));
	if ((event->type == EVENT_EXIT && task->pid == task->tid) ||
	    (event->type == EVENT_COMM && event->flags & EVENT_COMM_EXEC)) {
		proc_reread__forget(live->reread, sideband_pid(event));
		live_code__forget(live->code, sideband_pid(event));
		if (live->facts)
			fact_asker__forget(live->facts, sideband_pid(event));
		err = err ? err : jit_targets__forget(&live->jit_targets, sideband_pid(event));
	}
	return err;
}

/* ---- CPUs that come and go -------------------------------------------------------------------- */

#define CPU_NOTES_MAX 2000 /* bytes; what comes later is not told one by one */

/* "CPU 1 offline at 1.204 s, CPU 1 online at 2.310 s" */
static int note_cpu(struct live *live, const struct cpu_change *change, uint64_t now)
{
	char note[320];
	char *text;
	int size;

	if (live->cpu_notes && strlen(live->cpu_notes) > CPU_NOTES_MAX)
		return 0;
	size = snprintf(note, sizeof(note), "CPU %u %s at %.3f s", change->cpu,
			change->online ? "online" : "offline", (now - live->start_time) / 1e9);
	if (change->error && size > 0 && (size_t)size < sizeof(note))
		snprintf(note + size, sizeof(note) - size, ", not sampled: %s: %s", change->what,
			 strerror(-change->error));
	if (asprintf(&text, "%s%s%s", live->cpu_notes ? live->cpu_notes : "",
		     live->cpu_notes ? "; " : "", note) < 0)
		return -ENOMEM;
	free(live->cpu_notes);
	live->cpu_notes = text;
	log_debug(LOG_BPF, "%s", note);
	return meta_event__emit(event_queue__push, live->queue, now, META_CPU_CHANGES, text);
}

/* A cpu_change_fn. */
static int on_cpu_change(void *context, const struct cpu_change *change)
{
	struct live *live = context;
	int err = 0;

	if (change->online && !change->error) {
		/* its counter of the TSC is a new one */
		if (change->cpu < live->tsc_lags.count)
			live->tsc_lags.data[change->cpu] = 0;
		err = cpu_idle__came(live->idle, change->cpu);
	}
	return err ? err : note_cpu(live, change, monotonic_ns());
}

/*
 * Until we know that a CPU is back its side-band is lost: programs started there, and processes were renamed. So all that
 * we know is read again.
 */
static int follow_cpus(struct live *live)
{
	bool fresh;
	int err = bpf_session__follow_cpus(live->session, push_from_rings, on_cpu_change, live,
					   &fresh);

	if (err || !fresh)
		return err;
	err = live_targets__snapshot(live, false, push_from_proc);
	return err ? err : bpf_session__start_fresh_cpus(live->session, on_cpu_change, live);
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

	if (!err && live->groups)
		err = live_groups__settle(live->groups);
	if (!err)
		err = report_lost_sideband(live);
	begin_slice(live);
	if (!err)
		err = aside__release(&live->sideband, before, take_sideband, live);
	if (!err)
		live->sideband_until = before;
	if (!err)
		err = proc_reread__run(live->reread);
	if (!err)
		err = settle_readers(live, FILES_PATIENCE);
	if (!err && live->facts && live->started && !live->stopped)
		err = fact_asker__run(live->facts, monotonic_ns());
	if (!err && live->started)
		err = live_code__run(live->code, monotonic_ns());
	return err ? err : live_pace__ask_readers(live);
}

int live_read_rings(struct live *live)
{
	return read_everything(live, monotonic_ns() - WRITING_TIME);
}

int live_settle_code(struct live *live)
{
	uint64_t now = monotonic_ns(), until = now + CODE_AT_END;
	int err = live_code__close(live->code, now);

	while (!err && live_code__waits(live->code) && now < until) {
		err = live_code__run(live->code, now);
		if (!err)
			reader_pool__settle(live->readers, until - now);
		now = monotonic_ns();
	}
	return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A zombie does, until it is waited for. */
static bool process_exists(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

/* What the kernel's side has to know of a process's runtimes. */
static int set_runtime(void *context, uint32_t tgid, const struct runtime_info *info)
{
	struct live *live = context;

	return bpf_session__set_runtime(live->session, tgid, info);
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
	live->books = outside_books__new();
	live->queue = event_queue__new(options->queue_bytes);
	if (live->queue)
		event_queue__set_stage(live->queue, stage_event, live);
	live->family = family__new(live->everyone, target->inherit, process_exists);
	live->idle = cpu_idle__new();
	if (!live->target_text || !live->command_line || !live->books || !live->queue ||
	    !live->family || !live->idle)
		return -ENOMEM;
	/* processes are forked while there is little memory and one thread */
	err = session_readers__new(live->books, &live->readers);
	if (!err)
		err = build_service__start(NULL, &live->builders);
	if (!err)
		err = dso_opener__new(&(struct dso_opener_options){.readers = live->readers,
								   .service = SERVICE_FILES,
								   .books = live->books},
				      &live->opener);
	if (!err)
		err = jit_tail__new(options->jvm_perfmap, &live->jit);
	if (!err)
		jit_tail__count_in(live->jit, live->books);
	jit_targets__init(&live->jit_targets, live->jit);
	if (!err)
		err = proc_snapshot__new(&live->proc);
	if (!err)
		proc_snapshot__use_readers(live->proc, live->readers, SERVICE_MAPS);
	if (!err)
		err = process_watch__new(options->no_memory, &live->watch);
	if (!err && options->session.follow_groups)
		err = live_groups__new(
			&(struct live_groups_options){.proc = live->proc,
						      .wanted = options->group_wanted,
						      .wanted_context = options->group_context,
						      .push = event_queue__push,
						      .context = live->queue},
			&live->groups);
	if (err)
		return err;
	if (options->facts)
		err = fact_asker__new(
			&(struct fact_asker_options){.readers = live->readers,
						     .service = SERVICE_FACTS,
						     .names = options->fact_names,
						     .name_count = options->fact_name_count,
						     .push = event_queue__push,
						     .context = live->queue},
			&live->facts);
	if (err)
		return err;
	err = live_code__new(&(struct live_code_options){.readers = live->readers,
							 .service = SERVICE_CODE,
							 .books = live->books,
							 .push = event_queue__push,
							 .context = live->queue,
							 .set_runtime = set_runtime,
							 .runtime_context = live},
			     &live->code);
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
	if (live->groups)
		live_groups__attach(live->groups, live->session);
	err = live_targets__add(live, options, failure);
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
	reader_pool__free(live->readers);
	fact_asker__free(live->facts);
	live_code__free(live->code);
	live_groups__free(live->groups);
	build_service__free(live->builders);
	outside_books__free(live->books);
	cpu_idle__free(live->idle);
	family__free(live->family);
	event_queue__free(live->queue);
	vec_free(&live->tsc_lags);
	vec_free(&live->roots);
	thread_targets__fini(&live->threads);
	aside__fini(&live->sideband);
	free(live->target_text);
	free(live->command_line);
	free(live->cpu_notes);
	free(live);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int push_meta(struct live *live)
{
	const struct bpf_session_info *info = bpf_session__info(live->session);
	uint64_t now = monotonic_ns();
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
	return err ? err : live_push_rate(live, now);
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
	kernel_modules__init(&live->modules, monotonic_ns());
	return err == -ENOMEM || !err ? err : 0;
}

static int settle_at_start(struct live *live)
{
	uint64_t until = monotonic_ns() + FILES_AT_START;
	int err;

	do {
		err = settle_readers(live, DRAIN_INTERVAL);
		if (!err)
			err = drain_in_time(live);
	} while (!err && reader_pool__waiting(live->readers) && monotonic_ns() < until);
	return err;
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
	thread_targets__begin(&live->threads, target_thread_runs);
	if (live->inherit && live->mode == TARGET_PROCESSES) {
		err = live_targets__add_descendants(live, failure);
		if (err)
			return err;
	}
	err = live_targets__snapshot(live, true, push_from_proc);
	if (err)
		return fail(failure, err, "cannot read the processes in /proc: %s", strerror(-err));
	err = settle_at_start(live);
	if (err)
		return fail(failure, err, "cannot open mapped files: %s", strerror(-err));
	jit_tail__settle(live->jit, JIT_START_PATIENCE);
	err = take_jit_events(live, monotonic_ns());
	if (!err)
		err = live_code__begin(live->code);
	if (!err)
		err = settle_readers(live, CODE_AT_START);
	if (err)
		return fail(failure, err, "cannot read what is there: %s", strerror(-err));
	reader_pool__set_hurry(live->readers, true);
	return 0;
}

int live__announce(struct live *live, event_sink_fn sink, void *context)
{
	uint64_t began = monotonic_ns();
	int err;

	live->unfinished = false;
	err = read_everything(live, began - WRITING_TIME);
	return err ? err : release_until(live, began - WRITING_TIME, sink, context);
}

size_t live__held(const struct live *live)
{
	struct event_queue_stats stats;

	event_queue__stats(live->queue, &stats);
	return stats.held;
}

bool live__is_behind(const struct live *live)
{
	return live->unfinished || dso_opener__pending_since(live->opener) != UINT64_MAX ||
	       proc_snapshot__pending_since(live->proc) != UINT64_MAX;
}

int live__start(struct live *live, struct failure *failure)
{
	uint64_t threads;
	/* baselines, as late as can be: a snapshot of a big system takes its time */
	int err = live_targets__read_cpu(live, 0, &threads);

	if (!err)
		err = look_at_processes(live, monotonic_ns());
	if (err)
		return fail(failure, err, "cannot read the processes in /proc: %s", strerror(-err));
	live->cpu_at_start = live_targets__cpu(live);
	cpu_idle__start(live->idle);
	live->start_time = monotonic_ns();
	err = bpf_session__enable_ticks(live->session, failure);
	if (err)
		return err;
	live->started = true;
	err = live_push_number(live, META_SAMPLING_START, live->start_time, live->start_time);
	return err ? fail(failure, err, "cannot start: %s", strerror(-err)) : 0;
}

/* ---- running --------------------------------------------------------------------------------- */

int live__tick(struct live *live, event_sink_fn sink, void *context)
{
	uint64_t began = monotonic_ns();
	/* less what a sample may be refined by */
	uint64_t until = bpf_session__written_until(live->session, began - WRITING_TIME) -
			 TSC_ERROR_MAX;
	int err = live->found_err ? live->found_err : read_everything(live, began - WRITING_TIME);

	if (!err && began >= live->last_cpu_look + CPU_LOOK_INTERVAL) {
		live->last_cpu_look = began;
		err = follow_cpus(live);
	}
	if (!err && began >= live->last_anchor + ANCHOR_INTERVAL) {
		err = push_anchor(live);
		if (!err)
			err = live_push_books(live, 0);
		if (!err)
			err = outside_books__report(live->books, event_queue__push, live->queue,
						    live->last_anchor);
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

struct passing_on {
	event_sink_fn sink;
	void *context;
};

/* An event_push_fn. */
static int push_to_sink(void *context, struct event_header *event)
{
	const struct passing_on *to = context;

	return to->sink(to->context, event);
}

int live__stop(struct live *live, event_sink_fn sink, void *context)
{
	struct passing_on to = {sink, context};
	struct event_header end = {.size = sizeof(end), .type = EVENT_END};
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
	err = read_everything(live, UINT64_MAX);
	jit_tail__finish(live->jit, JIT_STOP_PATIENCE);
	reader_pool__set_hurry(live->readers, false);
	if (!err)
		err = settle_readers(live, FILES_AT_END);
	if (!err)
		err = live_settle_code(live);
	if (!err)
		err = take_jit_events(live, end.time);
	if (!err)
		err = live_targets__read_cpu(live, end.time, &live->threads_counted);
	if (!err)
		err = look_at_processes(live, end.time);
	if (!err)
		err = live_push_books(live, 0);
	if (!err)
		err = push_anchor(live);
	if (!err)
		err = event_queue__flush(live->queue, sink, context);
	if (err)
		return err;
	end.time = live->last_anchor > end.time ? live->last_anchor : end.time;
	/* also what was left out of the last events */
	err = outside_books__report(live->books, push_to_sink, &to, end.time);
	return err ? err : sink(context, &end);
}

int live__judge_groups(struct live *live)
{
	return live->groups ? live_groups__judge_again(live->groups) : 0;
}

void live__pause_jit(struct live *live, bool pause)
{
	jit_tail__pause(live->jit, pause);
}

void live__set_stage(struct live *live, event_stage_fn stage, void *context)
{
	live->stage = stage;
	live->stage_context = context;
}

const struct event_source_requests *live__requests(struct live *live)
{
	return &live->requests;
}

uint64_t live__target_cpu(const struct live *live)
{
	uint64_t sum = live_targets__cpu(live);

	return sum > live->cpu_at_start ? sum - live->cpu_at_start : 0;
}

bool live__threads_ended(struct live *live)
{
	return thread_targets__ended(&live->threads, target_thread_runs, monotonic_ns(),
				     live->sideband_until);
}

struct dso_opener *live__dso_opener(struct live *live)
{
	return live->opener;
}

struct reader_pool *live__readers(struct live *live)
{
	return live->readers;
}

struct build_service *live__builders(struct live *live)
{
	return live->builders;
}

const struct live_code *live__code(const struct live *live)
{
	return live->code;
}

struct outside_books *live__books(struct live *live)
{
	return live->books;
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
	if (live->groups)
		live_groups__stats(live->groups, &stats->groups);
	event_queue__stats(live->queue, &stats->queue);
	stats->memory += stats->queue.memory_peak;
}
