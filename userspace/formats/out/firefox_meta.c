/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/firefox_meta.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "base/parse.h"
#include "formats/out/describe.h"
#include "formats/out/firefox.h"
#include "formats/out/firefox_markers.h"
#include "tenants/outside_books.h"

#define VISIBLE_THREADS	 15
#define VISIBLE_PART	 20 /* a thread with less than this part of the busiest is not shown */
#define PROCESSED_FORMAT 66
#define GECKO_FORMAT	 24

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

static void write_contexts(struct json_writer *w)
{
	for (int context = CONTEXT_NONE + 1; context < CONTEXT_COUNT; context++)
		json_string(w, sample_context_name((enum sample_context)context));
}

static void write_category(struct json_writer *w, const char *name, const char *color,
			   void (*write_more)(struct json_writer *w))
{
	json_begin_object(w);
	json_key_string(w, "name", name);
	json_key_string(w, "color", color);
	json_key_array(w, "subcategories");
	json_string(w, "Other");
	if (write_more)
		write_more(w);
	json_end_array(w);
	json_end_object(w);
}

/* Of the colors that the viewer has. */
static const char *const wait_colors[WALL_STATE_COUNT] = {
	[WALL_RUNNING] = "yellow", [WALL_RUNNABLE] = "orange", [WALL_THROTTLED] = "magenta",
	[WALL_DISK] = "brown",	   [WALL_LOCK] = "red",	       [WALL_NETWORK] = "blue",
	[WALL_PIPE] = "lightblue", [WALL_POLL] = "green",      [WALL_SLEEP] = "darkgrey",
	[WALL_CHILD] = "purple",   [WALL_FAULT] = "lightred",  [WALL_STOPPED] = "grey",
	[WALL_OTHER] = "grey",
};

static void write_categories(const struct firefox_tables *t, struct json_writer *w)
{
	const struct profile *p = t->p;
	static const struct {
		const char *name, *color;
	} categories[CATEGORY_COUNT + 1] = {
		[CATEGORY_OTHER] = {"Other", "grey"},
		[CATEGORY_USER] = {"User", "yellow"},
		[CATEGORY_KERNEL] = {"Kernel", "orange"},
		[CATEGORY_LIBRARY] = {"Libraries", "lightblue"},
		[CATEGORY_JIT] = {"JIT", "purple"},
		[CATEGORY_IDLE] = {"Idle", "transparent"},
		[FIREFOX_CATEGORY_GIL] = {"GIL", "green"},
	};
	unsigned int count = CATEGORY_COUNT + firefox_has_gil(p);

	json_key_array(w, "categories");
	for (unsigned int i = 0; i < count; i++)
		write_category(w, categories[i].name, categories[i].color,
			       i == CATEGORY_JIT				 ? write_tiers
			       : i == CATEGORY_KERNEL && t->context_frames.count ? write_contexts
										 : NULL);
	for (int state = 1; p->visits.hz && state < WALL_STATE_COUNT; state++) {
		char name[32];

		snprintf(name, sizeof(name), "Waiting: %s",
			 wall_state_name((enum wall_state)state));
		write_category(w, state == WALL_RUNNING ? "Running" : name, wait_colors[state],
			       NULL);
	}
	json_end_array(w);
}

/* ---- what is shown first --------------------------------------------------------------------- */

struct busy {
	uint64_t samples;
	uint32_t track;
};

DEFINE_ORDER(compare_busy, struct busy, DESCENDING(samples) ?: ASCENDING(track));

/*
 * Visible at first: the busiest threads, if they did a noticeable part of what the busiest did, and
 * the first threads of their processes. The viewer's own choice is similar, but its measures are of
 * Firefox's threads. The busiest thread is selected.
 */
static int write_visible_threads(const struct firefox *f)
{
	size_t count = f->tracks.count;
	_cleanup_free_ struct busy *busy = calloc(count + 1, sizeof(*busy));
	_cleanup_free_ bool *visible = calloc(count + 1, sizeof(*visible));

	if (!busy || !visible)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		busy[i] = (struct busy){firefox__events(f, i), i};
	if (count)
		qsort(busy, count, sizeof(*busy), compare_busy);
	for (size_t i = 0; i < count && i < VISIBLE_THREADS; i++) {
		if (busy[i].samples < busy[0].samples / VISIBLE_PART)
			break;
		visible[busy[i].track] = true;
		visible[firefox__first_of_process(f, busy[i].track)] = true;
	}
	visible[0] |= !count; /* the stand-in of an empty profile */
	json_key_array(f->w, "initialVisibleThreads");
	for (size_t i = 0; i < count || !i; i++)
		if (visible[i])
			json_uint(f->w, i);
	json_end_array(f->w);
	json_key_array(f->w, "initialSelectedThreads");
	json_uint(f->w, busy[0].track);
	json_end_array(f->w);
	return 0;
}

