/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merges all sources into one stream.
 *
 * A tick reads every ring once. The records are complete up to the start of the tick, except for
 * those being written at that time. The eBPF programs publish since when they have been writing one
 * (bpf_session__written_until()); for the kernel's own records WRITING_TIME is enough. The queue
 * passes on everything older. A record that a hypervisor delays for longer is passed on late, and
 * counted. Samples get their time from the clock's anchors when they are read.
 *
 * pace.c decides when ticks are.
 *
 * Side-band records have a queue of their own until all rings of the tick are read, and are then
 * processed by time: one CPU's ring may have a fork, and another's the child's mappings or its own
 * children; and only files of targets are opened. Rings are read one after the other, so records
 * written since the first was read wait for the next tick: their cause may be in a ring that was
 * read before.
 *
 * One thread does all of it, so no record can be older than an anchor taken after it was read: the
 * conversion of a TSC uses nothing later.
 *
 * A process can map files faster than they can be processed. So a tick spends one slice of time on
 * the side-band and another on the queue, and the rest waits for the next tick, which comes at
 * once: in between the caller checks signals and the time, and all rings are read. The side-band's
 * queue has a limit; records beyond it are lost, and counted like those that did not fit into a
 * ring.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "live/capture/bpf_session_cpus.h"
#include "live/capture/bpf_session_hotplug.h"
#include "live/capture/cpu_idle.h"
#include "live/capture/cpu_visit.h"
#include "live/live_private.h"
#include "live/pace.h"
#include "live/targets.h"
#include "live/thread_targets.h"
#include "live/windows.h"
#include "stream/meta.h"
#include "tenants/tenant_user.h"

#define ANCHOR_INTERVAL	  1000000000ull /* ns */
#define BOOKS_SELDOM	  4		/* anchors, if a low rate is to cost little */
#define CPU_LOOK_INTERVAL 250000000ull	/* ns between checks of which CPUs are online */
#define TSC_ERROR_MAX	  2000ull	/* ns by which a sample's two clocks may differ */
#define WRITING_TIME	  1000000ull	/* ns from a record's time until it is in the ring */
#define CODE_AT_END	  100000000ull	/* ns: for functions that were seen in the last moment */
#define SLICE		  50000000ull	/* ns */
#define SLICE_EVENTS	  16		/* between two readings of the clock */
#define MAPS_FREE	  256u /* records of a program's mappings before its user is looked up */
#define MAPS_REREAD	  1000000000ull /* ns */

/* ---- into the queue -------------------------------------------------------------------------- */

/* A mapping_answer_fn: a mapping whose file is known. Parts get those of the present program. */
static int push_mapping(void *context, struct mmap_event *mmap)
{
	struct live *live = context;
	struct task *task = tasks__need_program(live->tasks, (pid_t)mmap->pid, mmap->header.time);
	int err = task ? call_parts(live->parts, mapped, task, mmap) : 0;

	return err ? err : event_queue__push(live->queue, &mmap->header);
}

static int see_and_push(struct live *live, struct event_header *event)
{
	struct mmap_event *mmap = (struct mmap_event *)event;

	if (event->type == EVENT_MAPS_READ)
		return dso_opener__pass(live->opener, event, event_queue__push, live->queue);
	if (event->type != EVENT_MMAP)
		return event_queue__push(live->queue, event);
	return dso_opener__see(live->opener, mmap, tasks__parent(live->tasks, mmap->pid),
			       push_mapping, live);
}

/* Takes answers of readers, until none is missing or `patience` (ns) is over. */
int live_settle_readers(struct live *live, uint64_t patience)
{
	return dso_opener__settle(live->opener, patience) ?: proc_snapshot__error(live->proc);
}

static void begin_slice(struct live *live)
{
	live->slice.handled = 0;
	live->slice.end = live->stopped ? UINT64_MAX : monotonic_ns() + SLICE;
}

