/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chrome CPU profile (.cpuprofile): CDP's Profiler.Profile, one thread a file. Of CPU samples.
 *
 * Nodes are call paths, merged by what DevTools takes for a function: name, script and definition
 * site (in callFrame, 0-based, -1: unknown). The executing lines are positionTicks, only those in
 * the file of the url. Ids are 1..N in preorder, so parents come first and viewers may index by id.
 *
 * Viewers disagree about the length of a sample: until the next one, or one mean interval. These
 * are equal only if samples are evenly spaced, so a gap is filled with one (idle) sample a period,
 * and the profile begins with its thread, not with the recording.
 *
 * With merge_threads a file has all threads of a process: process_timeline.h lays them out, and the
 * CPU time of a sample is that until the next one.
 *
 * Times are whole microseconds of CLOCK_MONOTONIC, rounded before they are subtracted, so errors do
 * not add up. Viewers ignore our "$sysprof": the thread and its CPU time, whose column (a number
 * for each sample; the last includes the time after it) adds up to cpuTimeNs exactly.
 */
#include "formats/out/exporters.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/vec.h"
#include "formats/out/call_frames.h"
#include "formats/out/call_tree.h"
#include "formats/out/describe.h"
#include "formats/out/process_timeline.h"
#include "formats/out/process_title.h"
#include "profile/timeline.h"

/*
 * Idle samples of a file. If a thread was idle for more periods, each sample stands for several.
 * All files of a recording may have IDLE_SAMPLES_MAX together, and each IDLE_SAMPLES_LEAST.
 */
#define IDLE_SAMPLES_MAX   (1u << 20)
#define IDLE_SAMPLES_LEAST (1u << 16)
#define IDLE_FILE_SHARE                                                                            \
	100 /* threads with less than 1/100 of the samples have no file, unless requested */

struct tick {
	uint32_t node, line;
	uint64_t count;
};

struct sample {
	uint64_t time; /* ns */
	uint32_t node, line;
	uint64_t cpu, ticks, events;
};

struct cpuprofile {
	const struct profile *p;
	const struct profile_thread *thread;
	uint32_t merged;     /* threads with samples in the file; 0: it is of `thread` alone */
	uint64_t start, end; /* ns; end 0: that of the last sample */
	uint64_t cpu_time, sample_rows;
	bool has_ticks;
	bool has_cpu; /* a thread of `merged` has CPU time */
	struct json_writer w;
	struct call_tree tree;
	struct call_frames frames;
	VEC(struct sample) samples;
	uint64_t idle_step; /* periods that an idle sample stands for */
	struct row_times times;
	uint64_t divisor; /* of the lengths of rows without times; 1: none */
	struct idle_rows known_idle;
	VEC(struct tick) ticks; /* one an element at first, then merged */
	uint32_t *id_of_node;
};

static int cpuprofile__init(struct cpuprofile *c, const struct profile *p,
			    const struct profile_thread *thread)
{
	*c = (struct cpuprofile){
		.p = p,
		.thread = thread,
		.start = row_times_start(p, thread),
		.cpu_time = profile_thread__cpu(thread),
		.has_ticks = thread->samples[SAMPLE_CPU].ticks,
	};
	return call_tree__init(&c->tree, p, call_frames__key, &c->frames)
		       ?: call_frames__init(&c->frames, p);
}

