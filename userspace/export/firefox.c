/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Firefox Profiler, processed profile format 66.
 *
 * The viewer upgrades older formats and refuses newer ones, so the number is fixed. It accepts many
 * errors without a message and crashes on a few omissions; tests/e2e/consumers checks both.
 *
 * Times are columns of absolute milliseconds (since profile.start) with all nanoseconds, not deltas,
 * whose rounding errors the viewer would add up. profile/timeline decides what a thread did between
 * two CPU samples. Each of its entries is a row: samples have a stack, the edges of gaps have none,
 * which is legal, invisible in every tree, and stops the viewer from stretching a sample over the
 * whole gap. The column of CPU deltas adds up to the thread's CPU time exactly.
 */
#include "export/exporters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/firefox.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "export/facts.h"
#include "profile/timeline.h"

#define VISIBLE_THREADS	 15
#define FALLBACK_PERIOD	 1000000 /* ns; the viewer wants an interval even of unclocked events */
#define TRACK_NAME_SIZE	 24
#define PROCESSED_FORMAT 66
#define GECKO_FORMAT	 24

/* A thread of the file. */
struct track {
	uint32_t thread;
	uint32_t group;		     /* first written thread of its process: orders the groups */
	uint32_t pid_life, tid_life; /* earlier users of the number in this file */
};

struct firefox {
	const struct profile *p;
	struct json_writer *w;
	struct firefox_tables tables;
	VEC(struct track) tracks;
	VEC(struct timeline_entry) entries; /* scratch: those of one thread */
};

/* ---- which threads, in which order ----------------------------------------------------------- */

static bool is_target(const struct profile *p, const struct profile_thread *thread)
{
	return p->processes[thread->process.v].is_target;
}

/*
 * Threads without a CPU sample are left out. If none is left, the target's threads are written, or all
 * of them, because the viewer crashes on a file without threads.
 */
static int choose_threads(struct firefox *f)
{
	const struct profile *p = f->p;
	int err = 0;

	for (unsigned int pass = 0; pass < 3 && !f->tracks.count && !err; pass++) {
		for (uint32_t i = 1; i < p->thread_count && !err; i++) {
			const struct profile_thread *thread = &p->threads[i];

			if (pass == 2 || (pass == 1 && is_target(p, thread)) ||
			    thread->samples[SAMPLE_CPU].count)
				err = vec_push(&f->tracks, (struct track){.thread = i});
		}
	}
	return err;
}

/* Processes by first appearance, in each of them the main thread first. */
static int compare_tracks(const void *a, const void *b, void *context)
{
	const struct track *x = a, *y = b;
	const struct profile *p = context;
	bool x_main = p->threads[x->thread].is_main, y_main = p->threads[y->thread].is_main;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x_main != y_main)
		return x_main ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int order_threads(struct firefox *f)
{
	_cleanup_free_ uint32_t *group = calloc(f->p->process_count + 1, sizeof(*group));

	if (!group)
		return -ENOMEM;
	for (size_t i = 0; i < f->tracks.count; i++) {
		struct track *track = &f->tracks.data[i];
		uint32_t *first = &group[f->p->threads[track->thread].process.v];

		if (!*first)
			*first = track->thread;
		track->group = *first;
	}
	if (f->tracks.count)
		qsort_r(f->tracks.data, f->tracks.count, sizeof(*f->tracks.data), compare_tracks,
			(void *)f->p);
	return 0;
}

struct life {
	uint32_t number, owner, track;
};

static int compare_lives(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->track < y->track ? -1 : x->track > y->track;
}

/*
 * A pid that was reused, or whose process called execve, is several processes with one number; the
 * viewer distinguishes them by that number only. So the second one is "123.1". Threads likewise.
 */