/* Called before each event. The first ones of a slice always pass. */
static bool slice_is_over(struct live *live)
{
	if (++live->slice.handled % SLICE_EVENTS || monotonic_ns() <= live->slice.end)
		return false;
	live->slice.handled--; /* so that it stays over */
	live->slice.unfinished = true;
	return true;
}

/* The stage of the queue. */
int live_stage_event(void *context, const struct event_header **event)
{
	struct live *live = context;

	if (slice_is_over(live))
		return STAGE_WAIT;
	return live->stage ? live->stage(live->stage_context, event) : 0;
}

/* Passes on events older than `until` and than every mapping whose file is still unknown. */
static int release_until(struct live *live, uint64_t until, event_sink_fn sink, void *context)
{
	until = min_u64(until, dso_opener__pending_since(live->opener));
	until = min_u64(until, proc_snapshot__pending_since(live->proc));
	until = min_u64(until, event_queue__oldest(live->sideband.queue));
	each_part_with (live->parts, part, pending_since)
		until = min_u64(until, part->pending_since(part->object));
	begin_slice(live);
	return event_queue__release(live->queue, until, sink, context);
}

static int push_from_rings(void *context, struct event_header *event);

/* Passes on what the kernel has written: a catch_up of struct proc_readers. */
int live_catch_up(void *context)
{
	struct live *live = context;

	return bpf_session__drain(live->session, push_from_rings, live);
}

void live_read_again(void *context, uint32_t pid)
{
	struct live *live = context;

	live->requests.reread_process(live->requests.context, pid);
}

/* Reading /proc can take seconds, and the rings have no room for all that happens meanwhile. */
int live_drain_in_time(struct live *live)
{
	uint64_t now = monotonic_ns();

	if (live->started || now < live->drained + LIVE_DRAIN_INTERVAL)
		return 0;
	live->drained = now;
	return live_catch_up(live);
}

/* An event_push_fn: an event from /proc, which is of targets only, so it needs no check. */
int live_push_from_proc(void *context, struct event_header *event)
{
	struct live *live = context;

	if (event->type == EVENT_PROCESS) {
		struct process_event *process = (struct process_event *)event;
		int err = tasks__add_parent(live->tasks, process->pid, process->ppid);

		process->is_target &= live_targets__is_requested(live, process->pid);
		if (err)
			return err;
		err = live_drain_in_time(live);
		if (err)
			return err;
	}
	return see_and_push(live, event);
}

/*
 * Sets the time of a sample from its TSC. perf's TSC counter stands still for some microseconds
 * whenever the kernel rearranges a CPU's counters (when a profiler starts or ends), and is late
 * from then on. The program's reading of the clock, half a microsecond before that of the TSC,
 * shows this; also a new epoch, and a delay between the two readings.
 */
static int refine_time(struct live *live, struct sample_event *sample)
{
	uint64_t reading = sample->header.time, time, *lag;

	if (!sample->tsc)
		return 0;
	lag = vec_at(&live->tsc_lags, sample->cpu);
	if (!lag)
		return -ENOMEM;
	time = clock__to_monotonic(&live->clock, sample->tsc) + *lag;
	if (time + TSC_ERROR_MAX < reading)
		*lag += reading - time;
	else if (time > reading + TSC_ERROR_MAX)
		*lag -= time - reading < *lag ? time - reading : *lag;
	else
		sample->header.time = time;
	return 0;
}

/* The side-band of its process is needed. NULL: out of memory. */
static struct task *note_sampled(struct live *live, const struct sample_event *sample)
{
	struct task *task = tasks__need(live->tasks, (pid_t)sample->tgid);

	if (task)
		task->slots.sampled = true;
	else
		brief_lives__miss(&live->sideband.brief, sample->header.time);
	return task;
}

/* A sample of a process, not of interrupts: the parts follow it. */
static int take_task(struct live *live, struct sample_event *sample)
{
	struct task *task = note_sampled(live, sample);

	return task ? call_parts(live->parts, sampled, task, sample) : 0;
}

