/* SPDX-License-Identifier: BSD-2-Clause */
/* The report as text for people and as JSON for scripts; the rows come from report_rows.c. */
#include "export/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/minmax.h"
#include "base/utf8.h"
#include "export/facts.h"
#include "export/report_rows.h"

#define JITS_SHOWN    10
#define JIT_TEXT_SIZE 1024
#define NAME_WIDTH    56 /* longer names push their row's last column to the right */

static const char *const by_names[REPORT_BY_COUNT] = {
	[REPORT_FUNCTION] = "function", [REPORT_THREAD] = "thread", [REPORT_PROCESS] = "process",
	[REPORT_DSO] = "dso",		[REPORT_LINE] = "line",
};

int report_by_parse(const char *text, enum report_by *by)
{
	for (unsigned int i = 0; i < REPORT_BY_COUNT; i++) {
		if (strcmp(by_names[i], text))
			continue;
		*by = (enum report_by)i;
		return 0;
	}
	return -EINVAL;
}

static double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* The wall-clock start, in UTC: an exporter does not know its reader's time zone. */
static void format_date(uint64_t realtime, char *text, size_t size)
{
	time_t seconds = (time_t)(realtime / 1000000000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, size, "%Y-%m-%d %H:%M:%S UTC", &tm))
		snprintf(text, size, "unknown");
}

/* ---- text ------------------------------------------------------------------------------------ */

/* A new copy that is safe on a terminal; never empty. NULL: no memory. */
static char *printable_copy(const char *text)
{
	size_t size = 4 * strlen(text) + sizeof("[unknown]");
	char *copy = malloc(size);

	if (!copy)
		return NULL;
	utf8_sanitize(copy, size, text);
	if (!copy[strspn(copy, " ")])
		snprintf(copy, size, "[unknown]");
	return copy;
}

static int print_field(FILE *out, const char *label, const char *text)
{
	_cleanup_free_ char *plain = text && *text ? printable_copy(text) : NULL;

	if (!text || !*text)
		return 0;
	if (!plain)
		return -ENOMEM;
	fprintf(out, "# %-10s %s\n", label, plain);
	return 0;
}

static void print_losses(const struct profile *p, const struct export_facts *facts, FILE *out)
{
	unsigned int printed = 0;

	fputs("# lost       ", out);
	for (unsigned int line = 0; line < BOOK_COUNT; line++)
		if (book_line_is_loss(line) && facts->lines[line])
			fprintf(out, "%s%" PRIu64 " %s (%s)", printed++ ? ", " : "",
				facts->lines[line], book_line_name(line), book_line_text(line));
	for (unsigned int source = 0; source < LOST_SOURCE_COUNT; source++)
		if (p->lost[source])
			fprintf(out, "%s%" PRIu64 " %s", printed++ ? ", " : "", p->lost[source],
				lost_source_text(source));
	if (facts->due_known && profile__unexplained_ticks(p))
		fprintf(out, "%s%" PRId64 " unexplained", printed++ ? ", " : "",
			profile__unexplained_ticks(p));
	fputs(printed ? "\n" : "nothing\n", out);
}

static void print_stacks(const struct profile *p, FILE *out)
{
	unsigned int printed = 0;

	fprintf(out, "# stacks     %.1f %% complete", 100 * profile__complete_share(p));
	for (unsigned int end = 0; end < STACK_END_COUNT; end++)
		if (!stack_end_is_complete(end) && p->stack_ends[end])
			fprintf(out, "%s%" PRIu64 " %s",
				printed++ ? ", " : "; cut: ", p->stack_ends[end],
				stack_end_name(end));
	if (p->frames_found[FRAME_INFERRED])
		fprintf(out, "; %" PRIu64 " frames inferred", p->frames_found[FRAME_INFERRED]);
	fprintf(out, "; %.1f %% of the code has a symbol\n", 100 * profile__named_share(p));
}

static void print_jits(const struct profile *p, FILE *out)
{
	char text[JIT_TEXT_SIZE], shown[4 * JIT_TEXT_SIZE];

	for (size_t i = 0; i < p->jit_count && i < JITS_SHOWN; i++) {
		describe_jit(text, sizeof(text), p, &p->jits[i]);
		fprintf(out, "# JIT code   %s\n", utf8_sanitize(shown, sizeof(shown), text));
	}
	if (p->jit_count > JITS_SHOWN)
		fprintf(out, "# JIT code   %zu more processes\n", p->jit_count - JITS_SHOWN);
}

static void print_clock(const struct profile *p, FILE *out)
{
	if (p->tsc_khz)
		fprintf(out, "# clock      TSC at %" PRIu64 ".%03" PRIu64 " MHz", p->tsc_khz / 1000,
			p->tsc_khz % 1000);
	else
		fputs("# clock      CLOCK_MONOTONIC", out);
	fprintf(out, ", error below %" PRIu64 " ns\n", p->clock_error_ns);
}

