/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chrome trace (.trace.json): the CPU samples of all threads of all processes, for DevTools'
 * Performance panel, Perfetto and speedscope.
 *
 * Each thread is a CPU profile in pieces: a Profile event, then ProfileChunk events with new nodes
 * of the call tree, samples, and the time of each since the one before. The viewers also demand:
 *
 * - Node ids are 1..N without a gap over the whole file: Firefox Profiler has one table for all.
 *   Parents come first. Every thread has its own tree, root included.
 * - A chunk has at most 50,000 samples: DevTools passes them as arguments of one call.
 * - A thread has one complete event ("X") from its first sample to the end of its last: without it
 *   DevTools does not show the thread. Its name is never that of an event of Chrome's, for which
 *   DevTools would expect Chrome's arguments.
 * - pid and tid are numbers and identify processes and threads. The second life of a number, after
 *   an execve or a reuse, gets a made-up number with the same last digits: 300, then 10000300. The
 *   X event has the real ones.
 * - A wait (record --wall) is a complete event of its own category, inside that of its thread.
 *
 * A sample lasts until the next one, and an (idle) node is a gap. So a gap is one idle sample where
 * the first tick missed the thread, unlike in .cpuprofile.
 *
 * Threads are written one after the other, so there is one tree in memory. Times are whole
 * microseconds of CLOCK_MONOTONIC, as in .cpuprofile.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/json_writer.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "formats/out/call_frames.h"
#include "formats/out/call_tree.h"
#include "formats/out/describe.h"
#include "formats/out/process_title.h"
#include "formats/out/tracks.h"
#include "formats/out/waits.h"
#include "profile/timeline.h"

#define CHUNK_SAMPLES	  50000
#define LIFE_STEP	  10000000 /* above every pid of Linux, and seen to be decimal */

#define CATEGORY_METADATA "__metadata"
#define CATEGORY_TIMELINE "devtools.timeline"
#define CATEGORY_WAIT	  "sysprof.wait"
#define CATEGORY_PROFILER "disabled-by-default-v8.cpu_profiler"

struct trace_sample {
	uint32_t node, line;
	uint64_t time; /* us */
	uint64_t cpu, ticks, events;
};

struct trace {
	const struct profile *p;
	bool has_cpu; /* samples have CPU time, which is not their length */
	struct json_writer w;
	struct tracks tracks;
	struct call_tree tree;
	struct call_frames frames;
	uint64_t life_step;
	/* of the thread that is being written: */
	uint64_t pid, tid;
	uint64_t id;	     /* of its profile */
	uint64_t first_node; /* the id of its root */
	uint32_t nodes_written;
	uint64_t time; /* us, of the last sample written */
	const struct profile_samples *rows;
	uint64_t divisor; /* of the lengths of rows without times; 1: none */
	VEC(struct trace_sample) samples;
};