static int number_lives(struct firefox *f)
{
	size_t count = f->tracks.count;
	_cleanup_free_ struct life *pids = calloc(count + 1, sizeof(*pids));
	_cleanup_free_ struct life *tids = calloc(count + 1, sizeof(*tids));

	if (!pids || !tids)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_thread *thread = &f->p->threads[f->tracks.data[i].thread];
		uint32_t process = thread->process.v;

		pids[i] = (struct life){f->p->processes[process].pid, process, i};
		tids[i] = (struct life){thread->tid, i, i};
	}
	qsort(pids, count, sizeof(*pids), compare_lives);
	qsort(tids, count, sizeof(*tids), compare_lives);
	for (size_t i = 1; i < count; i++) {
		if (pids[i].number == pids[i - 1].number)
			f->tracks.data[pids[i].track].pid_life =
				f->tracks.data[pids[i - 1].track].pid_life +
				(pids[i].owner != pids[i - 1].owner);
		if (tids[i].number == tids[i - 1].number)
			f->tracks.data[tids[i].track].tid_life =
				f->tracks.data[tids[i - 1].track].tid_life + 1;
	}
	return 0;
}

static const char *track_name(char name[TRACK_NAME_SIZE], uint32_t number, uint32_t life)
{
	if (life)
		snprintf(name, TRACK_NAME_SIZE, "%" PRIu32 ".%" PRIu32, number, life);
	else
		snprintf(name, TRACK_NAME_SIZE, "%" PRIu32, number);
	return name;
}

/* ---- meta ------------------------------------------------------------------------------------ */

/* JIT code: by compiler, then by compiler again for ambiguous code. */
static void write_tiers(struct json_writer *w)
{
	for (unsigned int i = 1; i < 2 * CODE_TIER_COUNT; i++) {
		const char *tier = code_tier_text(i % CODE_TIER_COUNT);
		char text[64];

		if (i < CODE_TIER_COUNT)
			snprintf(text, sizeof(text), "%s", tier);
		else
			snprintf(text, sizeof(text), "%s (or another function)",
				 *tier ? tier : "Other");
		json_string(w, text);
	}
}