/* ---- facts about the recording --------------------------------------------------------------- */

static void begin_section(struct json_writer *w, const char *label)
{
	json_begin_object(w);
	json_key_string(w, "label", label);
	json_key_array(w, "entries");
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

static void entry_count(struct json_writer *w, const char *label, uint64_t value)
{
	begin_entry(w, label, "integer");
	json_int(w, (int64_t)value);
	json_end_object(w);
}

static void entry_figure(struct json_writer *w, const struct figures *f, enum figure_id id)
{
	enum figure_unit unit = figure_table[id].unit;

	if (!figures__is_known(f, id))
		return;
	begin_entry(w, figure_table[id].text,
		    unit == FIGURE_IN_SHARE ? "percentage"
		    : unit == FIGURE_IN_NS  ? "nanoseconds"
					    : "integer");
	if (unit == FIGURE_IN_SHARE)
		json_fixed(w, f->share[id], 6);
	else
		json_int(w, (int64_t)f->value[id]);
	json_end_object(w);
}

static void write_clock_section(const struct profile *p, const struct figures *f,
				struct json_writer *w)
{
	const char *reason = profile__meta(p, META_CLOCK_REASON);
	char text[CLOCK_TEXT_SIZE];

	begin_section(w, "Clock");
	entry_string(w, "Timestamps from", describe_clock(text, sizeof(text), p));
	if (reason)
		entry_string(w, "Why", reason);
	snprintf(text, sizeof(text), "%" PRIu64 " ns", p->start);
	entry_string(w, "Start on CLOCK_MONOTONIC", text);
	entry_figure(w, f, FIGURE_CLOCK_ERROR);
	entry_figure(w, f, FIGURE_CLOCK_EPOCHS);
	end_section(w);
}

/* The books of one CPU in a line: ticks due, and what became of them. */
static void write_cpu_books(const struct profile_cpu_books *books, struct json_writer *w)
{
	int64_t rest = (int64_t)books->due;
	char label[32], text[640] = "", times[CPU_TIMES_TEXT_SIZE];
	struct text_line line = {text, sizeof(text), 0};

	for (unsigned int i = 0; i < BOOK_COUNT; i++)
		rest -= (int64_t)books->count[i];
	if (profile_cpu_books__due_is_known(books))
		add_text(&line, "%" PRIu64 " = ", books->due);
	add_counts(&line, FIGURE_BOOKS, FIGURE_BOOKS_END, books->count, BOOK_COUNT);
	if (profile_cpu_books__due_is_known(books))
		add_text(&line, "; unexplained %" PRId64, rest);
	if (*describe_cpu_times(times, sizeof(times), books->times))
		add_text(&line, "; %s", times);
	snprintf(label, sizeof(label), "CPU %" PRIu32, books->cpu);
	entry_string(w, label, text);
}

/* The lines of books, with their sentences. */
static void write_lines(const struct figures *f, unsigned int first, unsigned int end,
			struct json_writer *w)
{
	char label[160];

	for (unsigned int id = first; id < end; id++) {
		snprintf(label, sizeof(label), "%s (%s)", figure_table[id].key,
			 figure_table[id].text);
		entry_count(w, label, f->value[id]);
	}
}

static void write_visits_section(const struct figures *f, struct json_writer *w)
{
	begin_section(w, "Visits of threads that wait");
	for (unsigned int id = FIGURE_VISITED; id < FIGURE_VISITS; id++)
		entry_figure(w, f, id);
	write_lines(f, FIGURE_VISITS, FIGURE_VISITS_END, w);
	end_section(w);
}

static void write_books_section(const struct profile *p, const struct figures *f,
				struct json_writer *w)
{
	const char *changes = profile__meta(p, META_CPU_CHANGES);

	begin_section(w, "Books: every timer tick and what became of it");
	entry_figure(w, f, FIGURE_DUE);
	write_lines(f, FIGURE_BOOKS, FIGURE_BOOKS_END, w);
	if (f->value[FIGURE_STOLEN_TICKS])
		entry_figure(w, f, FIGURE_STOLEN_TICKS);
	entry_figure(w, f, FIGURE_RECEIVED);
	entry_figure(w, f, FIGURE_UNEXPLAINED);
	if (changes)
		entry_string(w, "CPUs that came or went", changes);
	for (size_t i = 0; i < p->books_count; i++)
		write_cpu_books(&p->books[i], w);
	end_section(w);
}

static void write_stacks_section(const struct figures *f, struct json_writer *w)
{
	char label[128];

	begin_section(w, "Stacks");
	entry_figure(w, f, FIGURE_COMPLETE_SHARE);
	for (unsigned int id = FIGURE_ENDS; id < FIGURE_ENDS_END; id++) {
		snprintf(label, sizeof(label), "%s: %s",
			 figure_table[id].is_loss ? "Cut" : "Complete", figure_table[id].text);
		if (f->value[id] && (f->ends_known || figure_table[id].is_loss))
			entry_count(w, label, f->value[id]);
	}
	for (unsigned int id = FIGURE_FRAMES + FRAME_POINTER; id < FIGURE_FRAMES_END; id++) {
		snprintf(label, sizeof(label), "User frames found %s", figure_table[id].text);
		if (f->value[id])
			entry_count(w, label, f->value[id]);
	}
	entry_figure(w, f, FIGURE_NAMED_SHARE);
	entry_figure(w, f, FIGURE_UNMAPPED);
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++) {
		snprintf(label, sizeof(label), "%s left out", figure_table[id].text);
		*label = (char)toupper((unsigned char)*label);
		if (f->value[id])
			entry_count(w, label, f->value[id]);
	}
	end_section(w);
}