/* Numbers of imported profiles may be anything: the made-up ones are above all of them. */
static uint64_t choose_life_step(const struct trace *t)
{
	uint64_t step = LIFE_STEP;

	for (size_t i = 0; i < t->tracks.count; i++) {
		const struct profile_thread *thread = &t->p->threads[t->tracks.data[i].thread];
		uint32_t pid = t->p->processes[thread->process.v].pid;

		while (step <= pid || step <= thread->tid)
			step *= 10;
	}
	return step;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Up to "args", whose value is the caller's. */
static void begin_event(struct trace *t, const char *name, const char *phase, const char *category,
			uint64_t time)
{
	struct json_writer *w = &t->w;

	json_begin_object(w);
	json_key_string(w, "name", name);
	json_key_string(w, "ph", phase);
	json_key_string(w, "cat", category);
	json_key_uint(w, "pid", t->pid);
	json_key_uint(w, "tid", t->tid);
	json_key_uint(w, "ts", time);
}

static void begin_metadata(struct trace *t, const char *name)
{
	begin_event(t, name, "M", CATEGORY_METADATA, 0);
	json_key_object(&t->w, "args");
}

static void end_metadata(struct trace *t)
{
	json_end_object(&t->w);
	json_end_object(&t->w);
}

static void write_name(struct trace *t, const char *event, const char *name)
{
	begin_metadata(t, event);
	json_key_string(&t->w, "name", name);
	end_metadata(t);
}

static void write_sort_index(struct trace *t, const char *event, uint64_t index)
{
	begin_metadata(t, event);
	json_key_uint(&t->w, "sort_index", index);
	end_metadata(t);
}

/* What viewers do not show: the process's own name, and what it belongs to. */
static void write_own_names(struct trace *t, const struct profile_process *process)
{
	if (!memcmp(&process->names, &(struct profile_names){}, sizeof(process->names)))
		return;
	json_key_object(&t->w, "$sysprof");
	json_key_string(&t->w, "process", profile__string(t->p, process->name));
	write_process_names(t->p, process, &t->w);
	json_end_object(&t->w);
}

static void write_process(struct trace *t, const struct profile_process *process,
			  const struct track *track, size_t index)
{
	char label[64], title[PROCESS_TITLE_SIZE];

	t->tid = t->pid;
	begin_metadata(t, "process_name");
	json_key_string(&t->w, "name", process_title(t->p, process, title));
	write_own_names(t, process);
	end_metadata(t);
	if (track->pid_life) {
		snprintf(label, sizeof(label), "pid %" PRIu32 ", life %" PRIu32, process->pid,
			 track->pid_life + 1);
		begin_metadata(t, "process_labels");
		json_key_string(&t->w, "labels", label);
		end_metadata(t);
	}
	write_sort_index(t, "process_sort_index", index);
}

static void choose_numbers(struct trace *t, const struct track *track)
{
	const struct profile_thread *thread = &t->p->threads[track->thread];

	t->pid = t->p->processes[thread->process.v].pid + track->pid_life * t->life_step;
	t->tid = thread->tid + track->tid_life * t->life_step;
}

/* Names come before everything else: viewers that read in order have them when they need them. */
static void write_names(struct trace *t)
{
	for (size_t i = 0; i < t->tracks.count; i++) {
		const struct track *track = &t->tracks.data[i];
		const struct profile_thread *thread = &t->p->threads[track->thread];

		choose_numbers(t, track);
		if (!i || track->group != track[-1].group) {
			write_process(t, &t->p->processes[thread->process.v], track, i);
			choose_numbers(t, track);
		}
		write_name(t, "thread_name", profile__string(t->p, thread->name));
		write_sort_index(t, "thread_sort_index", i);
	}
}

/* `name (tid)`: no event of Chrome's is called so. */
static int write_span(struct trace *t, const struct profile_thread *thread, uint64_t start,
		      uint64_t end)
{
	struct json_writer *w = &t->w;
	char *name;

	if (asprintf(&name, "%s (%" PRIu32 ")", profile__string(t->p, thread->name), thread->tid) <
	    0)
		return -ENOMEM;
	begin_event(t, name, "X", CATEGORY_TIMELINE, start);
	free(name);
	json_key_uint(w, "dur", max_u64(end - start, 1));
	json_key_object(w, "args");
	json_key_uint(w, "pid", t->p->processes[thread->process.v].pid);
	json_key_uint(w, "tid", thread->tid);
	if (!t->p->uncounted)
		json_key_uint(w, "samples", thread->samples[SAMPLE_CPU].tick_sum);
	if (t->p->event.v || t->p->uncounted)
		json_key_uint(w, profile__event(t->p), thread->samples[SAMPLE_CPU].event_sum);
	json_key_uint(w, "cpuTimeNs", profile_thread__cpu(thread));
	json_end_object(w);
	json_end_object(w);
	return 0;
}

static void begin_profile_event(struct trace *t, const char *name, uint64_t time)
{
	char id[24];

	snprintf(id, sizeof(id), "0x%" PRIx64, t->id);
	begin_event(t, name, "P", CATEGORY_PROFILER, time);
	json_key_string(&t->w, "id", id);
	json_key_object(&t->w, "args");
	json_key_object(&t->w, "data");
}

static void end_profile_event(struct trace *t)
{
	json_end_object(&t->w);
	json_end_object(&t->w);
	json_end_object(&t->w);
}

static void write_profile_head(struct trace *t, uint64_t start)
{
	begin_profile_event(t, "Profile", start);
	json_key_uint(&t->w, "startTime", start);
	json_key_string(&t->w, "source", "Internal");
	end_profile_event(t);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* Nodes are in order of first use: new ones are the last ones, parents before their children. */
static int write_new_nodes(struct trace *t)
{
	struct json_writer *w = &t->w;
	int err = 0;

	json_key_array(w, "nodes");
	for (; t->nodes_written < t->tree.nodes.count && !err; t->nodes_written++) {
		const struct call_node *node = &t->tree.nodes.data[t->nodes_written];
		bool is_root = t->nodes_written == CALL_TREE_ROOT;

		json_begin_object(w);
		json_key_uint(w, "id", t->first_node + t->nodes_written);
		if (!is_root)
			json_key_uint(w, "parent", t->first_node + node->parent);
		err = call_frames__write(&t->frames, is_root ? CALL_FRAME_ROOT : node->key, w);
		json_end_object(w);
	}
	json_end_array(w);
	return err;
}

/* What samples stand for, which their lengths do not say; as in .cpuprofile files. */
static void write_own_columns(struct trace *t)
{
	const struct trace_sample *samples = t->samples.data;
	struct json_writer *w = &t->w;

	if (!t->rows->ticks && !t->rows->events && !t->has_cpu)
		return;
	json_key_object(w, "$sysprof");
	if (t->has_cpu)
		JSON_COLUMN(w, "threadCPUDeltas", t->samples.count, json_uint(w, samples[i].cpu));
	if (t->rows->ticks)
		JSON_COLUMN(w, "sampleTicks", t->samples.count, json_uint(w, samples[i].ticks));
	if (t->p->event.v)
		JSON_COLUMN(w, "sampleEvents", t->samples.count, json_uint(w, samples[i].events));
	json_end_object(w);
}

static int write_chunk(struct trace *t)
{
	const struct trace_sample *samples = t->samples.data;
	struct json_writer *w = &t->w;
	int err;

	begin_profile_event(t, "ProfileChunk", samples[0].time);
	json_key_object(w, "cpuProfile");
	err = write_new_nodes(t);
	JSON_COLUMN(w, "samples", t->samples.count, json_uint(w, t->first_node + samples[i].node));
	json_end_object(w);
	json_key_array(w, "timeDeltas");
	for (size_t i = 0; i < t->samples.count; i++) {
		json_uint(w, samples[i].time - t->time);
		t->time = samples[i].time;
	}
	json_end_array(w);
	JSON_COLUMN(w, "lines", t->samples.count, json_uint(w, samples[i].line));
	write_own_columns(t);
	end_profile_event(t);
	t->samples.count = 0;
	return err;
}

static int push_sample(struct trace *t, uint64_t ns, struct trace_sample sample)
{
	const struct trace_sample *last = t->samples.count ? &t->samples.data[t->samples.count - 1]
							   : NULL;
	int err;

	sample.time = max_u64(ns / 1000, last ? last->time : t->time);
	err = vec_push(&t->samples, sample);

	if (!err && t->samples.count == CHUNK_SAMPLES)
		err = write_chunk(t);
	return err;
}

static int push_gap(struct trace *t, const struct profile_thread *thread, size_t i)
{
	struct timeline_idle idle = timeline_idle_before(t->p, thread, i);
	uint32_t node;

	if (!idle.count)
		return 0;
	return call_tree__child(&t->tree, CALL_TREE_ROOT, CALL_FRAME_IDLE, &node)
		       ?: push_sample(t, idle.first, (struct trace_sample){.node = node});
}

static int write_samples(struct trace *t, const struct profile_thread *thread)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];
	struct row_times times;
	int err = 0;

	t->rows = samples;
	row_times__init(&times, t->p, thread);
	times.divisor = t->divisor;
	for (size_t i = 0; i < samples->count && !err; i++) {
		struct trace_sample sample = {
			.line = call_frames_leaf_line(t->p, samples->stack[i]),
			.cpu = samples->weight[i] +
			       (i + 1 == samples->count ? thread->cpu_tail : 0),
			.ticks = profile_samples__ticks(samples, i),
			.events = profile_samples__events(samples, i),
		};

		err = push_gap(t, thread, i)
			?: call_tree__stack(&t->tree, CALL_TREE_ROOT, samples->stack[i], &sample.node)
			?: push_sample(t, row_times__next(&times), sample);
	}
	if (!err)
		err = push_gap(t, thread, samples->count);
	return !err && t->samples.count ? write_chunk(t) : err;
}