static void write_categories(struct json_writer *w)
{
	static const struct {
		const char *name, *color;
	} categories[CATEGORY_COUNT] = {
		[CATEGORY_OTHER] = {"Other", "grey"},
		[CATEGORY_USER] = {"User", "yellow"},
		[CATEGORY_KERNEL] = {"Kernel", "orange"},
		[CATEGORY_LIBRARY] = {"Libraries", "lightblue"},
		[CATEGORY_JIT] = {"JIT", "purple"},
		[CATEGORY_IDLE] = {"Idle", "transparent"},
	};

	json_key(w, "categories");
	json_begin_array(w);
	for (unsigned int i = 0; i < CATEGORY_COUNT; i++) {
		json_begin_object(w);
		json_key_string(w, "name", categories[i].name);
		json_key_string(w, "color", categories[i].color);
		json_key(w, "subcategories");
		json_begin_array(w);
		json_string(w, "Other");
		if (i == CATEGORY_JIT)
			write_tiers(w);
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

static uint64_t track_samples(const struct firefox *f, size_t track)
{
	return f->p->threads[f->tracks.data[track].thread].samples[SAMPLE_CPU].tick_sum;
}

struct busy {
	uint64_t samples;
	uint32_t track;
};

static int compare_busy(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->track < y->track ? -1 : x->track > y->track;
}

/* The main thread of a group comes first in it, if it is in the file. */
static uint32_t main_of(const struct firefox *f, uint32_t track)
{
	uint32_t group = f->tracks.data[track].group, first = track;

	while (first > 0 && f->tracks.data[first - 1].group == group)
		first--;
	return f->p->threads[f->tracks.data[first].thread].is_main ? first : track;
}

/* Visible initially: the busiest threads and the main threads of their processes. */
static int write_visible_threads(struct firefox *f)
{
	size_t count = f->tracks.count;
	_cleanup_free_ struct busy *busy = calloc(count + 1, sizeof(*busy));
	_cleanup_free_ bool *visible = calloc(count + 1, sizeof(*visible));

	if (!busy || !visible)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		busy[i] = (struct busy){track_samples(f, i), i};
	qsort(busy, count, sizeof(*busy), compare_busy);
	for (size_t i = 0; i < count && i < VISIBLE_THREADS; i++) {
		visible[busy[i].track] = true;
		visible[main_of(f, busy[i].track)] = true;
	}
	visible[0] |= !count; /* the stand-in of an empty profile */
	json_key(f->w, "initialVisibleThreads");
	json_begin_array(f->w);
	for (size_t i = 0; i < count || !i; i++)
		if (visible[i])
			json_uint(f->w, i);
	json_end_array(f->w);
	json_key(f->w, "initialSelectedThreads");
	json_begin_array(f->w);
	json_uint(f->w, busy[0].track);
	json_end_array(f->w);
	return 0;
}

static void begin_section(struct json_writer *w, const char *label)
{
	json_begin_object(w);
	json_key_string(w, "label", label);
	json_key(w, "entries");
	json_begin_array(w);
}

static void end_section(struct json_writer *w)
{
	json_end_array(w);
	json_end_object(w);
}

static void begin_entry(struct json_writer *w, const char *label, const char *format)
{
	json_begin_object(w);
	json_key_string(w, "label", label);
	json_key_string(w, "format", format);
	json_key(w, "value");
}

static void entry_string(struct json_writer *w, const char *label, const char *value)
{
	begin_entry(w, label, "string");
	json_string(w, value);
	json_end_object(w);
}

static void entry_count(struct json_writer *w, const char *label, int64_t value)
{
	begin_entry(w, label, "integer");
	json_int(w, value);
	json_end_object(w);
}

static void entry_share(struct json_writer *w, const char *label, double share)
{
	begin_entry(w, label, "percentage");
	json_fixed(w, share, 6);
	json_end_object(w);
}

static void entry_ns(struct json_writer *w, const char *label, uint64_t value)
{
	begin_entry(w, label, "nanoseconds");
	json_uint(w, value);
	json_end_object(w);
}

static void write_clock_section(const struct profile *p, struct json_writer *w)
{
	const char *reason = profile__meta(p, META_CLOCK_REASON);
	char text[64];

	begin_section(w, "Clock");
	if (p->tsc_khz)
		snprintf(text, sizeof(text), "TSC at %" PRIu64 ".%03" PRIu64 " MHz",
			 p->tsc_khz / 1000, p->tsc_khz % 1000);
	else
		snprintf(text, sizeof(text), "CLOCK_MONOTONIC");
	entry_string(w, "Timestamps from", text);
	if (reason)
		entry_string(w, "Why", reason);
	snprintf(text, sizeof(text), "%" PRIu64 " ns", p->start);
	entry_string(w, "Start on CLOCK_MONOTONIC", text);
	entry_ns(w, "Largest error", p->clock_error_ns);
	entry_count(w, "Epochs", p->clock_epochs);
	end_section(w);
}

/* The books of one CPU in a line: ticks due, and what became of them. */
static void write_cpu_books(const struct profile_cpu_books *books, struct json_writer *w)
{
	char label[32], text[512];
	int64_t rest = (int64_t)books->due;
	size_t used = 0;

	for (unsigned int line = 0; line < BOOK_COUNT; line++) {
		rest -= (int64_t)books->count[line];
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "%s%" PRIu64 " %s", line ? " + " : " = ",
						 books->count[line], book_line_name(line));
	}
	snprintf(label, sizeof(label), "CPU %" PRIu32, books->cpu);
	if (books->period) {
		char whole[640];

		snprintf(whole, sizeof(whole), "%" PRIu64 "%s; unexplained %" PRId64, books->due,
			 text, rest);
		entry_string(w, label, whole);
	} else {
		entry_string(w, label, text + strlen(" = "));
	}
}

static void write_books_section(const struct profile *p, const struct export_facts *facts,
				struct json_writer *w)
{
	begin_section(w, "Books: every timer tick and what became of it");
	if (facts->due_known)
		entry_count(w, "Due", (int64_t)facts->due);
	for (unsigned int line = 0; line < BOOK_COUNT; line++) {
		char label[160];

		snprintf(label, sizeof(label), "%s (%s)", book_line_name(line),
			 book_line_text(line));
		entry_count(w, label, (int64_t)facts->lines[line]);
	}
	entry_count(w, "received by the collector", (int64_t)facts->received);
	if (facts->due_known)
		entry_count(w, "Unexplained", profile__unexplained_ticks(p));
	for (size_t i = 0; i < p->books_count; i++)
		write_cpu_books(&p->books[i], w);
	end_section(w);
}

/*
 * The label of a stack end in the file. It stays when the sentence for the terminal is reworded: every
 * version writes the same bytes for the same recording.
 */
static const char *stack_end_label(enum stack_end end)
{
	switch (end) {
	case STACK_END_NO_CALLER:
		return "what should be a return address is none";
	case STACK_END_NO_RULE:
		return "the file describes its frame in a way that is not followed";
	case STACK_END_COPY:
		return "deeper than what was kept of its stack, before its tables were there";
	case STACK_END_STALE:
		return "its mappings had changed, and the tables not yet";
	default:
		return stack_end_text(end);
	}
}

static void write_stacks_section(const struct profile *p, struct json_writer *w)
{
	begin_section(w, "Stacks");
	entry_share(w, "Complete", profile__complete_share(p));
	for (unsigned int end = 0; end < STACK_END_COUNT; end++) {
		char label[128];

		snprintf(label, sizeof(label), "%s: %s",
			 stack_end_is_complete(end) ? "Complete" : "Cut", stack_end_label(end));
		if (p->stack_ends[end])
			entry_count(w, label, (int64_t)p->stack_ends[end]);
	}
	for (unsigned int kind = FRAME_POINTER; kind < FRAME_KIND_COUNT; kind++) {
		char label[128];

		snprintf(label, sizeof(label), "User frames found %s", frame_kind_text(kind));
		if (p->frames_found[kind])
			entry_count(w, label, (int64_t)p->frames_found[kind]);
	}
	entry_share(w, "Code with a symbol", profile__named_share(p));
	entry_count(w, "Frames outside every mapping", (int64_t)p->unmapped_frames);
	end_section(w);
}

static void write_jit_section(const struct profile *p, struct json_writer *w)
{
	begin_section(w, "Code that was made as it ran");
	for (size_t i = 0; i < p->jit_count; i++) {
		const struct profile_process *process = &p->processes[p->jits[i].process.v];
		char label[128], text[1024];

		snprintf(label, sizeof(label), "%s (pid %" PRIu32 ")",
			 profile__string(p, process->name), process->pid);
		describe_jit(text, sizeof(text), p, &p->jits[i]);
		entry_string(w, label, text);
	}
	end_section(w);
}

static void write_losses_section(const struct profile *p, struct json_writer *w)
{
	begin_section(w, "Losses");
	for (unsigned int source = 0; source < LOST_SOURCE_COUNT; source++)
		entry_count(w, lost_source_text(source), (int64_t)p->lost[source]);
	for (size_t i = 0; i < p->lost_range_count; i++) {
		char text[96];

		snprintf(text, sizeof(text), "%.6f s to %.6f s",
			 ((double)p->lost_ranges[i].since - (double)p->start) / 1e9,
			 ((double)p->lost_ranges[i].until - (double)p->start) / 1e9);
		entry_string(w, "Something was lost in", text);
	}
	end_section(w);
}

static void write_recording_section(const struct profile *p, const struct export_facts *facts,
				    struct json_writer *w)
{
	begin_section(w, "Recording");
	for (size_t i = 0; i < p->meta_count; i++)
		entry_string(w, profile__string(p, p->meta[i].key),
			     profile__string(p, p->meta[i].value));
	entry_count(w, "Samples", (int64_t)p->sample_count);
	entry_ns(w, "Period", p->period);
	entry_ns(w, "CPU time of all threads", facts->cpu);
	if (facts->silent_threads) {
		entry_count(w, "Threads without a sample, not shown",
			    (int64_t)facts->silent_threads);
		entry_ns(w, "CPU time of those", facts->silent_cpu);
	}
	if (p->cut_short)
		entry_string(w, "Cut short", "the recording has no end");
	end_section(w);
}

static void write_extra(const struct profile *p, struct json_writer *w)
{
	struct export_facts facts;

	export_facts__init(&facts, p);
	json_key(w, "extra");
	json_begin_array(w);
	write_recording_section(p, &facts, w);
	write_clock_section(p, w);
	write_books_section(p, &facts, w);
	write_stacks_section(p, w);
	if (p->jit_count)
		write_jit_section(p, w);
	write_losses_section(p, w);
	json_end_array(w);
}

/* Facts about the machine, as far as the recording has them. */
static void write_machine(const struct profile *p, struct json_writer *w)
{
	const char *kernel = profile__meta(p, META_KERNEL_RELEASE),
		   *cpu = profile__meta(p, META_CPU);
	const char *cpus = profile__meta(p, META_CPU_COUNT),
		   *command = profile__meta(p, META_COMMAND);
	const char *hostname = profile__meta(p, META_HOSTNAME);
	uint64_t count;

	json_key_string(w, "platform", "X11");
	if (kernel)
		json_key_string(w, "oscpu", kernel);
	if (cpu)
		json_key_string(w, "CPUName", cpu);
	if (cpus && !parse_u64(cpus, 1, UINT32_MAX, &count))
		json_key_uint(w, "logicalCPUs", count);
	if (hostname)
		json_key_string(w, "device", hostname);
	if (command)
		json_key_string(w, "arguments", command);
	json_key_string(w, "importedFrom", "sysprof");
}

static void write_conventions(struct json_writer *w)
{
	json_key_uint(w, "processType", 0);
	json_key_uint(w, "stackwalk", 1);
	json_key_bool(w, "debug", false);
	json_key(w, "extensions");
	json_begin_object(w);
	json_key_uint(w, "length", 0);
	json_key(w, "baseURL");
	json_begin_array(w);
	json_end_array(w);
	json_key(w, "id");
	json_begin_array(w);
	json_end_array(w);
	json_key(w, "name");
	json_begin_array(w);
	json_end_array(w);
	json_end_object(w);
	json_key(w, "markerSchema");
	json_begin_array(w);
	json_end_array(w);
	json_key(w, "pausedRanges");
	json_begin_array(w);
	json_end_array(w);
	json_key(w, "sampleUnits");
	json_begin_object(w);
	json_key_string(w, "time", "ms");
	json_key_string(w, "eventDelay", "ms");
	json_key_string(w, "threadCPUDelta", "ns");
	json_end_object(w);
	json_key_bool(w, "symbolicated", true);
	json_key_bool(w, "usesOnlyOneStackType", true);
	json_key_bool(w, "sourceCodeIsNotOnSearchfox", true);
}

static int write_meta(struct firefox *f)
{
	const struct profile *p = f->p;
	const char *product = profile__meta(p, META_PRODUCT);
	struct json_writer *w = f->w;
	int err;

	json_begin_object(w);
	json_key_uint(w, "version", GECKO_FORMAT);
	json_key_uint(w, "preprocessedProfileVersion", PROCESSED_FORMAT);
	json_key_string(w, "product", product ? product : "sysprof");
	json_key(w, "interval");
	json_ns_as_ms(w, (int64_t)(p->period ? p->period : FALLBACK_PERIOD));
	json_key(w, "startTime");
	json_ns_as_ms(w, (int64_t)p->start_realtime);
	json_key_uint(w, "startTimeAsClockMonotonicNanosecondsSinceBoot", p->start);
	json_key_uint(w, "profilingStartTime", 0);
	json_key(w, "profilingEndTime");
	json_ns_as_ms(w, p->end > p->start ? (int64_t)(p->end - p->start) : 0);
	write_conventions(w);
	write_machine(p, w);
	write_categories(w);
	err = write_visible_threads(f);
	write_extra(p, w);
	json_end_object(w);
	return err;
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

static void write_markers(struct json_writer *w)
{
	static const char *const columns[] = {"data",	 "name",  "startTime",
					      "endTime", "phase", "category"};

	json_key(w, "markers");
	json_begin_object(w);
	json_key_uint(w, "length", 0);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		json_key(w, columns[i]);
		json_begin_array(w);
		json_end_array(w);
	}
	json_end_object(w);
}

static int collect_entries(struct firefox *f, const struct profile_thread *thread)
{
	struct timeline timeline;
	struct timeline_entry entry;
	int err = 0;

	f->entries.count = 0;
	timeline__init(&timeline, f->p, thread);
	while (!err && timeline__next(&timeline, &entry))
		err = vec_push(&f->entries, entry);
	return err;
}

/* How many samples a row stands for, where that is not one each. Rows without a stack are in no tree. */
static void write_weights(const struct firefox *f, const struct profile_samples *samples)
{
	struct json_writer *w = f->w;

	if (!samples->ticks) {
		json_key_null(w, "weight");
		return;
	}
	json_key(w, "weight");
	json_begin_array(w);
	for (size_t i = 0; i < f->entries.count; i++)
		json_uint(w, f->entries.data[i].stack.v ? samples->ticks[f->entries.data[i].sample]
							: 1);
	json_end_array(w);
}

static void write_samples(const struct firefox *f, const struct profile_samples *samples)
{
	struct json_writer *w = f->w;
	const struct timeline_entry *entries = f->entries.data;

	json_key(w, "samples");
	json_begin_object(w);
	json_key_uint(w, "length", f->entries.count);
	json_key_string(w, "weightType", "samples");
	json_key(w, "stack");
	json_begin_array(w);
	for (size_t i = 0; i < f->entries.count; i++) {
		if (entries[i].stack.v)
			json_uint(w, firefox_tables__stack(&f->tables, entries[i].stack));
		else
			json_null(w);
	}
	json_end_array(w);
	json_key(w, "time");
	json_begin_array(w);
	for (size_t i = 0; i < f->entries.count; i++)
		json_ns_as_ms(w, (int64_t)(entries[i].time - f->p->start));
	json_end_array(w);
	write_weights(f, samples);
	json_key(w, "threadCPUDelta");
	json_begin_array(w);
	for (size_t i = 0; i < f->entries.count; i++)
		json_uint(w, entries[i].cpu_delta);
	json_end_array(w);
	json_end_object(w);
}

static int write_thread(struct firefox *f, const struct track *track)
{
	const struct profile_thread *thread = &f->p->threads[track->thread];
	const struct profile_process *process = &f->p->processes[thread->process.v];
	const char *process_name = profile__string(f->p, process->name);
	const char *name = profile__string(f->p, thread->name);
	char number[TRACK_NAME_SIZE];
	struct json_writer *w = f->w;
	int err = collect_entries(f, thread);

	if (err)
		return err;
	json_begin_object(w);
	json_key_string(w, "name", thread->is_main ? process_name : name);
	json_key_bool(w, "isMainThread", thread->is_main);
	json_key_string(w, "processType", "default");
	json_key_string(w, "processName", process_name);
	write_relative(f, "processStartupTime", process->start);
	write_end(f, "processShutdownTime", process->end);
	write_relative(f, "registerTime", thread->start);
	write_end(f, "unregisterTime", thread->end);
	json_key(w, "pausedRanges");
	json_begin_array(w);
	json_end_array(w);
	json_key_string(w, "pid", track_name(number, process->pid, track->pid_life));
	json_key_string(w, "tid", track_name(number, thread->tid, track->tid_life));
	json_key_bool(w, "showMarkersInTimeline", false);
	write_samples(f, &thread->samples[SAMPLE_CPU]);
	write_markers(w);
	json_end_object(w);
	return 0;
}

/* The one thread in the file of a profile without threads. */
static void write_no_thread(struct firefox *f)
{
	const struct profile_samples none = {0};
	struct json_writer *w = f->w;

	f->entries.count = 0;
	json_begin_object(w);
	json_key_string(w, "name", "nothing was recorded");
	json_key_bool(w, "isMainThread", true);
	json_key_string(w, "processType", "default");
	json_key_string(w, "processName", "nothing was recorded");
	json_key_uint(w, "processStartupTime", 0);
	json_key_null(w, "processShutdownTime");
	json_key_uint(w, "registerTime", 0);
	json_key_null(w, "unregisterTime");
	json_key(w, "pausedRanges");
	json_begin_array(w);
	json_end_array(w);
	json_key_string(w, "pid", "0");
	json_key_string(w, "tid", "0");
	json_key_bool(w, "showMarkersInTimeline", false);
	write_samples(f, &none);
	write_markers(w);
	json_end_object(w);
}

static int write_threads(struct firefox *f)
{
	int err = 0;

	json_key(f->w, "threads");
	json_begin_array(f->w);
	for (size_t i = 0; i < f->tracks.count && !err; i++)
		err = write_thread(f, &f->tracks.data[i]);
	if (!f->tracks.count)
		write_no_thread(f);
	json_end_array(f->w);
	return err;
}

static int write_file(struct firefox *f)
{
	static const char *const empty[] = {"pages", "profilerOverhead", "counters"};
	struct json_writer *w = f->w;
	int err;

	json_begin_object(w);
	json_key(w, "meta");
	err = write_meta(f);
	json_key(w, "libs");
	firefox_tables__write_libs(&f->tables, w);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		json_key(w, empty[i]);
		json_begin_array(w);
		json_end_array(w);
	}
	json_key(w, "shared");
	firefox_tables__write_shared(&f->tables, w);
	if (!err)
		err = write_threads(f);
	json_end_object(w);
	return err;
}

