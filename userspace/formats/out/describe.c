/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/describe.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/wire.h"
#include "formats/out/gil.h"
#include "profile/profile.h"
#include "tenants/outside_books.h"

bool export_has_realtime(const struct profile *p)
{
	return p->start_realtime >= PROFILE_YEAR_2000;
}

uint64_t export_period(const struct profile *p)
{
	return p->period ? p->period : 1000000;
}

const char *describe_clock(char *text, size_t size, const struct profile *p)
{
	if (p->tsc_khz)
		snprintf(text, size, "TSC at %" PRIu64 ".%03" PRIu64 " MHz", p->tsc_khz / 1000,
			 p->tsc_khz % 1000);
	else
		snprintf(text, size, "CLOCK_MONOTONIC");
	return text;
}

static void add_contents(char *text, size_t size, const char *what, size_t count,
			 const char *things, uint64_t bytes)
{
	size_t used = strlen(text);

	if (count)
		snprintf(text + used, size - used, "%s%s%zu %s%s (%.1f KB)", used ? ", " : "", what,
			 count, things, count == 1 ? "" : "s", (double)bytes / 1e3);
}

const char *describe_contents(char *text, size_t size, const struct profile *p)
{
	uint64_t code = 0, sources = 0;

	for (size_t i = 0; i < p->code_count; i++)
		code += p->codes[i].size;
	for (size_t i = 0; i < p->source_count; i++)
		sources += p->sources[i].size;
	*text = '\0';
	add_contents(text, size, "machine code of ", p->code_count, "function", code);
	add_contents(text, size, "", p->source_count, "source", sources);
	return text;
}

void add_counts(struct text_line *line, unsigned int first, unsigned int end,
		const uint64_t *values, unsigned int always)
{
	const char *plus = "";

	for (unsigned int id = first; id < end; id++, values++) {
		if (id - first >= always && !*values)
			continue;
		add_text(line, "%s%" PRIu64 " %s", plus, *values, figure_table[id].key);
		plus = " + ";
	}
}

const char *describe_cpu_times(char *text, size_t size, const uint64_t *times)
{
	struct text_line line = {text, size, 0};

	*text = 0;
	for (unsigned int i = 0; i < CPU_TIME_COUNT; i++)
		if (times[i])
			add_text(&line, "%s%s %.3f s", *text ? ", " : "",
				 figure_table[FIGURE_TIMES + i].key, (double)times[i] / 1e9);
	return text;
}

/* ---- the filter ------------------------------------------------------------------------------- */

/* To the nanosecond: what was kept and what was dropped add up. */
static void add_seconds(struct text_line *line, uint64_t ns)
{
	add_text(line, "%" PRIu64 ".%09" PRIu64 " s", ns / 1000000000, ns % 1000000000);
}

/* "12", with `whole` "12 of 34" */
static void add_count(struct text_line *line, uint64_t count, const uint64_t *whole,
		      const char *unit)
{
	uint64_t last = whole ? *whole : count;

	add_text(line, "%" PRIu64, count);
	if (whole)
		add_text(line, " of %" PRIu64, *whole);
	add_text(line, " %s%s", unit, last == 1 ? "" : "s");
}

static void add_time(struct text_line *line, uint64_t ns, const uint64_t *whole, const char *what)
{
	add_text(line, ", ");
	add_seconds(line, ns);
	if (whole) {
		add_text(line, " of ");
		add_seconds(line, *whole);
	}
	add_text(line, " of %s", what);
}

/* "12 samples, 1.200000000 s of CPU time"; `kept`: with the whole behind each. */
static void add_amounts(struct text_line *line, const struct profile *p, const struct figures *f,
			const struct profile_clause *part, bool kept)
{
	const uint64_t *value = f->value;
	const struct profile_clause whole = {
		.samples = value[FIGURE_SAMPLES] + value[FIGURE_DROPPED_SAMPLES],
		.events = value[FIGURE_EVENTS] + value[FIGURE_DROPPED_EVENTS],
		.cpu = value[FIGURE_CPU] + value[FIGURE_DROPPED_CPU],
		.wall = value[FIGURE_LIVED] + value[FIGURE_DROPPED_WALL],
	};

	add_count(line, part->samples, kept ? &whole.samples : NULL,
		  p->uncounted ? "weight" : "sample");
	if (p->event.v && !p->uncounted) {
		add_text(line, ", ");
		add_count(line, part->events, kept ? &whole.events : NULL, "event");
	}
	if (whole.cpu)
		add_time(line, part->cpu, kept ? &whole.cpu : NULL, "CPU time");
	if (whole.wall)
		add_time(line, part->wall, kept ? &whole.wall : NULL, "the threads' time");
}

