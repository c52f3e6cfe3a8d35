/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/report_header.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/utf8.h"
#include "formats/out/describe.h"
#include "formats/out/report_paint.h"
#include "tenants/outside_books.h"

#define JITS_SHOWN	10
#define JIT_TEXT_SIZE	1024
#define EVENT_TEXT_SIZE 256

/* The wall-clock start, in UTC: an exporter has no time zone. */
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

/* "# kept       12 of 34 samples, …: --process=java" */
static int print_filter_line(void *out, const char *what, const char *counts, const char *clauses)
{
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text, "%s: %s", counts, clauses) < 0)
		return -ENOMEM;
	return print_field(out, what, text);
}

static void print_times(const struct figures *f, FILE *out)
{
	char times[CPU_TIMES_TEXT_SIZE];

	if (*describe_cpu_times(times, sizeof(times), &f->value[FIGURE_TIMES]))
		fprintf(out, "# CPU times  by the kernel: %s\n", times);
	if (f->value[FIGURE_STOLEN_TICKS])
		fprintf(out,
			"# stolen     %" PRIu64 " ticks not run while the hypervisor had the CPU\n",
			f->value[FIGURE_STOLEN_TICKS]);
}

static void print_losses(const struct figures *f, FILE *out)
{
	int64_t unexplained = figures__unexplained(f);
	unsigned int printed = 0;

	fputs("# lost       ", out);
	for (unsigned int id = FIGURE_BOOKS; id < FIGURE_BOOKS_END; id++)
		if (figures__is_loss(f, id))
			fprintf(out, "%s%" PRIu64 " %s (%s)", printed++ ? ", " : "", f->value[id],
				figure_table[id].key, figure_table[id].text);
	for (unsigned int id = FIGURE_LOST; id < FIGURE_LOST_END; id++)
		if (figures__is_loss(f, id))
			fprintf(out, "%s%" PRIu64 " %s", printed++ ? ", " : "", f->value[id],
				figure_table[id].text);
	if (f->due_known && unexplained)
		fprintf(out, "%s%" PRId64 " unexplained", printed++ ? ", " : "", unexplained);
	fputs(printed		? "\n"
	      : f->losses_known ? "nothing\n"
				: "unknown: not read from files of this format\n",
	      out);
}

static void print_complete(const struct figures *f, FILE *out)
{
	unsigned int printed = 0;

	if (f->ends_known)
		fprintf(out, "# stacks     %.1f %% complete",
			100 * f->share[FIGURE_COMPLETE_SHARE]);
	else
		fputs("# stacks     unknown how many are complete", out);
	for (unsigned int id = FIGURE_ENDS; id < FIGURE_ENDS_END; id++)
		if (figures__is_loss(f, id))
			fprintf(out, "%s%" PRIu64 " %s", printed++ ? ", " : "; cut: ", f->value[id],
				figure_table[id].key);
	if (f->value[FIGURE_FRAMES + FRAME_INFERRED])
		fprintf(out, "; %" PRIu64 " frames inferred",
			f->value[FIGURE_FRAMES + FRAME_INFERRED]);
	if (f->names_known)
		fprintf(out, "; %.1f %% of the code has a symbol\n",
			100 * f->share[FIGURE_NAMED_SHARE]);
	else
		fputs("; unknown how much of the code has a symbol\n", out);
}

static void print_stacks(const struct figures *f, FILE *out)
{
	if (f->value[FIGURE_SAMPLES])
		print_complete(f, out);
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++)
		if (figures__is_loss(f, id))
			fprintf(out, "# left out   %" PRIu64 " %s\n", f->value[id],
				figure_table[id].text);
}

/* One line each: what limits have left out, by user. */
static void print_outside(const struct profile *p, FILE *out)
{
	char text[OUTSIDE_TEXT_SIZE];

	for (size_t i = 0; i < p->outside_count; i++)
		fprintf(out, "# left out   %s\n",
			describe_outside(text, sizeof(text), &p->outside[i]));
}

static void print_runtimes(const struct profile *p, FILE *out)
{
	char text[RUNTIME_TEXT_SIZE];

	for (size_t i = 0; i < p->runtime_count; i++)
		fprintf(out, "# %-10s %s\n", profile__string(p, p->runtimes[i].name),
			describe_runtime(text, sizeof(text), &p->runtimes[i]));
}

static void print_jits(const struct profile *p, FILE *out)
{
	char text[JIT_TEXT_SIZE], shown[4 * JIT_TEXT_SIZE];

	for (size_t i = 0; i < p->jit_count && i < JITS_SHOWN; i++)
		fprintf(out, "# JIT code   %s\n",
			utf8_sanitize(shown, sizeof(shown),
				      describe_jit(text, sizeof(text), p, &p->jits[i])));
	if (p->jit_count > JITS_SHOWN)
		fprintf(out, "# JIT code   %zu more processes\n", p->jit_count - JITS_SHOWN);
}

static void print_clock(const struct profile *p, FILE *out)
{
	char text[CLOCK_TEXT_SIZE];

	if (!p->tsc_khz && !p->clock_error_ns)
		return; /* of a profile that was read from another format */
	fprintf(out, "# clock      %s, error below %" PRIu64 " ns\n",
		describe_clock(text, sizeof(text), p), p->clock_error_ns);
}