static int collect_tables(struct firefox *f)
{
	_cleanup_free_ uint32_t *threads = calloc(f->tracks.count + 1, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < f->tracks.count; i++)
		threads[i] = f->tracks.data[i].thread;
	return firefox_tables__init(&f->tables, f->p, threads, f->tracks.count);
}

static int write_firefox(const struct export_request *request)
{
	struct json_writer writer;
	struct firefox f = {.p = request->profile, .w = &writer};
	int err, write_err;

	err = choose_threads(&f);
	if (!err)
		err = order_threads(&f);
	if (!err)
		err = number_lives(&f);
	if (!err)
		err = collect_tables(&f);
	if (!err) {
		json_writer__init(&writer, request->out);
		err = write_file(&f);
		write_err = json_writer__finish(&writer);
		err = err ? err : write_err;
		firefox_tables__fini(&f.tables);
	}
	vec_free(&f.tracks);
	vec_free(&f.entries);
	return err;
}

static const char *const suffixes[] = {".json", ".json.gz", NULL};

const struct exporter firefox_exporter = {
	.name = "firefox",
	.suffixes = suffixes,
	.description = "Firefox Profiler, processed format 66",
	.how_to_open = "open https://profiler.firefox.com/from-file/ and choose %s "
		       "(or drag it into profiler.firefox.com)",
	.may_gzip = true,
	.write = write_firefox,
};
