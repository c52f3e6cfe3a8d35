/* SPDX-License-Identifier: BSD-2-Clause */
/* The summary: counts, losses by reason, costs, files and how to open them. */
#include "cli/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/list_column.h"
#include "base/log.h"
#include "base/order.h"
#include "base/utf8.h"
#include "formats/out/describe.h"
#include "formats/out/gil.h"
#include "tenants/outside_books.h"

#define LINES_LOST_SHOWN 2048
#define CPUS_SHOWN	 2048
#define JITS_SHOWN	 10
#define JIT_TEXT_SIZE	 1024
#define GILS_SHOWN	 5
#define FILES_MANY	 4 /* of one format: more are hard to read together */

void print_failure(const struct failure *failure)
{
	log_print(LOG_ERROR, "%s", *failure->what ? failure->what : "failed");
	if (*failure->remedy)
		log_print(LOG_ERROR, "  try: %s", failure->remedy);
}

void print_line(const char *mark, const char *name, const char *text)
{
	printf("  %-8s %-24s %s\n", mark, name, text);
}

void print_remedy(const char *remedy)
{
	if (remedy && *remedy)
		printf("  %-8s   try: %s\n", "", remedy);
}

const char *show(struct shown *shown, const char *text)
{
	return utf8_sanitize(shown->text, sizeof(shown->text), text);
}

/* `format` has one %llu, the count; nothing if that is 0. */
static void print_count(uint64_t count, const char *format)
{
	if (count)
		fprintf(stderr, format, (unsigned long long)count);
}

/* The program that a tick not run would have met is unknown: with targets, mostly another one. */
static void print_lost_ticks(const struct figures *f, unsigned int id)
{
	uint64_t of_others = f->value[FIGURE_BOOKS + BOOK_FILTERED];

	fprintf(stderr, "    %llu %s (%s)", (unsigned long long)f->value[id], figure_table[id].key,
		figure_table[id].text);
	if (id == FIGURE_BOOKS + BOOK_NOT_RUN && f->value[FIGURE_STOLEN_TICKS])
		fprintf(stderr, "; %llu of them while the hypervisor had the CPU",
			(unsigned long long)f->value[FIGURE_STOLEN_TICKS]);
	if (id == FIGURE_BOOKS + BOOK_NOT_RUN && of_others)
		fprintf(stderr, "; some may be of other programs, which had %llu other ticks",
			(unsigned long long)of_others);
	fputc('\n', stderr);
}

static void print_lost(const struct profile *p, const struct figures *f)
{
	int64_t unexplained = figures__unexplained(f);

	fprintf(stderr, "  lost: %llu%s\n", (unsigned long long)f->value[FIGURE_LOST_TICKS],
		p->event.v ? " events" : "");
	for (unsigned int id = FIGURE_BOOKS; id < FIGURE_BOOKS_END; id++)
		if (figures__is_loss(f, id))
			print_lost_ticks(f, id);
	print_count(p->lost[LOST_SIDEBAND],
		    "    %llu process and mapping records: some names may be wrong\n");
	if (llabs(unexplained) > profile__unexplained_allowed(p))
		fprintf(stderr, "    %lld %s unexplained\n", (long long)unexplained,
			p->event.v ? "events" : "ticks");
}

static void print_cpus(const struct profile *p, const struct figures *f)
{
	const char *changes = profile__meta(p, META_CPU_CHANGES);
	char text[CPUS_SHOWN], times[CPU_TIMES_TEXT_SIZE];

	if (*describe_cpu_times(times, sizeof(times), &f->value[FIGURE_TIMES]))
		fprintf(stderr, "  CPU times by the kernel: %s\n", times);

	if (changes)
		fprintf(stderr, "  CPUs changed: %s\n", utf8_sanitize(text, sizeof(text), changes));
}

static void print_stacks(const struct figures *f)
{
	unsigned int inferred = FIGURE_FRAMES + FRAME_INFERRED;

	if (f->value[FIGURE_SAMPLES])
		fprintf(stderr, "  complete stacks: %.1f %%\n",
			100 * f->share[FIGURE_COMPLETE_SHARE]);
	for (unsigned int id = FIGURE_ENDS; id < FIGURE_ENDS_END; id++)
		if (figures__is_loss(f, id))
			fprintf(stderr, "    %llu incomplete: %s\n",
				(unsigned long long)f->value[id], figure_table[id].text);
	if (f->value[inferred])
		fprintf(stderr, "    %llu frames %s\n", (unsigned long long)f->value[inferred],
			figure_table[inferred].text);
	print_count(f->value[FIGURE_UNMAPPED], "    %llu frames outside every known mapping\n");
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++)
		if (figures__is_loss(f, id))
			fprintf(stderr, "    %llu %s left out\n", (unsigned long long)f->value[id],
				figure_table[id].text);
}