static void cpuprofile__fini(struct cpuprofile *c)
{
	call_tree__fini(&c->tree);
	call_frames__fini(&c->frames);
	vec_free(&c->samples);
	vec_free(&c->ticks);
	free(c->id_of_node);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* `ticks`: how many missed the thread. */
static int add_idle_sample(struct cpuprofile *c, uint64_t time, uint64_t ticks)
{
	uint32_t node;
	int err = call_tree__child(&c->tree, CALL_TREE_ROOT, CALL_FRAME_IDLE, &node);

	if (err)
		return err;
	c->tree.nodes.data[node].hits += ticks;
	return vec_push(&c->samples, (struct sample){.time = time, .node = node});
}

static int add_idle_before(struct cpuprofile *c, size_t i)
{
	struct timeline_idle idle = timeline_idle_before(c->p, c->thread, i);
	uint64_t time;
	int err = 0;

	while (idle_rows__next(&c->known_idle, i, &time) && !err)
		err = add_idle_sample(c, time, 1);
	if (c->p->idle_known)
		return err;
	for (uint64_t n = 0; n < idle.count && !err; n += c->idle_step)
		err = add_idle_sample(c, idle.first + n * c->p->period,
				      min_u64(c->idle_step, idle.count - n));
	return err;
}

/* How many idle samples the file may have, beside one for each gap. */
static uint64_t idle_samples_most(const struct profile *p)
{
	uint64_t files = 0;

	for (size_t i = 1; i < p->thread_count; i++)
		files += p->threads[i].samples[SAMPLE_CPU].tick_sum >
			 p->sample_count / IDLE_FILE_SHARE;
	return max_u64(IDLE_SAMPLES_MAX / max_u64(files, 1), IDLE_SAMPLES_LEAST);
}

static uint64_t choose_idle_step(const struct cpuprofile *c)
{
	uint64_t ticks = 0, most = idle_samples_most(c->p);

	for (size_t i = 0; i <= c->thread->samples[SAMPLE_CPU].count; i++)
		ticks = saturating_add_u64(ticks, timeline_idle_before(c->p, c->thread, i).count);
	return ticks / most + (ticks % most != 0);
}

/* Events, of which a file may have no more than the hits of nodes; ns have timeDeltas. */
static uint64_t hits_of(const struct cpuprofile *c, const struct sample *sample)
{
	bool by_time = !c->p->untimed && profile__events_are_cpu(c->p);

	return by_time ? sample->ticks : sample->events;
}

static int add_tick(struct cpuprofile *c, const struct sample *sample)
{
	if (!sample->line)
		return 0;
	return vec_push(&c->ticks, (struct tick){sample->node, sample->line, hits_of(c, sample)});
}

static int add_sample(struct cpuprofile *c, const struct profile_samples *samples, size_t i)
{
	struct sample sample = {.time = row_times__next(&c->times), .cpu = samples->weight[i]};
	int err = call_tree__stack(&c->tree, CALL_TREE_ROOT, samples->stack[i], &sample.node);

	if (err)
		return err;
	sample.ticks = profile_samples__ticks(samples, i);
	sample.events = profile_samples__events(samples, i);
	sample.line = call_frames_leaf_line(c->p, samples->stack[i]);
	c->tree.nodes.data[sample.node].hits += hits_of(c, &sample);
	c->sample_rows++;
	return add_tick(c, &sample) ?: vec_push(&c->samples, sample);
}

static int collect_samples(struct cpuprofile *c)
{
	size_t count = c->thread->samples[SAMPLE_CPU].count;
	int err = 0;

	c->idle_step = max_u64(choose_idle_step(c), 1);
	row_times__init(&c->times, c->p, c->thread);
	c->divisor = c->times.divisor;
	idle_rows__init(&c->known_idle, c->thread);
	for (size_t i = 0; i < count && !err; i++)
		err = add_idle_before(c, i) ?: add_sample(c, &c->thread->samples[SAMPLE_CPU], i);
	if (!err)
		err = add_idle_before(c, count);
	/* viewers divide by the number of samples */
	if (!err && !c->samples.count)
		err = add_idle_sample(c, c->thread->start, 1);
	if (!err)
		c->samples.data[c->samples.count - 1].cpu += c->thread->cpu_tail;
	return err;
}

/* ---- all threads of a process ---------------------------------------------------------------- */

typedef VEC(struct timeline_row) timeline_rows;

static bool is_merged(const struct cpuprofile *c, const struct profile_thread *thread)
{
	return thread->process.v == c->thread->process.v && thread->samples[SAMPLE_CPU].count;
}

/* Are there samples of its process, if none of the thread itself? */
static bool can_merge(const struct cpuprofile *c)
{
	for (size_t i = 1; i < c->p->thread_count; i++)
		if (is_merged(c, &c->p->threads[i]))
			return true;
	return false;
}

/* Sample i of a thread, which is the last one that was added. */
static int add_row(struct cpuprofile *c, timeline_rows *rows, const struct profile_thread *thread,
		   size_t i)
{
	bool is_last = i + 1 == thread->samples[SAMPLE_CPU].count;
	struct sample *sample = &c->samples.data[c->samples.count - 1];
	struct timeline_row row = {.begin = sample->time,
				   .sample = c->samples.count - 1,
				   .thread = (uint32_t)(thread - c->p->threads),
				   .node = sample->node};

	sample->cpu += is_last ? thread->cpu_tail : 0;
	if (c->p->untimed || !c->has_cpu)
		row.length = row_times__length(&c->times);
	else
		row.length = sample->cpu;
	if (!c->p->untimed && !c->p->weight_ahead) /* its time is that before it */
		row.begin -= min_u64(row.begin, c->has_cpu ? thread->samples[SAMPLE_CPU].weight[i]
							   : row.length);
	row.begin = max_u64(row.begin, c->start);
	return vec_push(rows, row);
}

static int add_rows(struct cpuprofile *c, timeline_rows *rows, const struct profile_thread *thread)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];
	int err = 0;

	row_times__init(&c->times, c->p, thread);
	c->times.divisor = c->divisor;
	for (size_t i = 0; i < samples->count && !err; i++)
		err = add_sample(c, samples, i) ?: add_row(c, rows, thread, i);
	c->cpu_time += profile_thread__cpu(thread);
	c->has_ticks |= samples->ticks != NULL;
	c->end = max_u64(c->end, timeline_end(c->p, thread));
	c->merged++;
	return err;
}