static int print_header(const struct profile *p, FILE *out)
{
	const char *reason = profile__meta(p, META_CLOCK_REASON);
	struct export_facts facts;
	char date[64];
	int err;

	export_facts__init(&facts, p);
	format_date(p->start_realtime, date, sizeof(date));
	err = print_field(out, "target", profile__meta(p, META_TARGET));
	if (!err)
		err = print_field(out, "command", profile__meta(p, META_COMMAND));
	if (!err)
		err = print_field(out, "host", profile__meta(p, META_HOSTNAME));
	if (!err)
		err = print_field(out, "kernel", profile__meta(p, META_KERNEL_RELEASE));
	if (err)
		return err;
	fprintf(out, "# started    %s, for %.3f s%s\n", date, (double)facts.duration / 1e9,
		p->cut_short ? " (cut short: the recording has no end)" : "");
	fprintf(out, "# samples    %" PRIu64 " from %" PRIu64 " thread%s", p->sample_count,
		facts.threads, facts.threads == 1 ? "" : "s");
	if (p->period)
		fprintf(out, ", one each %.6f ms of a CPU", (double)p->period / 1e6);
	fprintf(out, "\n# CPU        %.3f s", (double)facts.cpu / 1e9);
	if (facts.silent_threads)
		fprintf(out, ", of which %.3f s by %" PRIu64 " thread%s without a sample",
			(double)facts.silent_cpu / 1e9, facts.silent_threads,
			facts.silent_threads == 1 ? "" : "s");
	fputc('\n', out);
	print_losses(p, &facts, out);
	print_stacks(p, out);
	print_jits(p, out);
	print_clock(p, out);
	return reason ? print_field(out, "", reason) : 0;
}

static void print_titles(enum report_by by, int width, FILE *out)
{
	switch (by) {
	case REPORT_FUNCTION:
		fprintf(out, "%7s %9s %7s  %-*s  %s\n", "self", "samples", "total", width,
			"function", "dso");
		break;
	case REPORT_LINE:
		fprintf(out, "%7s %9s %7s  %-*s  %s\n", "self", "samples", "total", width,
			"function", "line, or dso");
		break;
	case REPORT_DSO:
		fprintf(out, "%7s %9s %7s  %s\n", "self", "samples", "total", "dso");
		break;
	case REPORT_THREAD:
		fprintf(out, "%7s %9s %12s %8s %8s  %-*s  %s\n", "share", "samples", "CPU ms",
			"pid", "tid", width, "thread", "process");
		break;
	case REPORT_PROCESS:
		fprintf(out, "%7s %9s %12s %8s %8s  %s\n", "share", "samples", "CPU ms", "pid",
			"threads", "process");
		break;
	case REPORT_BY_COUNT:
		break;
	}
}

static void print_row(const struct profile *p, const struct report_row *row, enum report_by by,
		      int width, const char *name, const char *place, FILE *out)
{
	double self = 100 * share_of(row->self, p->sample_count);

	fprintf(out, "%6.2f%% %9" PRIu64, self, row->self);
	if (by == REPORT_THREAD || by == REPORT_PROCESS)
		fprintf(out, " %12.3f %8" PRIu32 " %8" PRIu32, (double)row->cpu / 1e6, row->pid,
			by == REPORT_THREAD ? row->tid : row->threads);
	else
		fprintf(out, " %6.2f%%", 100 * share_of(row->total, p->sample_count));
	if (!row->place)
		fprintf(out, "  %s\n", name);
	else if (row->line)
		fprintf(out, "  %-*s  %s:%" PRIu32 "\n", width, name, place, row->line);
	else
		fprintf(out, "  %-*s  %s\n", width, name, place);
}