static uint64_t sample_period(const struct live *live)
{
	uint64_t period = bpf_session__info(live->session)->period;

	return period ? period : 1000000000ull / live->hz;
}

/* The thread's clock counts from `since` before this sample on. */
static int push_baseline(struct live *live, const struct sample_event *sample, uint64_t since)
{
	struct thread_cpu_event e = {.header = {.size = sizeof(e),
						.type = EVENT_THREAD_CPU,
						.flags = EVENT_BASELINE,
						.time = sample->header.time},
				     .tgid = sample->tgid,
				     .tid = sample->tid,
				     .cpu_time = sample->cpu_time -
						 min_u64(sample->cpu_time, since)};

	return event_queue__push(live->queue, &e.header);
}

int live_keep_sample(void *context, struct event_header *event)
{
	struct sample_event *sample = (struct sample_event *)event;
	struct live *live = context;
	int err = 0;

	if (event->flags & EVENT_AFTER_FILTERED)
		err = push_baseline(live, sample, sample_period(live));
	event->flags &= ~(EVENT_TENTATIVE | EVENT_AFTER_FILTERED);
	if (!err)
		err = interrupts__take(&live->interrupts, sample, sample_period(live),
				       event_queue__push, live->queue);
	live->samples++;
	if (!err && sample->tgid)
		err = take_task(live, sample);
	return err ? err : event_queue__push(live->queue, event);
}

int live_drop_sample(void *context, struct event_header *event)
{
	const struct sample_event *sample = (const struct sample_event *)event;
	struct live *live = context;
	struct live_dropped *dropped = vec_at(&live->dropped, sample->cpu);

	if (!dropped)
		return -ENOMEM;
	dropped->ticks += sample->period ? sample->period : 1;
	dropped->samples++;
	return push_baseline(live, sample, 0);
}

static int take_sample(struct live *live, struct sample_event *sample)
{
	int err = refine_time(live, sample);

	if (err)
		return err;
	if (sample->header.flags & EVENT_TENTATIVE) {
		/* whether it is kept is decided after the side-band of its process is taken */
		note_sampled(live, sample);
		return call_parts(live->parts, reported, &sample->header);
	}
	return live_keep_sample(live, &sample->header);
}

/*
 * A user can map more than can be processed in time, and records of others queue behind. Is this
 * record over the user's share? If so, its process is read again later.
 */
static bool is_over_share(struct live *live, const struct mmap_event *mapping)
{
	struct task *task = tasks__find(live->tasks, (pid_t)mapping->pid);
	struct task_program *program = task ? &task->slots.program : NULL;
	uint64_t now;

	if (!task || ++program->maps <= MAPS_FREE)
		return false;
	if (program->maps % MAPS_FREE == 1)
		program->maps_user = tenant_user((pid_t)mapping->pid);
	if (program->maps_user == QUOTA_ROOT ||
	    !tasks__is_target(live->tasks, (pid_t)mapping->pid, mapping->header.time))
		return false;
	now = monotonic_ns();
	if (quota__left(&live->sideband.map_records, program->maps_user, now) > 0) {
		quota__take(&live->sideband.map_records, program->maps_user, 1, now);
		return false;
	}
	outside_books__add(live->books, program->maps_user, OUTSIDE_MAPPINGS, OUTSIDE_BY_TOO_OFTEN,
			   1);
	program->reread_next = max_u64(program->reread_next, now + MAPS_REREAD);
	live->requests.reread_process(live->requests.context, mapping->pid);
	return true;
}