/* When the samples before row i end. */
static uint64_t end_before(const struct cpuprofile *c, const timeline_rows *rows, size_t i)
{
	return i ? saturating_add_u64(rows->data[i - 1].time, rows->data[i - 1].length) : c->start;
}

/* Idle samples in [since, until), one for each idle_step periods. */
static int fill_gap(struct cpuprofile *c, uint64_t since, uint64_t until)
{
	uint64_t step = saturating_multiply_u64(export_period(c->p), c->idle_step);
	int err = 0;

	for (uint64_t time = since; time < until && !err; time = saturating_add_u64(time, step))
		err = add_idle_sample(c, time, c->idle_step);
	return err;
}

static void choose_gap_step(struct cpuprofile *c, const timeline_rows *rows)
{
	uint64_t most = saturating_multiply_u64(idle_samples_most(c->p), export_period(c->p));
	uint64_t idle = 0;

	for (size_t i = 0; i < rows->count; i++)
		idle += rows->data[i].time - end_before(c, rows, i);
	idle += c->end - end_before(c, rows, rows->count);
	c->idle_step = idle / most + 1;
}

/* The samples in the order of the rows, with idle ones between them. */
static int place_rows(struct cpuprofile *c, const timeline_rows *rows)
{
	_cleanup_free_ struct sample *samples = steal_ptr(c->samples.data);
	int err = 0;

	c->samples.count = c->samples.capacity = 0;
	for (size_t i = 0; i < rows->count && !err; i++) {
		struct sample sample = samples[rows->data[i].sample];

		sample.time = rows->data[i].time;
		err = fill_gap(c, end_before(c, rows, i), sample.time)
			      ?: vec_push(&c->samples, sample);
	}
	return err ?: fill_gap(c, end_before(c, rows, rows->count), c->end);
}

/* One for all threads, whose rows lie one after the other if they have no times. */
static uint64_t merged_divisor(const struct cpuprofile *c)
{
	uint64_t divisor = 1, threads = 0;
	struct row_times times;

	for (size_t i = 1; i < c->p->thread_count; i++)
		threads += is_merged(c, &c->p->threads[i]);
	for (size_t i = 1; i < c->p->thread_count && c->p->untimed; i++) {
		if (!is_merged(c, &c->p->threads[i]))
			continue;
		row_times__init(&times, c->p, &c->p->threads[i]);
		divisor = max_u64(divisor, row_times__divisor(&times, ROW_TIMES_MAX / threads));
	}
	return divisor;
}

static int collect_process(struct cpuprofile *c)
{
	uint64_t cell = c->p->untimed ? 0 : export_period(c->p) * TIMELINE_CELL_PERIODS;
	timeline_rows rows = {};
	int err = 0;

	c->cpu_time = 0;
	c->start = UINT64_MAX;
	c->divisor = merged_divisor(c);
	for (size_t i = 1; i < c->p->thread_count; i++) {
		const struct profile_thread *thread = &c->p->threads[i];

		if (!is_merged(c, thread))
			continue;
		c->start = min_u64(c->start, row_times_start(c->p, thread));
		c->has_cpu |= profile_thread__cpu(thread) > 0;
	}
	for (size_t i = 1; i < c->p->thread_count && !err; i++)
		if (is_merged(c, &c->p->threads[i]))
			err = add_rows(c, &rows, &c->p->threads[i]);
	err = err
		      ?: process_timeline__lay(rows.data, rows.count, &c->tree, c->start,
					       export_period(c->p), cell);
	if (!err) {
		c->end = max_u64(c->p->untimed ? 0 : c->end, end_before(c, &rows, rows.count));
		choose_gap_step(c, &rows);
		err = place_rows(c, &rows);
	}
	vec_free(&rows);
	return err;
}

DEFINE_ORDER(compare_ticks, struct tick, ASCENDING(node) ?: ASCENDING(line));