/* The input that limits have left out, by user. */
static void print_outside(const struct profile *p)
{
	char text[OUTSIDE_TEXT_SIZE];

	for (size_t i = 0; i < p->outside_count; i++)
		fprintf(stderr, "  left out: %s\n",
			describe_outside(text, sizeof(text), &p->outside[i]));
}

/* Why a file could not be opened, if there is more to say. */
static const char *why_not_opened(enum symbol_state symbols, enum file_state file)
{
	static const char *const TEXTS[] = {FILE_STATES(SECOND_COLUMN)};

	if (symbols != SYMBOL_STATE_NO_FILE || file <= FILE_STATE_RIGHT)
		return NULL;
	return TEXTS[file];
}

/* Files whose code has no names, by reason. PENDING: no sample lies in it. */
static void print_unnamed_files(const struct profile *p)
{
	size_t files[SYMBOL_STATE_COUNT][FILE_STATE_COUNT] = {};

	for (size_t i = 1; i < p->dso_count; i++)
		files[p->dsos[i].symbol_state]
		     [why_not_opened(p->dsos[i].symbol_state, p->dsos[i].file_state)
			      ? p->dsos[i].file_state
			      : 0]++;
	for (int i = 0; i < SYMBOL_STATE_COUNT * FILE_STATE_COUNT; i++) {
		int symbols = i / FILE_STATE_COUNT, file = i % FILE_STATE_COUNT;
		const char *why = why_not_opened(symbols, file);
		size_t count = files[symbols][file];

		if (count && symbols != SYMBOL_STATE_PENDING && symbols != SYMBOL_STATE_RESOLVED)
			fprintf(stderr, "  no symbols from %zu file%s: %s%s%s\n", count,
				count == 1 ? "" : "s", symbol_state_text(symbols), why ? ": " : "",
				why ? why : "");
	}
}

static const char *cost_text(char *text, size_t size, const struct summary *s)
{
	struct rusage usage;
	double seconds = (s->profile->end - s->profile->start) / 1e9;

	getrusage(RUSAGE_SELF, &usage);
	snprintf(text, size,
		 "%.2f s CPU for %.1f s recorded, %.0f MB peak memory, %.0f MB of rings and maps",
		 s->own_cpu / 1e9, seconds, usage.ru_maxrss / 1024.0,
		 s->session.live.memory / 1048576.0);
	return text;
}

static void advise_on_siblings(size_t siblings, bool merged)
{
	if (siblings + 1 > FILES_MANY)
		fprintf(stderr, "    all of them in one file: -o FILE.trace.json%s\n",
			merged ? "" : "; a file for each process: --merge-threads process");
}

static void print_file(const struct written_file *file, size_t siblings, bool merged)
{
	struct shown path;

	fprintf(stderr, "  wrote %s\n", show(&path, file->path));
	if (file->exporter->how_to_open) {
		fputs("    ", stderr);
		fprintf(stderr, file->exporter->how_to_open, path.text);
		fputc('\n', stderr);
	}
	if (siblings)
		fprintf(stderr, "    and %zu more beside it, one per %s%s %s\n", siblings,
			merged ? "process" : "thread", siblings == 1 ? ":" : ", the last is",
			show(&path, file[siblings].path));
	advise_on_siblings(siblings, merged);
}

/* The siblings of a file of one thread come right behind it: they are counted, not listed. */
static void print_files(const struct summary *s)
{
	const struct written_files *files = s->files;
	const char *recording = outputs__recording(&s->options->outputs);
	bool merged = s->options->outputs.merge_threads;
	char text[LEFT_OUT_SIZE];
	struct shown path;

	for (size_t i = 0, siblings; i < files->count; i += 1 + siblings) {
		siblings = 0;
		while (i + siblings + 1 < files->count && files->data[i + siblings + 1].sibling)
			siblings++;
		if (strcmp(files->data[i].path, "-"))
			print_file(&files->data[i], siblings, merged);
	}
	if (written_files__left_out(files, merged, text))
		fprintf(stderr, "  %s\n", text);
	if (recording && strcmp(recording, "-")) {
		show(&path, recording);
		fprintf(stderr,
			"  wrote %s\n    sysprof report %s, or sysprof convert %s -o FILE\n",
			path.text, path.text, path.text);
	}
}