/* An event_push_fn: records of the rings. */
static int push_from_rings(void *context, struct event_header *event)
{
	struct live *live = context;

	switch (event->type) {
	case EVENT_IN_GROUP:
	case EVENT_GROUP_MADE:
	case EVENT_NAME_QUESTION:
	case EVENT_CODE_COPY:
		return call_parts(live->parts, reported, event);
	case EVENT_SAMPLE:
		return take_sample(live, (struct sample_event *)event);
	case EVENT_MMAP:
		if (is_over_share(live, (const struct mmap_event *)event))
			return 0;
		proc_snapshot__mapped(live->proc, (const struct mmap_event *)event);
		return event_queue__push(live->sideband.queue, event);
	case EVENT_COMM:
		if (event->flags & EVENT_COMM_EXEC)
			proc_snapshot__execed(live->proc, (const struct comm_event *)event);
		return event_queue__push(live->sideband.queue, event);
	case EVENT_FORK:
	case EVENT_EXIT:
		brief_lives__note(&live->sideband.brief, (const struct task_event *)event);
		return event_queue__push(live->sideband.queue, event);
	case EVENT_THREAD_CPU:
		return event_queue__push(live->sideband.queue, event);
	case EVENT_LOST:
		brief_lives__miss(&live->sideband.brief, event->time);
		return event_queue__push(live->queue, event);
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
	case EVENT_THREAD_CPU:
		return ((const struct thread_cpu_event *)event)->tgid;
	default:
		return ((const struct task_event *)event)->pid;
	}
}

/* Otherwise the world would keep the process until its number is used again. */
static int push_gone(struct live *live, const struct task *task)
{
	struct task_event e = {
		.header = {.size = sizeof(e),
			   .type = EVENT_EXIT,
			   .flags = EVENT_FROM_PROC,
			   .time = task->ended},
		.pid = (uint32_t)task->id.pid,
		.ppid = (uint32_t)task->parent.pid,
		.tid = (uint32_t)task->id.pid,
		.ptid = (uint32_t)task->parent.pid,
	};

	return live->target.everyone || task->is_target ? event_queue__push(live->queue, &e.header)
							: 0;
}

/* tasks_options.released: the parts' slots are about to be cleared. */
int live_release_task(void *context, struct task *task, enum task_end how)
{
	struct live *live = context;
	int err = how == TASK_GONE ? push_gone(live, task) : 0;

	if (err)
		return err;
	return how == TASK_EXECED ? call_parts(live->parts, execed, task)
				  : call_parts(live->parts, exited, task);
}

/* The stage of the side-band. */
int live_stage_sideband(void *live, const struct event_header **event)
{
	(void)event;
	return slice_is_over(live) ? STAGE_WAIT : 0;
}

/* Is the process over, and needed by no sample? Decided at its fork record. */
static bool is_needless(struct live *live, const struct event_header *event)
{
	pid_t pid = sideband_pid(event);
	const struct task *task;

	if (event->type != EVENT_FORK)
		return brief_lives__dropped(&live->sideband.brief, (uint32_t)pid, event->time);
	/* a visit may come after the side-band of its process */
	if (live->visits)
		return false;
	task = tasks__find(live->tasks, pid);
	return !(task && task->slots.sampled) &&
	       brief_lives__drop(&live->sideband.brief, (uint32_t)pid, event->time, live->all_read);
}

/* An event_sink_fn. The record is in the queue of the side-band, so it may be changed. */
static int take_sideband(void *context, const struct event_header *record)
{
	struct live *live = context;
	struct event_header *event = (struct event_header *)record;
	const struct task_event *task = (const struct task_event *)event;
	bool is_exec = event->type == EVENT_COMM && event->flags & EVENT_COMM_EXEC;
	int err = 0;

	if (is_needless(live, event))
		return 0;
	if (event->type == EVENT_THREAD_CPU)
		return event_queue__push(live->queue, event);
	if (event->type == EVENT_FORK)
		err = tasks__fork(live->tasks, task) ?: call_parts(live->parts, forked, task);
	if (!err && tasks__is_target(live->tasks, sideband_pid(event), event->time)) {
		live->changed = true;
		if (is_exec)
			live_pace__exec(live);
		err = see_and_push(live, event);
	}
	if (event->type == EVENT_EXIT) {
		thread_targets__exit(&live->target.threads, task);
		err = err ? err : tasks__exit(live->tasks, task);
	} else if (is_exec && !err) {
		err = tasks__exec(live->tasks, sideband_pid(event), event->time);
	}
	return err;
}