/* One tick for each node and line, in the order in which the nodes are written. */
static void merge_ticks(struct cpuprofile *c)
{
	struct tick *ticks = c->ticks.data;
	size_t count = 0;

	for (size_t i = 0; i < c->ticks.count; i++)
		ticks[i].node = c->id_of_node[ticks[i].node];
	if (c->ticks.count)
		qsort(ticks, c->ticks.count, sizeof(*ticks), compare_ticks);
	for (size_t i = 0; i < c->ticks.count; i++) {
		if (count && !compare_ticks(&ticks[count - 1], &ticks[i]))
			ticks[count - 1].count += ticks[i].count;
		else
			ticks[count++] = ticks[i];
	}
	c->ticks.count = count;
}

static int number_nodes(struct cpuprofile *c)
{
	uint32_t node = CALL_TREE_ROOT, id = 0;

	c->id_of_node = calloc(c->tree.nodes.count, sizeof(*c->id_of_node));
	if (!c->id_of_node)
		return -ENOMEM;
	do {
		c->id_of_node[node] = ++id;
		node = call_tree__next(&c->tree, node);
	} while (node != CALL_TREE_ROOT);
	merge_ticks(c);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_children(struct cpuprofile *c, const struct call_node *node)
{
	json_key_array(&c->w, "children");
	for (uint32_t child = node->first_child; child;
	     child = c->tree.nodes.data[child].next_sibling)
		json_uint(&c->w, c->id_of_node[child]);
	json_end_array(&c->w);
}

/* Ticks are in the order of the nodes; *next: the first unwritten one. */
static void write_ticks(struct cpuprofile *c, uint32_t id, size_t *next)
{
	if (*next == c->ticks.count || c->ticks.data[*next].node != id)
		return;
	json_key_array(&c->w, "positionTicks");
	for (; *next < c->ticks.count && c->ticks.data[*next].node == id; ++*next) {
		json_begin_object(&c->w);
		json_key_uint(&c->w, "line", c->ticks.data[*next].line);
		json_key_uint(&c->w, "ticks", c->ticks.data[*next].count);
		json_end_object(&c->w);
	}
	json_end_array(&c->w);
}

static int write_nodes(struct cpuprofile *c)
{
	uint32_t at = CALL_TREE_ROOT;
	size_t next_tick = 0;
	int err = 0;

	json_key_array(&c->w, "nodes");
	do {
		const struct call_node *node = &c->tree.nodes.data[at];

		json_begin_object(&c->w);
		json_key_uint(&c->w, "id", c->id_of_node[at]);
		err = call_frames__write(&c->frames,
					 at == CALL_TREE_ROOT ? CALL_FRAME_ROOT : node->key, &c->w);
		json_key_uint(&c->w, "hitCount", node->hits);
		if (node->first_child)
			write_children(c, node);
		write_ticks(c, c->id_of_node[at], &next_tick);
		json_end_object(&c->w);
		at = call_tree__next(&c->tree, at);
	} while (at != CALL_TREE_ROOT && !err);
	json_end_array(&c->w);
	return err;
}

static void write_columns(struct cpuprofile *c)
{
	uint64_t before = c->start / 1000;

	JSON_COLUMN(&c->w, "samples", c->samples.count,
		    json_uint(&c->w, c->id_of_node[c->samples.data[i].node]));
	json_key_array(&c->w, "timeDeltas");
	for (size_t i = 0; i < c->samples.count; i++) {
		uint64_t now = c->samples.data[i].time / 1000;

		now = max_u64(now, before);
		json_uint(&c->w, now - before);
		before = now;
	}
	json_end_array(&c->w);
}

/* What samples stand for, and the lines of those that stand for different numbers. */
static void write_own_columns(struct cpuprofile *c)
{
	const struct sample *samples = c->samples.data;
	struct json_writer *w = &c->w;

	JSON_COLUMN(w, "threadCPUDeltas", c->samples.count, json_uint(w, samples[i].cpu));
	if (c->has_ticks)
		JSON_COLUMN(w, "sampleTicks", c->samples.count, json_uint(w, samples[i].ticks));
	if (c->p->event.v)
		JSON_COLUMN(w, "sampleEvents", c->samples.count, json_uint(w, samples[i].events));
	if (c->ticks.count && (c->has_ticks || c->p->event.v || c->merged))
		JSON_COLUMN(w, "sampleLines", c->samples.count, json_uint(w, samples[i].line));
}

static void write_identity(struct cpuprofile *c)
{
	const struct profile_process *process = &c->p->processes[c->thread->process.v];
	struct string_id comm = c->merged ? process->name : c->thread->name;
	struct json_writer *w = &c->w;

	json_key_uint(w, "pid", process->pid);
	json_key_uint(w, "tid", c->merged ? process->pid : c->thread->tid);
	json_key_string(w, "comm", profile__string(c->p, comm));
	json_key_string(w, "process", profile__string(c->p, process->name));
	write_process_names(c->p, process, w);
	json_key_bool(w, "isMainThread", c->merged || c->thread->is_main);
	if (c->merged)
		json_key_uint(w, "mergedThreads", c->merged);
	json_key_uint(w, "startTimeRealtime",
		      (c->p->start_realtime + (c->start - c->p->start)) / 1000);
	json_key_uint(w, "samples", c->sample_rows);
	json_key_uint(w, "periodNs", c->p->period);
	if (c->idle_step > 1)
		json_key_uint(w, "periodsPerIdleSample", c->idle_step);
	if (c->divisor > 1)
		json_key_uint(w, "lengthsDividedBy", c->divisor);
	json_key_uint(w, "cpuTimeNs", c->cpu_time);
	if (c->p->weight_ahead ||
	    c->merged) /* each is of the time until the next sample, not since the last */
		json_key_bool(w, "cpuDeltasAhead", true);
	write_own_columns(c);
}

/* us. The last sample, at `last` ns, may be an idle one. */
static uint64_t end_time(const struct cpuprofile *c, uint64_t last)
{
	uint64_t length = c->p->untimed ? row_times__end(&c->times) - last : c->times.step;

	if (c->merged)
		return (c->end + 999) / 1000;
	if (c->p->weight_ahead)
		return (last + row_times_last_weight(c->thread)) / 1000;
	return last / 1000 + (length + 999) / 1000;
}

static int write_file(struct cpuprofile *c, FILE *out)
{
	uint64_t last = max_u64(c->start, c->samples.data[c->samples.count - 1].time);
	int err, write_err;

	json_writer__init(&c->w, out);
	json_begin_object(&c->w);
	err = write_nodes(c);
	json_key_uint(&c->w, "startTime", c->start / 1000);
	json_key_uint(&c->w, "endTime", end_time(c, last));
	write_columns(c);
	json_key_object(&c->w, "$sysprof");
	write_identity(c);
	call_frames__write_modules(&c->frames, &c->w);
	err = err ?: write_recording(c->p, &c->w);
	json_end_object(&c->w);
	json_end_object(&c->w);
	write_err = json_writer__finish(&c->w);
	return err ? err : write_err;
}

static void report_left_out(const struct cpuprofile *c, const struct export_request *request)
{
	text_limit__report(&c->frames.limit, request);
	report_jits_left_out(request);
	if (request->left_out && c->idle_step > 1)
		request->left_out->idle_ticks = max_u64(request->left_out->idle_ticks,
							c->idle_step);
	if (request->left_out && c->divisor > 1)
		request->left_out->length_divisor = max_u64(request->left_out->length_divisor,
							    c->divisor);
}

/* Each of its threads may have a call tree of its own. */
static int fit_names(struct cpuprofile *c, uint32_t id, bool merges)
{
	struct tracks tracks = {};
	int err = 0;

	for (uint32_t i = 1; i < c->p->thread_count && !err; i++)
		if (merges ? is_merged(c, &c->p->threads[i]) : i == id)
			err = vec_push(&tracks, (struct track){.thread = i});
	err = err ?: text_limit__fit_trees(&c->frames.limit, &tracks);
	vec_free(&tracks);
	return err;
}

static int write_cpuprofile(const struct export_request *request)
{
	const struct profile *profile = request->profile;
	struct thread_id id = request->thread.v ? request->thread : export_busiest_thread(profile);
	/* a file without threads must open, too */
	struct profile_thread no_thread = {.start = profile->start, .end = profile->start};
	struct cpuprofile c;
	bool merges;
	int err;

	if (request->thread.v && id.v >= profile->thread_count)
		return -EINVAL;
	err = cpuprofile__init(&c, profile, id.v ? &profile->threads[id.v] : &no_thread);
	merges = request->merge_threads && id.v && can_merge(&c);
	if (!err && id.v)
		err = fit_names(&c, id.v, merges);
	if (!err)
		err = (merges ? collect_process(&c) : collect_samples(&c))
			      ?: number_nodes(&c) ?: write_file(&c, request->out);
	report_left_out(&c, request);
	cpuprofile__fini(&c);
	return err;
}

const struct exporter cpuprofile_exporter = {
	.name = "cpuprofile",
	.suffixes = (const char *const[]){".cpuprofile", NULL},
	.description = "Chrome CPU profile, one thread a file",
	.how_to_open = "open %s in Chrome DevTools (Performance, \"Load profile…\"), VS Code or "
		       "speedscope",
	.one_thread = true,
	.is_json = true,
	.write = write_cpuprofile,
};
