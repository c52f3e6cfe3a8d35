/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Firefox Profiler, processed profile format 66.
 *
 * The viewer upgrades older formats and refuses newer ones, so the number is fixed. It accepts many
 * errors without a message and crashes on a few omissions; tests/e2e/consumers checks both.
 *
 * Times are columns of absolute milliseconds (since profile.start) with all nanoseconds, not
 * deltas, whose rounding errors the viewer would add up. profile/timeline decides what a thread did
 * between two CPU samples; each of its entries is a row. Edges of gaps have no stack, which is
 * legal, invisible in every tree, and stops the viewer from stretching a sample over the gap. The
 * column of CPU deltas adds up to the thread's CPU time exactly.
 */
#include "formats/out/exporters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "formats/out/describe.h"
#include "formats/out/firefox.h"
#include "formats/out/firefox_counters.h"
#include "formats/out/firefox_markers.h"
#include "formats/out/firefox_meta.h"
#include "formats/out/firefox_tables.h"
#include "formats/out/firefox_waits.h"
#include "formats/out/process_title.h"
#include "formats/out/waits.h"

/* The second life of a number is "123.1". */
static const char *track_name(char name[TRACK_NAME_SIZE], uint32_t number, uint32_t life)
{
	if (life)
		snprintf(name, TRACK_NAME_SIZE, "%" PRIu32 ".%" PRIu32, number, life);
	else
		snprintf(name, TRACK_NAME_SIZE, "%" PRIu32, number);
	return name;
}

const char *firefox__pid(const struct firefox *f, size_t track, char name[TRACK_NAME_SIZE])
{
	const struct profile_thread *thread = &f->p->threads[f->tracks.data[track].thread];

	return track_name(name, f->p->processes[thread->process.v].pid,
			  f->tracks.data[track].pid_life);
}

uint64_t firefox__events(const struct firefox *f, size_t track)
{
	return f->p->threads[f->tracks.data[track].thread].samples[SAMPLE_CPU].event_sum;
}

uint32_t firefox__first_of_process(const struct firefox *f, uint32_t track)
{
	return f->first_track[f->p->threads[f->tracks.data[track].thread].process.v] - 1;
}

/* The recording as a whole is described on the first track of the process of the busiest thread. */
static int find_processes(struct firefox *f)
{
	uint32_t busiest = 0;

	f->first_track = calloc(f->p->process_count + 1, sizeof(*f->first_track));
	if (!f->first_track)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->tracks.count; i++) {
		uint32_t *first =
			&f->first_track[f->p->threads[f->tracks.data[i].thread].process.v];

		if (!*first)
			*first = i + 1;
		if (firefox__events(f, i) > firefox__events(f, busiest))
			busiest = i;
	}
	f->recording = f->tracks.count ? firefox__first_of_process(f, busiest) : 0;
	return 0;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void write_relative(const struct firefox *f, const char *key, uint64_t time)
{
	json_key(f->w, key);
	json_ns_as_ms(f->w, (int64_t)(time - f->p->start));
}

static void write_end(const struct firefox *f, const char *key, uint64_t time)
{
	if (time)
		write_relative(f, key, time);
	else
		json_key_null(f->w, key);
}

int firefox__collect_entries(struct firefox *f, size_t track)
{
	const struct profile_thread *thread = &f->p->threads[f->tracks.data[track].thread];
	struct timeline timeline;
	struct timeline_entry entry;
	int err = 0;

	f->entries.count = 0;
	timeline__init(&timeline, f->p, thread);
	while (!err && timeline__next(&timeline, &entry))
		err = vec_push(&f->entries, entry);
	return err;
}

/* The highest weight that is read back. */
#define WEIGHT_NS_MAX ((1ULL << 62) - 1)

/* What is no number of samples but CPU time. */
static bool weights_are_time(const struct profile *p)
{
	return p->tick_cpu || profile__events_are_cpu(p);
}

static int64_t weight_ns(const struct profile *p, uint64_t weight)
{
	uint64_t ns = p->tick_cpu ? saturating_multiply_u64(weight, p->tick_cpu) : weight;

	return (int64_t)min_u64(ns, WEIGHT_NS_MAX);
}

/*
 * What each row counts, if not one: samples, or events, for which the viewer has no other name than
 * samples (its other weights are ms and bytes). Rows without a stack are in no tree.
 */
static void write_weights(const struct firefox *f, const struct profile_thread *thread)
{
	const struct firefox_row *rows = f->rows.data;
	struct json_writer *w = f->w;

	if (!f->p->event.v && !f->p->tick_cpu && !thread->samples[SAMPLE_CPU].ticks &&
	    !thread->samples[SAMPLE_WALL].count)
		json_key_null(w, "weight");
	else if (weights_are_time(f->p))
		JSON_COLUMN(w, "weight", f->rows.count,
			    json_ns_as_ms(w, weight_ns(f->p, rows[i].weight)));
	else
		JSON_COLUMN(w, "weight", f->rows.count, json_uint(w, rows[i].weight));
	/* without times there may be samples of no events, and of time also with times */
	if (f->p->event.v && !f->p->uncounted &&
	    (thread->samples[SAMPLE_CPU].ticks || f->p->untimed || profile__events_are_cpu(f->p)))
		JSON_COLUMN(w, "ticks", f->rows.count, json_uint(w, rows[i].ticks));
}

static void write_stack(const struct firefox *f, const struct firefox_row *row)
{
	if (row->stack.v)
		json_uint(f->w, firefox_row__stack(&f->tables, row));
	else
		json_null(f->w);
}