/* ---- waits ----------------------------------------------------------------------------------- */

static void write_holder(struct trace *t, uint32_t holder)
{
	const struct profile_thread *thread = &t->p->threads[holder];

	if (!holder)
		return;
	json_key_uint(&t->w, "holderTid", thread->tid);
	json_key_string(&t->w, "holder", profile__string(t->p, thread->name));
}

/* Waits that lasted a microsecond or longer. */
static void write_waits(struct trace *t, const struct profile_thread *thread, uint64_t start)
{
	const struct profile_samples *waits = &thread->samples[SAMPLE_WALL];

	for (size_t i = 0; i < waits->count; i++) {
		uint64_t since = max_u64(waits->since[i] / 1000, start);
		uint64_t until = waits->until[i] / 1000;
		enum wall_state state = profile_samples__state(waits, i);

		if (until <= since)
			continue;
		begin_event(t, wait_leaf(state), "X", CATEGORY_WAIT, since);
		json_key_uint(&t->w, "dur", until - since);
		json_key_object(&t->w, "args");
		json_key_string(&t->w, "state", wall_state_name(state));
		write_holder(t, waits->holder[i].v);
		json_end_object(&t->w);
		json_end_object(&t->w);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The end of its last sample, or of the gap after it. */
static uint64_t end_of(const struct trace *t, const struct profile_thread *thread)
{
	const struct profile_samples *idle = &thread->samples[SAMPLE_IDLE];
	struct row_times times;

	row_times__init(&times, t->p, thread);
	if (times.untimed) {
		for (size_t i = 0; i < times.samples->count; i++)
			row_times__next(&times);
	} else if (times.samples->count) {
		times.row = times.samples->count;
		times.last = times.samples->time[times.row - 1];
	}
	if (idle->count)
		times.last = max_u64(times.last, idle->time[idle->count - 1]);
	if (t->p->weight_ahead)
		return times.last + row_times_last_weight(thread);
	if (timeline_idle_before(t->p, thread, times.samples->count).count)
		return timeline_end(t->p, thread);
	return row_times__end(&times);
}

static uint64_t end_of_waits(const struct profile_thread *thread)
{
	const struct profile_samples *waits = &thread->samples[SAMPLE_WALL];

	return waits->count ? waits->until[waits->count - 1] : 0;
}

static int write_thread(struct trace *t, const struct profile_thread *thread)
{
	uint64_t start = row_times_start(t->p, thread) / 1000;
	uint64_t end = max_u64(end_of(t, thread), end_of_waits(thread)) / 1000;
	int err = write_span(t, thread, start, max_u64(end, start));

	if (err)
		return err;
	call_tree__clear(&t->tree);
	t->id++;
	t->nodes_written = 0;
	t->time = start;
	write_profile_head(t, start);
	err = write_samples(t, thread);
	write_waits(t, thread, start);
	t->first_node += t->nodes_written;
	return err;
}

static int write_events(struct trace *t)
{
	/* DevTools has no time range without an event */
	const struct profile_thread no_thread = {.start = t->p->start, .end = t->p->end};
	int err = 0;

	json_key_array(&t->w, "traceEvents");
	write_names(t);
	for (size_t i = 0; i < t->tracks.count && !err; i++) {
		choose_numbers(t, &t->tracks.data[i]);
		err = write_thread(t, &t->p->threads[t->tracks.data[i].thread]);
	}
	if (!t->tracks.count && !err) {
		write_name(t, "process_name", "nothing was recorded");
		err = write_span(t, &no_thread, t->p->start / 1000,
				 max_u64(t->p->end, t->p->start) / 1000);
	}
	json_end_array(&t->w);
	return err;
}

static int write_file(struct trace *t)
{
	struct json_writer *w = &t->w;
	int err, write_err;

	json_begin_object(w);
	err = write_events(t);
	json_key_object(w, "metadata");
	json_key_object(w, "$sysprof");
	json_key_uint(w, "startTimeRealtime", t->p->start_realtime / 1000);
	json_key_uint(w, "periodNs", t->p->period);
	if (t->has_cpu && t->p->weight_ahead)
		json_key_bool(w, "cpuDeltasAhead", true);
	if (t->divisor > 1)
		json_key_uint(w, "lengthsDividedBy", t->divisor);
	call_frames__write_modules(&t->frames, w);
	err = err ?: write_recording(t->p, w);
	json_end_object(w);
	json_end_object(w);
	json_end_object(w);
	write_err = json_writer__finish(w);
	return err ? err : write_err;
}

/* Without times there may be none: a reader takes the lengths of rows for it. */
static bool has_cpu(const struct profile *p)
{
	bool any = p->untimed;

	for (uint32_t i = 1; i < p->thread_count && !any; i++)
		any = profile_thread__cpu(&p->threads[i]) > 0;
	return any;
}

/* One for all threads, so that their lengths compare. */
static uint64_t common_divisor(const struct profile *p)
{
	uint64_t divisor = 1;
	struct row_times times;

	for (uint32_t i = 1; i < p->thread_count && p->untimed; i++) {
		row_times__init(&times, p, &p->threads[i]);
		divisor = max_u64(divisor, times.divisor);
	}
	return divisor;
}

static int write_tracks(const struct export_request *request)
{
	struct trace t = {
		.p = request->profile,
		.first_node = 1,
		.divisor = common_divisor(request->profile),
		.has_cpu = has_cpu(request->profile),
	};
	int err = tracks__init(&t.tracks, t.p);

	json_writer__init(&t.w, request->out);
	t.life_step = choose_life_step(&t);
	if (!err)
		err = call_tree__init(&t.tree, t.p, call_frames__key, &t.frames)
			?: call_frames__init(&t.frames, t.p)
			?: text_limit__fit_trees(&t.frames.limit, &t.tracks)
			?: write_file(&t);
	text_limit__report(&t.frames.limit, request);
	report_jits_left_out(request);
	if (request->left_out && t.divisor > 1)
		request->left_out->length_divisor = max_u64(request->left_out->length_divisor,
							    t.divisor);
	tracks__fini(&t.tracks);
	call_tree__fini(&t.tree);
	call_frames__fini(&t.frames);
	vec_free(&t.samples);
	return err;
}

static int write_trace(const struct export_request *request)
{
	return write_requested_waits(request, write_tracks);
}

const struct exporter trace_exporter = {
	.name = "trace",
	.suffixes = (const char *const[]){".trace.json", ".trace.json.gz", NULL},
	.description = "Chrome trace, every process and thread",
	.how_to_open =
		"open %s in Chrome DevTools (Performance, \"Load profile…\"), ui.perfetto.dev or "
		"speedscope",
	.may_gzip = true,
	.is_json = true,
	.write = write_trace,
};