/* What the samples stand for, if it is no time of a CPU. */
static void print_event(const struct profile *p, FILE *out)
{
	char name[EVENT_TEXT_SIZE], unit[EVENT_TEXT_SIZE];
	bool is_count = !strcmp(profile__event_unit(p), "count");

	if (profile__events_are_cpu(p))
		fprintf(out, ", %.6f ms each on average, shares of %s",
			(double)p->event_count / 1e6 / (double)max_u64(p->sample_count, 1),
			profile__meta(p, META_CPU_TIME) ? "time" : "CPU time");
	else
		fprintf(out, ", for %" PRIu64 " %s%s%s", p->event_count,
			is_count ? "" : utf8_sanitize(unit, sizeof(unit), profile__event_unit(p)),
			is_count ? "" : " of ",
			utf8_sanitize(name, sizeof(name), profile__event(p)));
	if (p->event_period > 1)
		fprintf(out, ", one each %" PRIu64, p->event_period);
}

/* Weights instead of samples. */
static void print_uncounted(const struct profile *p, FILE *out)
{
	char unit[EVENT_TEXT_SIZE];

	fprintf(out, "# samples    number unknown: the file has weights");
	if (p->tick_cpu)
		fprintf(out, " of CPU time, %.6f ms each", (double)p->tick_cpu / 1e6);
	else if (p->event.v && strcmp(profile__event_unit(p), "count"))
		fprintf(out, ", in units of %s",
			utf8_sanitize(unit, sizeof(unit), profile__event_unit(p)));
	fprintf(out, ", and shares without intervals\n# weight     %" PRIu64, p->event_count);
}

static void print_samples(const struct profile *p, const struct figures *f, FILE *out)
{
	if (p->uncounted)
		print_uncounted(p, out);
	else
		fprintf(out, "# samples    %" PRIu64, p->sample_count);
	fprintf(out, " from %" PRIu64 " thread%s", f->value[FIGURE_THREADS],
		f->value[FIGURE_THREADS] == 1 ? "" : "s");
	if (p->uncounted)
		return;
	if (p->period && !p->event.v)
		fprintf(out, ", one each %.6f ms%s", (double)p->period / 1e6,
			profile__meta(p, META_CPU_TIME) ? "" : " of a CPU");
	if (p->event.v)
		print_event(p, out);
}

/* Samples without CPU time do not mean that a CPU was idle. */
static void print_cpu(const struct profile *p, const struct figures *f, FILE *out)
{
	const char *instead = profile__meta(p, META_CPU_TIME);
	char text[EVENT_TEXT_SIZE];

	if (!f->value[FIGURE_CPU] && p->sample_count) {
		fputs("# CPU        unknown\n", out);
		return;
	}
	fprintf(out, "# CPU        %.3f s", (double)f->value[FIGURE_CPU] / 1e9);
	if (f->value[FIGURE_SILENT_THREADS])
		fprintf(out, ", of which %.3f s by %" PRIu64 " thread%s without a sample",
			(double)f->value[FIGURE_SILENT_CPU] / 1e9, f->value[FIGURE_SILENT_THREADS],
			f->value[FIGURE_SILENT_THREADS] == 1 ? "" : "s");
	if (instead)
		fprintf(out, ", %s", utf8_sanitize(text, sizeof(text), instead));
	fputc('\n', out);
}

int report_header(const struct profile *p, FILE *out)
{
	const char *reason = profile__meta(p, META_CLOCK_REASON);
	char date[64], contents[CONTENTS_TEXT_SIZE];
	struct figures f;
	int err;

	figures__init(&f, p);
	format_date(p->start_realtime, date, sizeof(date));
	err = print_field(out, "inputs", profile__meta(p, META_INPUTS))
		?: print_field(out, "target", profile__meta(p, META_TARGET))
		?: print_field(out, "command", profile__meta(p, META_COMMAND))
		?: print_field(out, "host", profile__meta(p, META_HOSTNAME))
		?: print_field(out, "kernel", profile__meta(p, META_KERNEL_RELEASE));
	if (err)
		return err;
	if (!p->untimed)
		fprintf(out, "# started    %s, for %.3f s%s\n",
			export_has_realtime(p) ? date : "at an unknown time",
			(double)f.value[FIGURE_DURATION] / 1e9,
			p->cut_short ? " (cut short: the recording has no end)" : "");
	err = print_field(out, "times", profile__meta(p, META_UNTIMED));
	if (err)
		return err;
	print_samples(p, &f, out);
	fputc('\n', out);
	print_cpu(p, &f, out);
	print_losses(&f, out);
	print_times(&f, out);
	err = describe_filter(p, print_filter_line, out)
		      ?: print_field(out, "part of", profile__meta(p, META_PART_OF))
		      ?: print_field(out, "CPUs", profile__meta(p, META_CPU_CHANGES))
		      ?: print_field(out, "not read", profile__meta(p, META_NOT_READ));
	if (err)
		return err;
	err = print_field(out, "contents", describe_contents(contents, sizeof(contents), p))
		      ?: print_field(out, "no sources", profile__meta(p, META_SOURCES_MISSING))
		      ?: print_field(out, "no room", profile__meta(p, META_CODE_LEFT_OUT))
		      ?: print_field(out, "no JIT code", profile__meta(p, META_JIT_CODE_LEFT_OUT));
	if (err)
		return err;
	print_outside(p, out);
	print_stacks(&f, out);
	print_jits(p, out);
	print_runtimes(p, out);
	print_clock(p, out);
	return reason ? print_field(out, "", reason) : 0;
}