/* ---- CPUs that come and go ------------------------------------------------------------------- */

#define CPU_NOTES_MAX 2000 /* bytes; later changes are not listed */

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
		/* its TSC counter begins anew */
		if (change->cpu < live->tsc_lags.count)
			live->tsc_lags.data[change->cpu] = 0;
		err = cpu_idle__came(live->idle, change->cpu);
	}
	return err ? err : note_cpu(live, change, monotonic_ns());
}

/*
 * Until the return of a CPU is noticed its side-band is lost: execve calls and renames there. So
 * all processes are read again.
 */
static int follow_cpus(struct live *live)
{
	bool fresh;
	int err = bpf_session__follow_cpus(live->session, push_from_rings, on_cpu_change, live,
					   &fresh);

	if (err || !fresh)
		return err;
	return live_targets__snapshot(live, false, live_push_from_proc)
		       ?: bpf_session__start_fresh_cpus(live->session, on_cpu_change, live);
}

static int push_anchor(struct live *live)
{
	struct clock_anchor_event anchor;

	clock__anchor_now(&live->clock, &anchor);
	live->last_anchor = anchor.monotonic;
	return event_queue__push(live->queue, &anchor.header);
}

static int tick_parts(struct live *live)
{
	int err = 0;

	for (const struct live_part *part = live->parts; part->object && !err; part++)
		if (part->tick)
			err = part->tick(part->object, monotonic_ns());
	return err;
}

/* Side-band records younger than `before` wait for the next call. */
static int read_everything(struct live *live, uint64_t before)
{
	int err;

	live->all_read = bpf_session__written_until(live->session, min_u64(before, monotonic_ns()));
	err = bpf_session__drain(live->session, push_from_rings, live);
	begin_slice(live);
	if (!err)
		err = event_queue__release(live->sideband.queue, before, take_sideband, live);
	if (!err)
		live->sideband.until = before;
	before = min_u64(min_u64(before, monotonic_ns()),
			 event_queue__oldest(live->sideband.queue));
	brief_lives__forget(&live->sideband.brief, before);
	if (!err)
		err = tasks__sweep(live->tasks, before);
	if (!err)
		err = tick_parts(live);
	return err ? err : live_pace__use_readers(live);
}

int live_read_rings(struct live *live)
{
	return read_everything(live, monotonic_ns() - WRITING_TIME);
}

static const struct live_part *part_that_waits(const struct live *live)
{
	each_part_with (live->parts, part, waits)
		if (part->waits(part->object))
			return part;
	return NULL;
}

int live_settle_code(struct live *live)
{
	uint64_t now = monotonic_ns(), until = now + CODE_AT_END;
	int err = call_parts(live->parts, close, now);

	while (!err && now < until && part_that_waits(live)) {
		const struct live_part *part = part_that_waits(live);

		err = part->tick(part->object, now);
		if (!err)
			helper_pool__settle(live->readers, until - now);
		now = monotonic_ns();
	}
	return err;
}

/* ---- running --------------------------------------------------------------------------------- */

int live__announce(struct live *live, event_sink_fn sink, void *context)
{
	uint64_t began = monotonic_ns();

	live->slice.unfinished = false;
	return read_everything(live, began - WRITING_TIME)
		       ?: release_until(live, began - WRITING_TIME, sink, context);
}

bool live__is_behind(const struct live *live)
{
	return live->slice.unfinished || dso_opener__pending_since(live->opener) != UINT64_MAX ||
	       proc_snapshot__pending_since(live->proc) != UINT64_MAX;
}