static struct profile_clause kept_part(const struct figures *f)
{
	return (struct profile_clause){.samples = f->value[FIGURE_SAMPLES],
				       .events = f->value[FIGURE_EVENTS],
				       .cpu = f->value[FIGURE_CPU],
				       .wall = f->value[FIGURE_LIVED]};
}

int describe_filter(const struct profile *p,
		    int (*add)(void *context, const char *what, const char *counts,
			       const char *clauses),
		    void *context)
{
	char text[FILTER_COUNTS_SIZE];
	struct text_line line = {text, sizeof(text), 0};
	struct profile_clause kept;
	struct figures f;
	int err;

	if (!p->clause_count)
		return 0;
	figures__init(&f, p);
	kept = kept_part(&f);
	add_amounts(&line, p, &f, &kept, true);
	err = add(context, "kept", text, profile__string(p, p->filter));
	for (size_t i = 0; i < p->clause_count && !err; i++) {
		line.used = 0;
		add_amounts(&line, p, &f, &p->clauses[i], false);
		err = add(context, "dropped", text, profile__string(p, p->clauses[i].text));
	}
	return err;
}

static int print_part(void *out, const char *what, const char *counts, const char *clauses)
{
	fprintf(out, PART_OF_NEXT "%s %s: %s", what, counts, clauses);
	return 0;
}

int write_part_of(const struct profile *p, struct json_writer *w)
{
	const char *known = profile__meta(p, META_PART_OF);
	_cleanup_free_ char *text = NULL;
	size_t size, next = known ? 0 : strlen(PART_OF_NEXT);
	FILE *out;

	if (!known && !p->clause_count)
		return 0;
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	fputs(known ?: "", out);
	describe_filter(p, print_part, out);
	if (fclose(out))
		return -ENOMEM;
	json_key_string(w, "partOf", text + next);
	return 0;
}

/* ---- visits ---------------------------------------------------------------------------------- */

const char *describe_visits(char *text, size_t size, const struct figures *f)
{
	snprintf(text, size,
		 "%" PRIu64 " of %" PRIu64 " due at %" PRIu64 " a second, %.3f s of CPU; %" PRIu64
		 " threads, %.3f s of their time",
		 f->value[FIGURE_VISITS + VISIT_LINE_MADE],
		 f->value[FIGURE_VISITS + VISIT_LINE_DUE], f->value[FIGURE_VISITS_HZ],
		 (double)f->value[FIGURE_VISITS_CPU] / 1e9, f->value[FIGURE_VISITED],
		 (double)f->value[FIGURE_LIVED] / 1e9);
	return text;
}

const char *describe_looks(char *text, size_t size, const struct figures *f)
{
	const unsigned int results = FIGURE_VISITS + VISIT_LINE_UNCHANGED;
	uint64_t looks = f->value[FIGURE_VISITS + VISIT_LINE_LOOKS];
	struct text_line line = {text, size, 0};

	add_text(&line, "%" PRIu64 " =%s", looks, looks ? " " : "");
	add_counts(&line, results, FIGURE_VISITS_END, &f->value[results], 0);
	return text;
}

/* ---- times of losses ------------------------------------------------------------------------- */

bool next_lost_span(const struct profile *p, size_t *at, struct lost_span *span)
{
	size_t end = min_u64(*at + p->lost_range_count / LOST_SPANS_MAX + 1, p->lost_range_count);

	if (*at == end)
		return false;
	*span = (struct lost_span){p->lost_ranges[*at].since, p->lost_ranges[end - 1].until,
				   end - *at};
	*at = end;
	return true;
}

/* ---- JIT code -------------------------------------------------------------------------------- */

const struct jit_file_words jit_file_states[JIT_FILE_STATE_COUNT] = {
#define X(id, followed, text) [JIT_FILE_STATE_##id] = {#id, text},
	JIT_FILE_STATES(X)
#undef X
};