static int print_text(const struct profile *p, const struct report_options *options,
		      const struct report_row *rows, size_t count, size_t shown, FILE *out)
{
	int width = (int)strlen("function");
	int err = print_header(p, out);

	if (err)
		return err;
	for (size_t i = 0; i < shown; i++) {
		size_t length = strlen(rows[i].name);

		if (length <= NAME_WIDTH && (int)length > width)
			width = (int)length;
		else if (length > NAME_WIDTH)
			width = NAME_WIDTH;
	}
	fputc('\n', out);
	print_titles(options->by, width, out);
	for (size_t i = 0; i < shown; i++) {
		_cleanup_free_ char *name = printable_copy(rows[i].name);
		_cleanup_free_ char *place = printable_copy(rows[i].place ? rows[i].place : "");

		if (!name || !place)
			return -ENOMEM;
		print_row(p, &rows[i], options->by, width, name, place, out);
	}
	if (shown < count)
		fprintf(out, "# … and %zu more\n", count - shown);
	return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void report_write_summary(const struct profile *p, struct json_writer *w)
{
	struct export_facts facts;

	export_facts__init(&facts, p);
	json_begin_object(w);
	json_key_uint(w, "start_monotonic_ns", p->start);
	json_key_uint(w, "start_realtime_ns", p->start_realtime);
	json_key_uint(w, "duration_ns", facts.duration);
	json_key_uint(w, "period_ns", p->period);
	json_key_uint(w, "samples", p->sample_count);
	json_key_uint(w, "threads", facts.threads);
	json_key_uint(w, "silent_threads", facts.silent_threads);
	json_key_uint(w, "cpu_ns", facts.cpu);
	json_key_uint(w, "silent_cpu_ns", facts.silent_cpu);
	json_key_bool(w, "cut_short", p->cut_short);
	json_key(w, "complete_share");
	json_fixed(w, profile__complete_share(p), 6);
	json_key(w, "named_share");
	json_fixed(w, profile__named_share(p), 6);
	json_key_string(w, "clock", p->tsc_khz ? "tsc" : "monotonic");
	json_key_uint(w, "clock_error_ns", p->clock_error_ns);
	json_key(w, "stack_ends");
	json_begin_object(w);
	for (unsigned int end = 0; end < STACK_END_COUNT; end++)
		json_key_uint(w, stack_end_name(end), p->stack_ends[end]);
	json_end_object(w);
	json_key(w, "frames_found");
	json_begin_object(w);
	for (unsigned int kind = FRAME_IP; kind < FRAME_KIND_COUNT; kind++)
		json_key_uint(w, frame_kind_name(kind), p->frames_found[kind]);
	json_end_object(w);
	write_jits(p, w);
	json_key(w, "books");
	json_begin_object(w);
	for (unsigned int line = 0; line < BOOK_COUNT; line++)
		json_key_uint(w, book_line_name(line), facts.lines[line]);
	json_end_object(w);
	json_key(w, "due");
	if (facts.due_known)
		json_uint(w, facts.due);
	else
		json_null(w);
	json_key(w, "unexplained");
	if (facts.due_known)
		json_int(w, profile__unexplained_ticks(p));
	else
		json_null(w);
	json_key(w, "meta");
	json_begin_object(w);
	for (size_t i = 0; i < p->meta_count; i++)
		json_key_string(w, profile__string(p, p->meta[i].key),
				profile__string(p, p->meta[i].value));
	json_end_object(w);
	json_end_object(w);
}

static void write_row(const struct report_row *row, enum report_by by, struct json_writer *w)
{
	json_begin_object(w);
	json_key_uint(w, "self", row->self);
	if (by == REPORT_THREAD || by == REPORT_PROCESS) {
		json_key_uint(w, "cpu_ns", row->cpu);
		json_key_uint(w, "pid", row->pid);
		json_key_uint(w, by == REPORT_THREAD ? "tid" : "threads",
			      by == REPORT_THREAD ? row->tid : row->threads);
		json_key_string(w, by_names[by], row->name);
		if (by == REPORT_THREAD)
			json_key_string(w, "process", row->place);
	} else {
		json_key_uint(w, "total", row->total);
		json_key_string(w, by == REPORT_DSO ? "dso" : "function", row->name);
		if (row->line) {
			json_key_string(w, "file", row->place);
			json_key_uint(w, "line", row->line);
		} else if (by != REPORT_DSO) {
			json_key_string(w, "dso", row->place);
		}
	}
	json_end_object(w);
}

static int write_json(const struct profile *p, const struct report_options *options,
		      const struct report_row *rows, size_t count, size_t shown, FILE *out)
{
	struct json_writer w;
	int err;

	json_writer__init(&w, out);
	json_begin_object(&w);
	json_key(&w, "summary");
	report_write_summary(p, &w);
	json_key_string(&w, "by", by_names[options->by]);
	json_key_uint(&w, "row_count", count);
	json_key(&w, "rows");
	json_begin_array(&w);
	for (size_t i = 0; i < shown; i++)
		write_row(&rows[i], options->by, &w);
	json_end_array(&w);
	json_end_object(&w);
	err = json_writer__finish(&w);
	if (!err && fputc('\n', out) == EOF)
		err = -EIO;
	return err;
}

int report_write(const struct export_request *request, const struct report_options *options)
{
	size_t top = request->top ? request->top : REPORT_TOP_DEFAULT, count = 0, shown;
	_cleanup_free_ struct report_row *rows = NULL;
	const struct profile *p = request->profile;
	int err = report_rows(p, options->by, &rows, &count);

	if (err)
		return err;
	shown = min_u64(count, top);
	return options->json ? write_json(p, options, rows, count, shown, request->out)
			     : print_text(p, options, rows, count, shown, request->out);
}