int live__tick(struct live *live, event_sink_fn sink, void *context)
{
	uint64_t began = monotonic_ns();
	/* less the most by which a sample's time may be refined */
	uint64_t until = bpf_session__written_until(live->session, began - WRITING_TIME) -
			 TSC_ERROR_MAX;
	int err = live->found_err ? live->found_err : read_everything(live, began - WRITING_TIME);

	if (!err && began >= live->last_cpu_look +
				     (live_is_saving(live) ? ANCHOR_INTERVAL : CPU_LOOK_INTERVAL)) {
		live->last_cpu_look = began;
		err = follow_cpus(live);
	}
	if (!err && began >= live->last_anchor + ANCHOR_INTERVAL) {
		err = push_anchor(live);
		if (!err && ++live->seconds % (live_is_saving(live) ? BOOKS_SELDOM : 1) == 0) {
			cpu_idle__read(live->idle);
			err = live_push_books(live, 0);
		}
		if (!err)
			err = outside_books__report(live->books, event_queue__push, live->queue,
						    live->last_anchor);
		if (!err)
			err = call_parts(live->parts, second, live->last_anchor);
	}
	if (!err)
		err = release_until(live, until, sink, context);
	live->pace.ticked = true;
	live->pace.ticked_early = began < live->pace.on_timer;
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
	for (const struct live_part *part = live->parts; part->object; part++)
		if (part->stop)
			part->stop(part->object);
	/* before the end: losses of a full ring are reported with a later record */
	err = read_everything(live, monotonic_ns() - WRITING_TIME);
	if (err)
		return err;
	bpf_session__disable(live->session);
	end.time = monotonic_ns();
	/* nothing is sampled any more, but targets run on: what follows takes up to a second */
	cpu_idle__read(live->idle);
	err = read_everything(live, UINT64_MAX)
		      ?: live_targets__read_cpu(live, end.time)
		      ?: call_parts(live->parts, finish, end.time)
		      ?: live_settle_code(live)
		      ?: call_parts(live->parts, second, end.time)
		      ?: live_push_books(live, 0)
		      ?: push_anchor(live)
		      ?: event_queue__flush(live->queue, sink, context);
	if (err)
		return err;
	end.time = live->last_anchor > end.time ? live->last_anchor : end.time;
	/* includes what was left out of the last events */
	return outside_books__report(live->books, push_to_sink, &to, end.time)
		       ?: sink(context, &end);
}

int live__judge_groups(struct live *live)
{
	return call_parts(live->parts, judge_groups);
}

void live__pause_jit(struct live *live, bool pause)
{
	each_part_with (live->parts, part, pause_jit)
		part->pause_jit(part->object, pause);
}

void live__set_stage(struct live *live, event_stage_fn stage, void *context)
{
	live->stage = stage;
	live->stage_context = context;
}

uint64_t live__target_cpu(const struct live *live)
{
	uint64_t sum = live_targets__cpu(live);

	return sum > live->target.cpu_at_start ? sum - live->target.cpu_at_start : 0;
}

bool live__threads_ended(struct live *live)
{
	return thread_targets__ended(&live->target.threads, target_thread_runs, monotonic_ns(),
				     live->sideband.until);
}

struct live_shared live__shared(const struct live *live)
{
	return (struct live_shared){
		.kernel = live->session,
		.opener = live->opener,
		.readers = live->readers,
		.tasks = live->tasks,
		.books = live->books,
		.requests = &live->requests,
	};
}

void live__stats(const struct live *live, struct live_stats *stats)
{
	*stats = (struct live_stats){
		.samples = live->samples,
		.memory = bpf_session__memory(live->session),
	};
	each_part_with (live->parts, part, refused)
		stats->wall_refused = part->refused(part->object);
	event_queue__stats(live->queue, &stats->queue);
	stats->memory += stats->queue.memory_peak;
}