static void write_samples(const struct firefox *f, const struct profile_thread *thread)
{
	struct json_writer *w = f->w;
	const struct firefox_row *rows = f->rows.data;

	json_key_object(w, "samples");
	json_key_uint(w, "length", f->rows.count);
	json_key_string(w, "weightType", weights_are_time(f->p) ? "tracing-ms" : "samples");
	JSON_COLUMN(w, "stack", f->rows.count, write_stack(f, &rows[i]));
	JSON_COLUMN(w, "time", f->rows.count,
		    json_ns_as_ms(w, (int64_t)(rows[i].time - f->p->start)));
	write_weights(f, thread);
	JSON_COLUMN(w, "threadCPUDelta", f->rows.count, json_uint(w, rows[i].cpu_delta));
	json_end_object(w);
}

/*
 * The viewer shows the main thread's name for its process: that has the process's title, with its
 * own beside, unless it is the program's.
 */
static void write_thread_name(const struct firefox *f, const struct profile_thread *thread,
			      const char *name, const char *process_name, const char *title)
{
	char text[2 * PROCESS_TITLE_SIZE];

	if (thread->is_main && strcmp(name, process_name)) {
		snprintf(text, sizeof(text), "%s (%s)", title, name);
		name = text;
	} else if (thread->is_main) {
		name = title;
	}
	json_key_string(f->w, "name", name);
}

/* What viewers do not show: which of the names above are whose, and what the process belongs to. */
static void write_names(const struct firefox *f, const struct profile_process *process,
			const char *name, const char *process_name)
{
	if (!memcmp(&process->names, &(struct profile_names){}, sizeof(process->names)))
		return;
	json_key(f->w, "$sysprof");
	json_begin_object(f->w);
	json_key_string(f->w, "comm", name);
	json_key_string(f->w, "process", process_name);
	write_process_names(f->p, process, f->w);
	json_end_object(f->w);
}

static int write_thread(struct firefox *f, const struct track *track, size_t number)
{
	const struct profile_thread *thread = &f->p->threads[track->thread];
	const struct profile_process *process = &f->p->processes[thread->process.v];
	const char *process_name = profile__string(f->p, process->name);
	const char *name = profile__string(f->p, thread->name);
	char text[TRACK_NAME_SIZE], buffer[PROCESS_TITLE_SIZE];
	const char *title = process_title(f->p, process, buffer);
	struct json_writer *w = f->w;
	bool is_none = !track->thread; /* the one thread in the file of a profile without threads */
	int err = is_none ? 0 : firefox__collect_rows(f, number);

	if (err)
		return err;
	if (is_none)
		name = process_name = title = "nothing was recorded";
	json_begin_object(w);
	write_thread_name(f, thread, name, process_name, title);
	json_key_bool(w, "isMainThread", thread->is_main || is_none);
	json_key_string(w, "processType", "default");
	json_key_string(w, "processName", title);
	write_names(f, process, name, process_name);
	write_relative(f, "processStartupTime", is_none ? f->p->start : process->start);
	write_end(f, "processShutdownTime", process->end);
	write_relative(f, "registerTime", is_none ? f->p->start : thread->start);
	write_end(f, "unregisterTime", thread->end);
	json_key_empty_array(w, "pausedRanges");
	json_key_string(w, "pid", track_name(text, process->pid, track->pid_life));
	json_key_string(w, "tid", track_name(text, thread->tid, track->tid_life));
	json_key_bool(w, "showMarkersInTimeline", firefox_has_overview_markers(f, number));
	write_samples(f, thread);
	firefox_write_markers(f, number);
	json_end_object(w);
	return 0;
}

static int write_threads(struct firefox *f)
{
	int err = 0;

	json_key_array(f->w, "threads");
	for (size_t i = 0; i < f->tracks.count && !err; i++)
		err = write_thread(f, &f->tracks.data[i], i);
	if (!f->tracks.count)
		err = write_thread(f, &(struct track){0}, 0);
	json_end_array(f->w);
	return err;
}

static int write_file(struct firefox *f)
{
	static const char *const empty[] = {"pages", "profilerOverhead"};
	struct json_writer *w = f->w;
	int err;

	json_begin_object(w);
	json_key(w, "meta");
	err = firefox_write_meta(f);
	json_key(w, "libs");
	firefox_tables__write_libs(&f->tables, w);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		json_key_empty_array(w, empty[i]);
	if (!err)
		err = firefox_write_counters(f);
	json_key(w, "shared");
	firefox_tables__write_shared(&f->tables, w);
	if (!err)
		err = write_threads(f);
	json_end_object(w);
	return err;
}

static int write_tracks(const struct export_request *request)
{
	struct json_writer writer;
	struct firefox f = {.p = request->profile, .w = &writer};
	int err, write_err;

	err = tracks__init(&f.tracks, f.p)
		?: find_processes(&f)
		?: firefox_tables__init(&f.tables, f.p, &f.tracks)
		?: firefox_collect_markers(&f);
	if (!err) {
		json_writer__init(&writer, request->out);
		err = write_file(&f);
		write_err = json_writer__finish(&writer);
		err = err ? err : write_err;
	}
	firefox_tables__fini(&f.tables);
	free(f.first_track);
	free(f.marker_end);
	vec_free(&f.markers);
	tracks__fini(&f.tracks);
	vec_free(&f.entries);
	vec_free(&f.rows);
	return err;
}

static int write_firefox(const struct export_request *request)
{
	report_jits_left_out(request);
	return write_requested_waits(request, write_tracks);
}

const struct exporter firefox_exporter = {
	.name = "firefox",
	.suffixes = (const char *const[]){".json", ".json.gz", NULL},
	.description = "Firefox Profiler, processed format 66",
	.how_to_open = "open https://profiler.firefox.com/from-file/ and choose %s "
		       "(or drag it into profiler.firefox.com)",
	.may_gzip = true,
	.is_json = true,
	.write = write_firefox,
};
