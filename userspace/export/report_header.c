/* SPDX-License-Identifier: BSD-2-Clause */
/* What a text report says above its rows: the recording, what was lost, how stacks end. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/outside_books.h"
#include "base/utf8.h"
#include "export/facts.h"
#include "export/report_paint.h"
#include "export/report_private.h"

#define JITS_SHOWN    10
#define JIT_TEXT_SIZE 1024

/* The wall-clock start, in UTC: an exporter does not know its reader's time zone. */
static void format_date(uint64_t realtime, char *text, size_t size)
{
	time_t seconds = (time_t)(realtime / 1000000000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || !strftime(text, size, "%Y-%m-%d %H:%M:%S UTC", &tm))
		snprintf(text, size, "unknown");
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
	if (p->inlined_left_out)
		fprintf(out, "# stacks     %" PRIu64 " inlined functions left out\n",
			p->inlined_left_out);
}

/* One line each: what limits have left out, by user. */
static void print_outside(const struct profile *p, FILE *out)
{
	char text[OUTSIDE_TEXT_SIZE];

	for (size_t i = 0; i < p->outside_count; i++) {
		describe_outside(text, sizeof(text), &p->outside[i]);
		fprintf(out, "# left out   %s\n", text);
	}
}

static void print_runtimes(const struct profile *p, FILE *out)
{
	char text[RUNTIME_TEXT_SIZE];

	for (size_t i = 0; i < p->runtime_count; i++) {
		describe_runtime(text, sizeof(text), &p->runtimes[i]);
		fprintf(out, "# %-10s %s\n", profile__string(p, p->runtimes[i].name), text);
	}
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
	if (!p->tsc_khz && !p->clock_error_ns)
		return; /* of a profile that was read from another format */
	if (p->tsc_khz)
		fprintf(out, "# clock      TSC at %" PRIu64 ".%03" PRIu64 " MHz", p->tsc_khz / 1000,
			p->tsc_khz % 1000);
	else
		fputs("# clock      CLOCK_MONOTONIC", out);
	fprintf(out, ", error below %" PRIu64 " ns\n", p->clock_error_ns);
}

int report_header(const struct profile *p, FILE *out)
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
	if (!p->untimed)
		fprintf(out, "# started    %s, for %.3f s%s\n",
			export_knows_realtime(p) ? date : "at an unknown time",
			(double)facts.duration / 1e9,
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
	err = print_field(out, "CPUs", profile__meta(p, META_CPU_CHANGES));
	if (err)
		return err;
	print_outside(p, out);
	print_stacks(p, out);
	print_jits(p, out);
	print_runtimes(p, out);
	print_clock(p, out);
	return reason ? print_field(out, "", reason) : 0;
}