static void write_jit_section(const struct profile *p, struct json_writer *w)
{
	size_t count = described_jits(p);

	begin_section(w, "Code that was made as it ran");
	for (size_t i = 0; i < count; i++) {
		const struct profile_process *process = &p->processes[p->jits[i].process.v];
		char label[128], text[1024];

		snprintf(label, sizeof(label), "%s (pid %" PRIu32 ")",
			 profile__string(p, process->name), process->pid);
		entry_string(w, label, describe_jit(text, sizeof(text), p, &p->jits[i]));
	}
	if (count < p->jit_count)
		entry_count(w, "Further processes", p->jit_count - count);
	for (size_t i = 0; i < p->runtime_count; i++) {
		char text[RUNTIME_TEXT_SIZE];

		entry_string(w, profile__string(p, p->runtimes[i].name),
			     describe_runtime(text, sizeof(text), &p->runtimes[i]));
	}
	end_section(w);
}

static void write_losses_section(const struct profile *p, const struct figures *f,
				 struct json_writer *w)
{
	struct lost_span span;
	size_t at = 0;

	begin_section(w, "Losses");
	for (unsigned int id = FIGURE_LOST; id < FIGURE_LOST_END; id++)
		entry_count(w, figure_table[id].text, f->value[id]);
	while (next_lost_span(p, &at, &span)) {
		char text[128];
		struct text_line line = {text, sizeof(text), 0};

		add_text(&line, "%.6f s to %.6f s", ((double)span.since - (double)p->start) / 1e9,
			 ((double)span.until - (double)p->start) / 1e9);
		if (span.ranges > 1)
			add_text(&line, ", in %zu ranges", span.ranges);
		entry_string(w, "Something was lost in", text);
	}
	for (size_t i = 0; i < p->outside_count; i++) {
		char text[OUTSIDE_TEXT_SIZE];

		entry_string(w, "Left outside",
			     describe_outside(text, sizeof(text), &p->outside[i]));
	}
	end_section(w);
}

static void write_recording_section(const struct profile *p, const struct figures *f,
				    struct json_writer *w)
{
	begin_section(w, "Recording");
	for (size_t i = 0; i < p->meta_count; i++)
		entry_string(w, profile__string(p, p->meta[i].key),
			     profile__string(p, p->meta[i].value));
	if (p->uncounted)
		entry_string(w, "Samples", "number unknown: weights instead");
	else
		entry_figure(w, f, FIGURE_SAMPLES);
	if (p->event.v) {
		entry_string(w, "Weights of samples count", profile__event(p));
		entry_figure(w, f, FIGURE_EVENTS);
	}
	entry_figure(w, f, FIGURE_PERIOD);
	entry_figure(w, f, FIGURE_CPU);
	if (f->value[FIGURE_SILENT_THREADS]) {
		entry_figure(w, f, FIGURE_SILENT_THREADS);
		entry_figure(w, f, FIGURE_SILENT_CPU);
	}
	if (p->cut_short)
		entry_string(w, "Cut short", "the recording has no end");
	end_section(w);
}

static int write_filter_entry(void *w, const char *what, const char *counts, const char *clauses)
{
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text, "%s: %s", counts, clauses) < 0)
		return -ENOMEM;
	entry_string(w, *what == 'k' ? "Kept" : "Dropped", text);
	return 0;
}