DEFINE_ORDER(compare_jits, const struct profile_jit *,
	     order_of((*y)->samples, (*x)->samples) ?: order_of(*x, *y));

/* Processes with JIT code, those with the most samples first. */
static void print_jits(const struct profile *p)
{
	_cleanup_free_ const struct profile_jit **jits = calloc(p->jit_count + 1, sizeof(*jits));
	char text[JIT_TEXT_SIZE], shown[4 * JIT_TEXT_SIZE];

	if (!jits)
		return;
	for (size_t i = 0; i < p->jit_count; i++)
		jits[i] = &p->jits[i];
	if (p->jit_count)
		qsort(jits, p->jit_count, sizeof(*jits), compare_jits);
	for (size_t i = 0; i < p->jit_count && i < JITS_SHOWN; i++)
		fprintf(stderr, "  JIT code: %s\n",
			utf8_sanitize(shown, sizeof(shown),
				      describe_jit(text, sizeof(text), p, jits[i])));
	if (p->jit_count > JITS_SHOWN)
		fprintf(stderr, "  JIT code: %zu more processes\n", p->jit_count - JITS_SHOWN);
}

static void print_runtimes(const struct profile *p)
{
	char text[RUNTIME_TEXT_SIZE];

	for (size_t i = 0; i < p->runtime_count; i++) {
		const struct profile_runtime *runtime = &p->runtimes[i];

		fprintf(stderr, "  %s: %s\n", profile__string(p, runtime->name),
			describe_runtime(text, sizeof(text), runtime));
		if (runtime->remedy.v)
			fprintf(stderr, "    %s\n", profile__string(p, runtime->remedy));
	}
}

/* Processes with several threads, where the GIL was held longest first. */
static void print_gils(const struct profile *p)
{
	char text[GIL_TEXT_SIZE], shown[4 * GIL_TEXT_SIZE];
	struct gil_table table;
	size_t left = GILS_SHOWN;

	gil_table__init(&table, p);
	for (size_t i = 0; i < table.count && left; i++) {
		if (table.processes[i].count < 2)
			continue;
		left--;
		describe_gil(text, sizeof(text), p, &table.processes[i]);
		fprintf(stderr, "  GIL: %s\n", utf8_sanitize(shown, sizeof(shown), text));
	}
	gil_table__fini(&table);
}

static void print_visits(const struct figures *f, const char *refused)
{
	if (refused)
		fprintf(stderr, "  not recorded: what threads wait for (%s)\n", refused);
	if (!f->value[FIGURE_VISITS_HZ])
		return;
	fprintf(stderr, "  visits of threads that wait: %llu of %llu due, %.2f s CPU\n",
		(unsigned long long)f->value[FIGURE_VISITS + VISIT_LINE_MADE],
		(unsigned long long)f->value[FIGURE_VISITS + VISIT_LINE_DUE],
		f->value[FIGURE_VISITS_CPU] / 1e9);
	print_count(
		f->value[FIGURE_VISITS + VISIT_LINE_LEFT],
		"  a thread's memory did not answer: its process or user was not visited any more (%llu threads left)\n");
}

/* Processes with stacks copied instead of walked in the kernel. */
static void print_places(const struct place_store_stats *places)
{
	if (places->too_many)
		fprintf(stderr,
			"  processes with more than %u executable mappings: their stacks were copied (%llu times)\n",
			UNWIND_PLACES_MAX, (unsigned long long)places->too_many);
	print_count(places->refused,
		    "  mapping table full: dropped %llu updates of users over their share\n");
	print_count(places->shared,
		    "  mapping table full: evicted %llu processes for those of other users\n");
}