static const char *plural_ending(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void add_file(struct text_line *line, const struct profile *p, const char *what,
		     const struct profile_jit_file *file)
{
	if (!file->path.v)
		return;
	add_text(line, "; %s %s: ", what, profile__string(p, file->path));
	if (!jit_file_state_is_followed(file->state)) {
		add_text(line, "not read: %s", jit_file_states[file->state].text);
		return;
	}
	add_text(line, "%" PRIu64 " entr%s", file->entries, file->entries == 1 ? "y" : "ies");
	if (file->bad_lines)
		add_text(line, ", %" PRIu64 " bad", file->bad_lines);
	if (file->state != JIT_FILE_STATE_FOLLOWED)
		add_text(line, ", %s", jit_file_states[file->state].text);
}

/* A living process may have names that it has not written to its jitdump yet. */
static bool may_be_unwritten(const struct profile *p, const struct profile_jit *jit)
{
	return jit->dump.path.v && jit_file_state_is_followed(jit->dump.state) &&
	       !p->processes[jit->process.v].end;
}

/*
 * Its functions have names without a map. Others, stubs of its compilers, functions just entered
 * and samples from before its tables were built, are counted, with advice if they are many.
 */
static bool is_read(const struct profile_jit *jit)
{
	return jit->read && jit->unnamed <= jit->read / 4;
}

const char *describe_jit(char *text, size_t size, const struct profile *p,
			 const struct profile_jit *jit)
{
	const struct profile_process *process = &p->processes[jit->process.v];
	struct text_line line = {text, size, 0};

	*text = 0;
	if (jit->refusal.v && !jit->samples) {
		add_text(&line, "%s (pid %" PRIu32 ", %s): its functions have no names: %s: %s",
			 profile__string(p, process->name), process->pid,
			 profile__string(p, jit->runtime), profile__string(p, jit->refusal),
			 profile__string(p, jit->remedy));
		return text;
	}
	add_text(&line, "%s (pid %" PRIu32 "%s%s): ", profile__string(p, process->name),
		 process->pid, jit->runtime.v ? ", " : "", profile__string(p, jit->runtime));
	if (jit->read && !jit->samples && !jit->map.path.v && !jit->dump.path.v) {
		add_text(&line, "all functions read from its memory, in %" PRIu64 " sample%s",
			 jit->read, plural_ending(jit->read));
		return text;
	}
	add_text(&line, "%" PRIu64 " sample%s", jit->samples, plural_ending(jit->samples));
	if (jit->ambiguous)
		add_text(&line, ", %" PRIu64 " ambiguous", jit->ambiguous);
	if (jit->unnamed)
		add_text(&line, ", %" PRIu64 " %s", jit->unnamed,
			 may_be_unwritten(p, jit) ? "in JIT code not yet written"
						  : "without a name");
	add_file(&line, p, "map", &jit->map);
	add_file(&line, p, "jitdump", &jit->dump);
	if (jit->read)
		add_text(&line, "; functions read from its memory in %" PRIu64 " sample%s",
			 jit->read, plural_ending(jit->read));
	if (!jit->map.path.v && !jit->dump.path.v && !is_read(jit))
		add_text(&line, "; no perf map in /tmp");
	if (jit->unnamed && jit->remedy.v && !is_read(jit) &&
	    !(jit->map.path.v && jit_file_state_is_followed(jit->map.state)))
		add_text(&line, ": %s", profile__string(p, jit->remedy));
	return text;
}

const char *describe_runtime(char *text, size_t size, const struct profile_runtime *runtime)
{
	uint64_t named = runtime->frames - runtime->stale - runtime->unknown;
	struct text_line line = {text, size, 0};

	*text = 0;
	add_text(&line, "%" PRIu64 " of %" PRIu64 " frames named from memory", named,
		 runtime->frames);
	if (runtime->ambiguous)
		add_text(&line, ", %" PRIu64 " of them ambiguous", runtime->ambiguous);
	if (runtime->stale)
		add_text(&line, ", %" PRIu64 " of functions that were gone", runtime->stale);
	if (runtime->unknown)
		add_text(&line, ", %" PRIu64 " not read", runtime->unknown);
	return text;
}

static void write_runtimes(const struct profile *p, struct json_writer *w)
{
	if (!p->runtime_count)
		return;
	json_key_array(w, "runtimes");
	for (size_t i = 0; i < p->runtime_count; i++) {
		const struct profile_runtime *runtime = &p->runtimes[i];

		json_begin_object(w);
		json_key_string(w, "name", profile__string(p, runtime->name));
		json_key_uint(w, "frames", runtime->frames);
		json_key_uint(w, "ambiguous", runtime->ambiguous);
		json_key_uint(w, "stale", runtime->stale);
		json_key_uint(w, "unknown", runtime->unknown);
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_jit_file(const char *key, const struct profile *p,
			   const struct profile_jit_file *file, struct json_writer *w)
{
	json_key(w, key);
	if (!file->path.v) {
		json_null(w);
		return;
	}
	json_begin_object(w);
	json_key_string(w, "path", profile__string(p, file->path));
	json_key_string(w, "state", jit_file_states[file->state].name);
	json_key_uint(w, "entries", file->entries);
	json_key_uint(w, "bad", file->bad_lines);
	json_key_uint(w, "torn", file->torn);
	json_end_object(w);
}

static size_t bytes_of_jit(const struct profile *p, const struct profile_jit *jit)
{
	return strlen(profile__string(p, jit->map.path)) +
	       strlen(profile__string(p, jit->dump.path));
}

/* Many processes may have one file with a long path, and each thread's file has the list. */
size_t described_jits(const struct profile *p)
{
	size_t bytes = 0, count = 0;

	for (; count < p->jit_count && count < JITS_MAX && bytes <= JITS_PATHS_MAX; count++)
		bytes += bytes_of_jit(p, &p->jits[count]);
	return count;
}

void report_jits_left_out(const struct export_request *request)
{
	if (request->left_out)
		request->left_out->jits += request->profile->jit_count -
					   described_jits(request->profile);
}

static void write_jits(const struct profile *p, struct json_writer *w)
{
	size_t count = described_jits(p);

	if (count < p->jit_count)
		json_key_uint(w, "jit_left_out", p->jit_count - count);
	json_key_array(w, "jit");
	for (size_t i = 0; i < count; i++) {
		const struct profile_jit *jit = &p->jits[i];
		const struct profile_process *process = &p->processes[jit->process.v];

		json_begin_object(w);
		json_key_uint(w, "pid", process->pid);
		json_key_string(w, "process", profile__string(p, process->name));
		json_key_string(w, "runtime", profile__string(p, jit->runtime));
		json_key_string(w, "remedy", profile__string(p, jit->remedy));
		json_key_uint(w, "samples", jit->samples);
		json_key_uint(w, "unnamed", jit->unnamed);
		json_key_uint(w, "ambiguous", jit->ambiguous);
		if (jit->read)
			json_key_uint(w, "read", jit->read);
		if (jit->refusal.v)
			json_key_string(w, "refusal", profile__string(p, jit->refusal));
		write_jit_file("map", p, &jit->map, w);
		write_jit_file("jitdump", p, &jit->dump, w);
		json_end_object(w);
	}
	json_end_array(w);
}

/* ---- the books of the outside ---------------------------------------------------------------- */

const char *describe_outside(char *text, size_t size, const struct profile_outside *row)
{
	const struct outside_row described = {
		.user = row->user, .thing = row->thing, .reason = row->reason, .count = row->count};

	outside_row__describe(text, size, &described);
	return text;
}

static void write_outside_row(const struct profile *p, const struct profile_outside *row,
			      struct json_writer *w)
{
	char text[OUTSIDE_TEXT_SIZE];

	json_begin_object(w);
	if (row->user == OUTSIDE_USER_UNKNOWN)
		json_key_null(w, "user");
	else if (row->user == OUTSIDE_USER_OTHERS)
		json_key_string(w, "user", "others");
	else
		json_key_uint(w, "user", row->user);
	json_key_string(w, "what", outside_things[row->thing].name);
	json_key_string(w, "reason", outside_reasons[row->reason].name);
	json_key_uint(w, "count", row->count);
	json_key_string(w, "unit", outside_things[row->thing].unit);
	json_key_bool(w, "waited", outside_reasons[row->reason].waited);
	json_key(w, "since");
	json_ns_as_us(w, (int64_t)(row->since - p->start));
	json_key_string(w, "text", describe_outside(text, sizeof(text), row));
	json_end_object(w);
}

static void write_outside(const struct profile *p, struct json_writer *w)
{
	if (p->outside_count)
		JSON_COLUMN(w, "outside", p->outside_count,
			    write_outside_row(p, &p->outside[i], w));
}

void dso_build_id(const struct profile *p, struct dso_id id, struct dso_build_id *build_id)
{
	const struct profile_dso *dso = &p->dsos[id.v];
	const char *of_kernel = profile__meta(p, META_KERNEL_BUILD_ID);

	*build_id = (struct dso_build_id){.size = dso->build_id_size};
	memcpy(build_id->bytes, dso->build_id, sizeof(build_id->bytes));
	if (dso->kind == DSO_KERNEL && !build_id->size && of_kernel)
		build_id->size = (uint8_t)parse_hex_bytes(of_kernel, build_id->bytes,
							  sizeof(build_id->bytes));
}

#define KEY_SIZE     64
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define SHARE_DIGITS 6

/* How keys of single figures are written. */
enum key_style { SNAKE_CASE, CAMEL_CASE };

/* "clock_error_ns" -> "clockErrorNs" */
static const char *camel_case(const char *key, char text[KEY_SIZE])
{
	size_t used = 0;

	for (; *key && used < KEY_SIZE - 1; key++) {
		bool first = *key == '_' && key[1];

		key += first;
		text[used++] = first ? (char)toupper((unsigned char)*key) : *key;
	}
	text[used] = '\0';
	return text;
}

static void write_key(enum figure_id id, enum key_style style, struct json_writer *w)
{
	char text[KEY_SIZE];

	if (style == SNAKE_CASE)
		json_key(w, figure_table[id].key);
	else if (id == FIGURE_COMPLETE_SHARE)
		json_key(w, "completeStackShare");
	else
		json_key(w, camel_case(figure_table[id].key, text));
}

static void write_figure(const struct figures *f, enum figure_id id, enum key_style style,
			 struct json_writer *w)
{
	write_key(id, style, w);
	if (!figures__is_known(f, id)) {
		json_null(w);
		return;
	}
	switch (figure_table[id].unit) {
	case FIGURE_IN_COUNT:
	case FIGURE_IN_NS:
		json_uint(w, f->value[id]);
		break;
	case FIGURE_IN_SHARE:
		json_fixed(w, f->share[id], SHARE_DIGITS);
		break;
	case FIGURE_IN_FLAG:
		json_bool(w, f->value[id]);
		break;
	case FIGURE_IN_CLOCK:
		json_string(w, f->value[id] ? "tsc" : "monotonic");
		break;
	case FIGURE_IN_DUE:
		json_int(w, (int64_t)f->value[id]);
		break;
	}
}

static void write_list(const struct figures *f, const enum figure_id *ids, size_t count,
		       enum key_style style, struct json_writer *w)
{
	for (size_t i = 0; i < count; i++)
		write_figure(f, ids[i], style, w);
}

/* The members of a group, by their names. */
static void write_counts(const struct figures *f, unsigned int first, unsigned int end,
			 struct json_writer *w)
{
	for (unsigned int id = first; id < end; id++)
		json_key_uint(w, figure_table[id].key, f->value[id]);
}

static void write_group(const struct figures *f, const char *key, unsigned int first,
			unsigned int end, struct json_writer *w)
{
	json_key_object(w, key);
	write_counts(f, first, end, w);
	json_end_object(w);
}

void write_visits(const struct figures *f, struct json_writer *w)
{
	if (f->value[FIGURE_VISITS_HZ])
		write_group(f, "visits", FIGURE_VISITS_HZ, FIGURE_VISITS_END, w);
}

static void write_part(const struct profile *p, const struct profile_clause *part,
		       enum key_style style, struct json_writer *w)
{
	bool snake = style == SNAKE_CASE;

	json_key_uint(w, "samples", part->samples);
	if (p->event.v)
		json_key_uint(w, "events", part->events);
	json_key_uint(w, snake ? "cpu_ns" : "cpuNs", part->cpu);
	if (p->visits.hz)
		json_key_uint(w, snake ? "wall_ns" : "wallNs", part->wall);
}

/* The member "filter": the clauses, what is left, and what each of them dropped. */
static void write_filter(const struct profile *p, const struct figures *f, enum key_style style,
			 struct json_writer *w)
{
	const struct profile_clause kept = kept_part(f);
	char hash[17];

	if (!p->clause_count)
		return;
	snprintf(hash, sizeof(hash), "%016" PRIx64, profile__filter_hash(p));
	json_key_object(w, "filter");
	json_key_string(w, "text", profile__string(p, p->filter));
	json_key_string(w, "hash", hash);
	json_key_object(w, "kept");
	write_part(p, &kept, style, w);
	json_end_object(w);
	json_key_array(w, "dropped");
	for (size_t i = 0; i < p->clause_count; i++) {
		json_begin_object(w);
		json_key_string(w, "by", profile__string(p, p->clauses[i].text));
		write_part(p, &p->clauses[i], style, w);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/* What the samples count, if they are not ticks of a clock. */
static void write_event(const struct profile *p, const struct figures *f, enum key_style style,
			struct json_writer *w)
{
	if (p->untimed && style != SNAKE_CASE)
		json_key_bool(w, "timesKnown", false);
	if (p->uncounted) {
		json_key_bool(w, style == SNAKE_CASE ? "samples_known" : "samplesKnown", false);
		json_key_uint(w, style == SNAKE_CASE ? "tick_cpu_ns" : "tickCpuNs", p->tick_cpu);
	}
	if (style != SNAKE_CASE && profile__meta(p, META_CPU_TIME)) /* a report has all facts */
		json_key_string(w, "cpuTimeIs", profile__meta(p, META_CPU_TIME));
	if (!p->event.v)
		return;
	json_key_string(w, "event", profile__event(p));
	json_key_string(w, style == SNAKE_CASE ? "event_unit" : "eventUnit",
			profile__event_unit(p));
	write_figure(f, FIGURE_EVENTS, style, w);
}

static void write_times(const struct figures *f, enum key_style style, struct json_writer *w)
{
	bool any = false;

	for (unsigned int id = FIGURE_TIMES; id < FIGURE_TIMES_END; id++)
		any |= f->value[id] != 0;
	if (!any)
		return;
	write_group(f, style == SNAKE_CASE ? "cpu_times_ns" : "cpuTimesNs", FIGURE_TIMES,
		    FIGURE_TIMES_END, w);
	write_figure(f, FIGURE_STOLEN_TICKS, style, w);
}

/* Parts that a bound has left out, and lists with rows. */
static void write_rest(const struct profile *p, const struct figures *f, enum key_style style,
		       struct json_writer *w)
{
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++)
		if (f->value[id])
			write_figure(f, id, style, w);
	write_times(f, style, w);
	write_outside(p, w);
	write_jits(p, w);
	write_runtimes(p, w);
	write_gils(p, w);
}

void write_summary(const struct profile *p, const struct figures *f, struct json_writer *w)
{
	static const enum figure_id ids[] = {
		FIGURE_START,	   FIGURE_START_REALTIME, FIGURE_DURATION,	 FIGURE_PERIOD,
		FIGURE_SAMPLES,	   FIGURE_THREADS,	  FIGURE_SILENT_THREADS, FIGURE_CPU,
		FIGURE_SILENT_CPU, FIGURE_CUT_SHORT,	  FIGURE_COMPLETE_SHARE, FIGURE_NAMED_SHARE,
		FIGURE_CLOCK,	   FIGURE_CLOCK_ERROR,
	};

	json_begin_object(w);
	write_list(f, ids, COUNT(ids), SNAKE_CASE, w);
	write_event(p, f, SNAKE_CASE, w);
	write_filter(p, f, SNAKE_CASE, w);
	if (!f->losses_known)
		json_key_bool(w, "losses_known", false);
	write_group(f, "stack_ends", FIGURE_ENDS, FIGURE_ENDS_END, w);
	write_group(f, "frames_found", FIGURE_FRAMES + FRAME_IP, FIGURE_FRAMES_END, w);
	write_rest(p, f, SNAKE_CASE, w);
	write_group(f, "books", FIGURE_BOOKS, FIGURE_BOOKS_END, w);
	write_figure(f, FIGURE_DUE, SNAKE_CASE, w);
	write_figure(f, FIGURE_UNEXPLAINED, SNAKE_CASE, w);
	json_key_object(w, "meta");
	for (size_t i = 0; i < p->meta_count; i++)
		json_key_string(w, profile__string(p, p->meta[i].key),
				profile__string(p, p->meta[i].value));
	json_end_object(w);
	json_end_object(w);
}

int write_recording(const struct profile *p, struct json_writer *w)
{
	static const enum figure_id ids[] = {
		FIGURE_SAMPLES,	    FIGURE_CLOCK,     FIGURE_TSC_KHZ,
		FIGURE_CLOCK_ERROR, FIGURE_CUT_SHORT, FIGURE_COMPLETE_SHARE,
	};
	static const enum figure_id silent[] = {FIGURE_SILENT_THREADS, FIGURE_SILENT_CPU};
	struct figures f;
	int err;

	figures__init(&f, p);
	json_key_object(w, "recording");
	err = write_part_of(p, w);
	json_key_uint(w, "startTime", p->start / 1000);
	json_key_uint(w, "endTime", p->end / 1000);
	write_list(&f, ids, COUNT(ids), CAMEL_CASE, w);
	if (f.value[FIGURE_SILENT_THREADS]) /* whose CPU time is kept, and in no sample */
		write_list(&f, silent, COUNT(silent), CAMEL_CASE, w);
	write_event(p, &f, CAMEL_CASE, w);
	write_filter(p, &f, CAMEL_CASE, w);
	write_group(&f, "stackEnds", FIGURE_ENDS, FIGURE_ENDS_END, w);
	write_group(&f, "framesFound", FIGURE_FRAMES + FRAME_IP, FIGURE_FRAMES_END, w);
	write_figure(&f, FIGURE_NAMED_SHARE, CAMEL_CASE, w);
	write_rest(p, &f, CAMEL_CASE, w);
	json_key_object(w, "books");
	write_figure(&f, FIGURE_DUE, CAMEL_CASE, w);
	write_counts(&f, FIGURE_BOOKS, FIGURE_BOOKS_END, w);
	write_figure(&f, FIGURE_UNEXPLAINED, CAMEL_CASE, w);
	json_end_object(w);
	write_visits(&f, w);
	json_key_object(w, "lost");
	write_counts(&f, FIGURE_LOST, FIGURE_LOST + LOST_RECORDING, w);
	json_key_uint(w, "recordingChunks", p->lost[LOST_RECORDING]);
	write_counts(&f, FIGURE_LOST + LOST_RECORDING + 1, FIGURE_LOST_END, w);
	json_end_object(w);
	json_end_object(w);
	return err;
}

/* ---- plain lines ----------------------------------------------------------------------------- */

#define COMMENT_SIZE 1024

struct comments {
	int (*add)(void *context, const char *text);
	void *context;
	int error; /* the first one */
};

static void __attribute__((format(printf, 2, 3)))
add_comment(struct comments *c, const char *format, ...)
{
	char text[COMMENT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!c->error)
		c->error = c->add(c->context, text);
}

/* A clause can be longer than other comments. */
static int add_filter_comment(void *context, const char *what, const char *counts,
			      const char *clauses)
{
	struct comments *c = context;
	_cleanup_free_ char *text = NULL;

	if (!c->error && asprintf(&text, "%s: %s: %s", what, counts, clauses) < 0)
		c->error = -ENOMEM;
	if (!c->error)
		c->error = c->add(c->context, text);
	return c->error;
}

static void add_meta(struct comments *c, const struct profile *p, const char *what, const char *key)
{
	const char *value = profile__meta(p, key);

	if (value)
		add_comment(c, "%s%s", what, value);
}

/* What became of every tick, in a line; a tick without a sample has a reason. */
static void add_books(struct comments *c, const struct profile *p, const struct figures *f)
{
	const char *unit = p->event.v ? "events" : "ticks";
	char text[COMMENT_SIZE / 2] = "", times[CPU_TIMES_TEXT_SIZE];
	struct text_line line = {text, sizeof(text), 0};

	add_counts(&line, FIGURE_BOOKS, FIGURE_BOOKS_END, &f->value[FIGURE_BOOKS], 1);
	if (f->due_known)
		add_comment(c, "%s: %" PRIu64 " due = %s; unexplained %" PRId64, unit,
			    f->value[FIGURE_DUE], text, figures__unexplained(f));
	else
		add_comment(c, "%s: %s", unit, text);
	if (f->value[FIGURE_STOLEN_TICKS])
		add_comment(c, "ticks not run while the hypervisor had the CPU: %" PRIu64,
			    f->value[FIGURE_STOLEN_TICKS]);
	if (*describe_cpu_times(times, sizeof(times), &f->value[FIGURE_TIMES]))
		add_comment(c, "CPU times by the kernel: %s", times);
}

static void add_visits(struct comments *c, const struct figures *f)
{
	char text[VISITS_TEXT_SIZE];

	add_comment(c, "visits: %s", describe_visits(text, sizeof(text), f));
	add_comment(c, "looks: %s", describe_looks(text, sizeof(text), f));
	if (f->value[FIGURE_UNVISITED])
		add_comment(c, "unvisited: %.3f s, at the end of threads",
			    (double)f->value[FIGURE_UNVISITED] / 1e9);
}

static void add_losses(struct comments *c, const struct profile *p, const struct figures *f)
{
	char text[OUTSIDE_TEXT_SIZE];

	if (p->books_count)
		add_comment(c, "lost: %" PRIu64 " %s", f->value[FIGURE_LOST_TICKS],
			    p->event.v ? "events" : "ticks");
	for (unsigned int id = FIGURE_LOST; id < FIGURE_LOST_END; id++)
		if (figures__is_loss(f, id))
			add_comment(c, "lost: %" PRIu64 " %s", f->value[id], figure_table[id].text);
	for (unsigned int id = FIGURE_ENDS; id < FIGURE_ENDS_END; id++)
		if (figures__is_loss(f, id))
			add_comment(c, "cut stacks: %" PRIu64 ": %s", f->value[id],
				    figure_table[id].key);
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++)
		if (figures__is_loss(f, id))
			add_comment(c, "left out: %" PRIu64 " %s", f->value[id],
				    figure_table[id].text);
	for (size_t i = 0; i < p->outside_count; i++)
		add_comment(c, "left outside: %s",
			    describe_outside(text, sizeof(text), &p->outside[i]));
	if (p->cut_short)
		add_comment(c, "cut short: the recording has no end");
}

/* Then the product's comment says that samples are equal. */
static bool is_ours(const struct profile *p)
{
	const char *product = profile__meta(p, META_PRODUCT);

	return product && !strncmp(product, "sysprof ", 8);
}

int export_comments(const struct profile *p, int (*add)(void *context, const char *text),
		    void *context)
{
	struct comments c = {.add = add, .context = context};
	struct figures figures;

	figures__init(&figures, p);
	add_meta(&c, p, "", META_PRODUCT);
	add_meta(&c, p, "inputs: ", META_INPUTS);
	add_meta(&c, p, "command: ", META_COMMAND);
	add_meta(&c, p, "host: ", META_HOSTNAME);
	add_meta(&c, p, "kernel: ", META_KERNEL_RELEASE);
	add_meta(&c, p, "not read: ", META_NOT_READ);
	add_meta(&c, p, PPROF_COMMENT_OF_CPU, META_CPU_TIME);
	describe_filter(p, add_filter_comment, &c);
	if (profile__meta(p, META_PART_OF))
		add_filter_comment(&c, "part of", "the file that was read",
				   profile__meta(p, META_PART_OF));
	if (figures__is_known(&figures, FIGURE_START))
		add_comment(&c, "start on CLOCK_MONOTONIC: %" PRIu64 " ns", p->start);
	if (p->books_count) /* or it was read from another format */
		add_books(&c, p, &figures);
	if (p->visits.hz)
		add_visits(&c, &figures);
	add_losses(&c, p, &figures);
	if (!is_ours(p) && p->sample_count && !p->event.v && !p->uncounted)
		add_comment(&c, PPROF_COMMENT_OF_SAMPLES);
	return c.error;
}