static int write_filter_section(const struct profile *p, struct json_writer *w)
{
	int err;

	if (!p->clause_count)
		return 0;
	begin_section(w, "Filter: what this is a part of");
	err = describe_filter(p, write_filter_entry, w);
	end_section(w);
	return err;
}

static int write_extra(const struct profile *p, struct json_writer *w)
{
	struct figures f;
	int err;

	figures__init(&f, p);
	json_key_array(w, "extra");
	err = write_filter_section(p, w);
	write_recording_section(p, &f, w);
	if (f.clock_known)
		write_clock_section(p, &f, w);
	write_books_section(p, &f, w);
	if (p->visits.hz)
		write_visits_section(&f, w);
	write_stacks_section(&f, w);
	if (p->jit_count || p->runtime_count)
		write_jit_section(p, w);
	write_losses_section(p, &f, w);
	json_end_array(w);
	return err;
}

/* Facts about the machine, as far as the recording has them. */
static void write_machine(const struct profile *p, struct json_writer *w)
{
	static const struct {
		const char *key, *meta;
		bool is_number;
	} facts[] = {
		{"oscpu", META_KERNEL_RELEASE, false}, {"CPUName", META_CPU, false},
		{"logicalCPUs", META_CPU_COUNT, true}, {"device", META_HOSTNAME, false},
		{"arguments", META_COMMAND, false},
	};
	uint64_t count;

	json_key_string(w, "platform", "X11");
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		const char *text = profile__meta(p, facts[i].meta);

		if (text && !facts[i].is_number)
			json_key_string(w, facts[i].key, text);
		else if (text && !parse_u64(text, 1, UINT32_MAX, &count))
			json_key_uint(w, facts[i].key, count);
	}
	json_key_string(w, "importedFrom", "sysprof");
	if (profile__meta(p, META_CPU_TIME))
		json_key_string(w, "cpuTimeIs", profile__meta(p, META_CPU_TIME));
	if (p->untimed)
		json_key_bool(w, "timesKnown", false);
	if (p->uncounted) {
		json_key_bool(w, "samplesKnown", false);
		json_key_uint(w, "tickCpuNs", p->tick_cpu);
	}
	if (!p->event.v)
		return;
	json_key_string(w, "event", profile__event(p));
	json_key_string(w, "eventUnit", profile__event_unit(p));
}

static void write_conventions(const struct profile *p, struct json_writer *w)
{
	json_key_uint(w, "processType", 0);
	json_key_uint(w, "stackwalk", 1);
	json_key_bool(w, "debug", false);
	json_key_object(w, "extensions");
	json_key_uint(w, "length", 0);
	json_key_empty_array(w, "baseURL");
	json_key_empty_array(w, "id");
	json_key_empty_array(w, "name");
	json_end_object(w);
	firefox_write_marker_schema(p, w);
	json_key_empty_array(w, "pausedRanges");
	json_key_object(w, "sampleUnits");
	json_key_string(w, "time", "ms");
	json_key_string(w, "eventDelay", "ms");
	json_key_string(w, "threadCPUDelta", "ns");
	json_end_object(w);
	json_key_bool(w, "symbolicated", true);
	json_key_bool(w, "usesOnlyOneStackType", true);
	json_key_bool(w, "sourceCodeIsNotOnSearchfox", true);
}

int firefox_write_meta(const struct firefox *f)
{
	const struct profile *p = f->p;
	const char *product = profile__meta(p, META_PRODUCT);
	struct json_writer *w = f->w;
	int err;

	json_begin_object(w);
	json_key_uint(w, "version", GECKO_FORMAT);
	json_key_uint(w, "preprocessedProfileVersion", PROCESSED_FORMAT);
	json_key_string(w, "product", product ? product : FIREFOX_NO_PRODUCT);
	json_key(w, "interval");
	json_ns_as_ms(w, (int64_t)(export_period(p)));
	json_key(w, "startTime");
	json_ns_as_ms(w, (int64_t)p->start_realtime);
	json_key_uint(w, "startTimeAsClockMonotonicNanosecondsSinceBoot", p->start);
	json_key_uint(w, "profilingStartTime", 0);
	json_key(w, "profilingEndTime");
	json_ns_as_ms(w, p->end > p->start ? (int64_t)(p->end - p->start) : 0);
	write_conventions(p, w);
	write_machine(p, w);
	write_categories(&f->tables, w);
	err = write_visible_threads(f) ?: write_part_of(p, w);
	err = err ?: write_extra(p, w);
	json_end_object(w);
	return err;
}