static void print_tables(const struct unwind_feed_stats *feed)
{
	const struct table_store_stats *tables = &feed->store;

	if (tables->tables)
		fprintf(stderr,
			"  unwind tables: %llu files, %.1f of %.0f MB; %llu built and %llu read from the cache in %.0f ms\n",
			(unsigned long long)tables->tables, tables->table_bytes / 1048576.0,
			tables->segment_bytes / 1048576.0, (unsigned long long)feed->built,
			(unsigned long long)feed->cached, feed->build_ns / 1e6);
	if (tables->evicted || tables->refused)
		fprintf(stderr, "  evicted %llu unwind tables, refused %llu: raise --unwind-mem\n",
			(unsigned long long)tables->evicted, (unsigned long long)tables->refused);
	for (enum table_refusal why = TABLE_REFUSAL_NONE + 1; why < TABLE_REFUSAL_COUNT; why++)
		if (feed->refusals.count[why])
			fprintf(stderr, "  files without an unwind table: %llu: %s\n",
				(unsigned long long)feed->refusals.count[why],
				table_refusal_text(why));
	print_count(feed->put_off, "  unwind tables deferred, to save CPU time: %llu\n");
	print_places(&tables->places);
	print_count(feed->deferred,
		    "  mappings that changed too often to be used at once: %llu times\n");
}

static void print_if_there(const struct profile *profile, const char *key, const char *what)
{
	const char *fact = profile__meta(profile, key);
	char text[LINES_LOST_SHOWN];

	if (fact)
		fprintf(stderr, "  %s: %s\n", what, utf8_sanitize(text, sizeof(text), fact));
}

static void print_symbols(const struct summary *s)
{
	char contents[CONTENTS_TEXT_SIZE];

	if (s->symbols.cancelled)
		fprintf(stderr, "  symbols: cancelled, some are missing\n");
	print_if_there(s->profile, META_LINES_MISSING, "lines are missing");
	if (*describe_contents(contents, sizeof(contents), s->profile))
		fprintf(stderr, "  contents: %s\n", contents);
	print_if_there(s->profile, META_SOURCES_MISSING, "sources not recorded");
	print_if_there(s->profile, META_CODE_LEFT_OUT,
		       "machine code and sources left out (--code-size)");
	if (s->symbols.cpu_time)
		fprintf(stderr, "  reading symbols: %.2f s CPU, %.0f MB peak memory\n",
			s->symbols.cpu_time / 1e9, s->symbols.peak_memory / 1048576.0);
	print_count(s->symbols.debug_files_fetched, "  %llu debug files fetched\n");
	if (s->symbols.fetch_failures)
		fprintf(stderr, "  %llu debug files could not be fetched: %s\n",
			(unsigned long long)s->symbols.fetch_failures, s->symbols.fetch_error);
	print_count(s->symbols.debug_files_wrong,
		    "  %llu debug files rejected: from another build\n");
	print_count(s->symbols.debug_files_refused,
		    "  %llu debug files not verified: too large, or too many\n");
	print_count(s->symbols.abandoned,
		    "  processes abandoned, since a file system does not answer: %llu\n");
}

void summary__print(const struct summary *s)
{
	const struct profile *p = s->profile;
	struct figures figures;
	char cost[160];

	figures__init(&figures, p);
	fprintf(stderr, "sysprof: %llu sample%s of %llu thread%s\n",
		(unsigned long long)p->sample_count, p->sample_count == 1 ? "" : "s",
		(unsigned long long)figures.value[FIGURE_THREADS],
		figures.value[FIGURE_THREADS] == 1 ? "" : "s");
	if (s->options->names)
		print_if_there(p, META_TARGET, "targets");
	if (p->event.v)
		fprintf(stderr, "  %s: %llu\n", profile__event(p),
			(unsigned long long)p->event_count);
	print_lost(p, &figures);
	print_cpus(p, &figures);
	print_outside(p);
	print_stacks(&figures);
	print_jits(p);
	print_runtimes(p);
	print_gils(p);
	print_visits(&figures, s->session.live.wall_refused);
	print_tables(&s->session.tables);
	print_count(s->session.mappings_left,
		    "  mappings not kept: %llu, of processes with too many\n");
	print_unnamed_files(p);
	print_symbols(s);
	print_count(s->session.refused_children,
		    "  %llu child processes not sampled: too many at one time\n");
	if (s->options->command)
		fprintf(stderr, "  the command ran as the same user as sysprof\n");
	fprintf(stderr, "  sysprof itself: %s\n", cost_text(cost, sizeof(cost), s));
	print_files(s);
}
