/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/annotation_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "formats/out/annotation.h"
#include "formats/out/annotation_code.h"
#include "formats/out/describe.h"
#include "formats/out/report.h"
#include "formats/out/report_header.h"
#include "formats/out/report_paint.h"
#include "formats/out/report_rows.h"
#include "profile/profile.h"

#define NEAR	4  /* lines around those with code */
#define COLUMNS 29 /* of the figures */

struct writer {
	const struct annotation *a;
	const struct profile *p;
	const struct report_options *options;
	FILE *out;
};

/* ---- one line -------------------------------------------------------------------------------- */

static void print_figures(const struct writer *w, const struct annotation_counts *counts)
{
	if (!counts || !counts->total) {
		fprintf(w->out, "%*s", COLUMNS, "");
		return;
	}
	if (counts->self) {
		paint_share(w->out, w->options->color, share_of(counts->self, w->p->event_count));
		fprintf(w->out, " %10" PRIu64 " ", counts->self);
	} else {
		fprintf(w->out, "%*s", 19, "");
	}
	fputs("  ", w->out);
	paint_share(w->out, w->options->color, share_of(counts->total, w->p->event_count));
	fputc(' ', w->out);
}

static int print_name(const struct writer *w, const char *name)
{
	_cleanup_free_ char *text = printable_copy(name);

	if (!text)
		return -ENOMEM;
	fputs(text, w->out);
	return 0;
}

static void print_titles(const struct writer *w, const char *place, const char *what)
{
	paint_begin(w->out, w->options->color, PAINT_DIM);
	fprintf(w->out, "%7s %10s   %7s %8s  ", "self", profile__event(w->p), "total", place);
	print_name(w, what);
	paint_end(w->out, w->options->color, PAINT_DIM);
	fputc('\n', w->out);
}

/* ---- the head -------------------------------------------------------------------------------- */

static int print_copy_name(const struct writer *w, const struct annotation_copy *copy)
{
	const char *tier = code_tier_text(copy->tier);
	int err;

	if (!annotation_copy__is_own(w->a, copy))
		fputs("inlined in ", w->out);
	err = print_name(w, profile__string(w->p, w->p->functions[copy->function].name))
		      ?: (fputs("  ", w->out), print_name(w, dso_display_name(w->p, copy->dso)));
	if (w->p->dsos[copy->dso.v].kind != DSO_JIT)
		return err;
	if (copy->process.v)
		fprintf(w->out, ", pid %" PRIu32, w->p->processes[copy->process.v].pid);
	if (*tier)
		fprintf(w->out, ", %s", tier);
	if (copy->version)
		fprintf(w->out, ", version %" PRIu32, copy->version);
	if (copy->doubtful)
		fprintf(w->out, ", %" PRIu64 " in doubt: another function may have been there",
			copy->doubtful);
	return err;
}

static int print_head(const struct writer *w)
{
	const struct annotation_counts *counts = &w->a->counts;
	const uint64_t all = w->p->event_count;
	int err = 0;

	fprintf(w->out, "# function   %6.2f%% self (%" PRIu64 "), %.2f%% total (%" PRIu64 ")\n",
		100 * share_of(counts->self, all), counts->self, 100 * share_of(counts->total, all),
		counts->total);
	for (size_t i = 0; i < w->a->copies.count && !err; i++) {
		const struct annotation_copy *copy = &w->a->copies.data[i];

		fprintf(w->out, "# copy       %6.2f%% self (%" PRIu64 ")  ",
			100 * share_of(copy->counts.self, all), copy->counts.self);
		err = print_copy_name(w, copy);
		fputc('\n', w->out);
	}
	fprintf(w->out, "# certainty  %s\n", annotation_skid(w->p));
	return err;
}

/* ---- lines of source ------------------------------------------------------------------------- */

static int print_line(const struct writer *w, const struct source_lines *source, uint32_t line,
		      const struct annotation_line *row)
{
	_cleanup_free_ char *text = source_lines__text(source, line);
	char number[16] = "?";

	if (line)
		snprintf(number, sizeof(number), "%" PRIu32, line);
	print_figures(w, row ? &row->counts : NULL);
	paint_text(w->out, w->options->color, PAINT_DIM, "%8s", number);
	if (text) {
		if (w->options->width > COLUMNS + 10)
			shorten_text(text, w->options->width - COLUMNS - 10, false,
				     w->options->utf8);
		fprintf(w->out, "  %s", text);
	}
	fputc('\n', w->out);
	return 0;
}

/* The lines from `from` on before that of a row: all of them, or those near the rows around. */
static void print_between(const struct writer *w, const struct source_lines *source, uint32_t from,
			  uint32_t to)
{
	const bool is_first = from == 1;
	uint32_t tail;

	to = (uint32_t)min_u64(to, source->starts.count + 1);
	if (from >= to)
		return;
	tail = w->options->whole_source || to - from <= 2 * NEAR ? from : to - NEAR;
	for (uint32_t i = from; i < from + NEAR && tail > from && !is_first; i++)
		print_line(w, source, i, NULL);
	if (tail > from && !is_first)
		fprintf(w->out, "%*s\n", COLUMNS + 8, "...");
	for (uint32_t i = tail; i < to; i++)
		print_line(w, source, i, NULL);
}

static void print_source_state(const struct writer *w, const struct annotation_line *first,
			       const struct profile_source *source)
{
	if (!first->file.v)
		fputs("# source     lines of this code are unknown\n", w->out);
	else if (!source)
		fputs("# source     the recording does not have it\n", w->out);
	else if (source->state == SOURCE_CHANGED)
		paint_text(w->out, w->options->color, PAINT_HOT, "# source     %s\n",
			   source_state_text(source->state));
	else
		fprintf(w->out, "# source     %s\n", source_state_text(source->state));
}

/* The rows of one file. */
static int print_file(const struct writer *w, const struct annotation_line *rows, size_t count)
{
	const struct profile_source *source = rows->file.v
						      ? profile__source(w->p, rows->dso, rows->file)
						      : NULL;
	_cleanup_(source_lines__fini) struct source_lines lines;
	char name[SOURCE_NAME_SIZE];
	uint32_t next = 1;

	fputc('\n', w->out);
	if (source_lines__init(&lines, source))
		return -ENOMEM;
	print_source_state(w, rows, source);
	if (any_of(rows, count, row, row->is_beginning))
		fputs("# lines      inside functions are unknown: samples are at their beginnings\n",
		      w->out);
	print_titles(w, "line", source_name(w->p, rows->dso, rows->file, name));
	for (size_t i = 0; i < count; i++) {
		print_between(w, &lines, next, rows[i].line);
		print_line(w, &lines, rows[i].line, &rows[i]);
		next = rows[i].line + 1;
	}
	if (w->options->whole_source)
		print_between(w, &lines, next, UINT32_MAX);
	return 0;
}

static int print_files(const struct writer *w)
{
	const struct annotation_line *rows = w->a->lines.data;
	size_t count = w->a->lines.count, from = 0;
	int err = 0;

	for (size_t i = 1; i <= count && !err; i++) {
		if (i < count && rows[i].file.v == rows[from].file.v &&
		    rows[i].root == rows[from].root)
			continue;
		err = print_file(w, rows + from, i - from);
		from = i;
	}
	return err;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static int print_place(const struct writer *w, struct dso_id dso,
		       const struct profile_code_row *row, struct source_lines *source)
{
	const struct profile_source *wanted = profile__source(w->p, dso, row->file);
	_cleanup_free_ char *text = NULL;
	int err = 0;

	if (wanted != source->source) {
		source_lines__fini(source);
		err = source_lines__init(source, wanted);
	}
	text = err ? NULL : source_lines__text(source, row->line);
	fprintf(w->out, "%*s", COLUMNS, "");
	paint_begin(w->out, w->options->color, PAINT_DIM);
	if (row->line)
		fprintf(w->out, "%8" PRIu32 "%s%s", row->line, text ? "  " : "", text ?: "");
	else
		fprintf(w->out, "%8s", "?");
	if (row->function.v && !w->a->wanted[row->function.v]) {
		fputs("  — ", w->out);
		err = err
			      ?: print_name(w,
					    profile__string(w->p,
							    w->p->functions[row->function.v].name));
	}
	paint_end(w->out, w->options->color, PAINT_DIM);
	fputc('\n', w->out);
	return err;
}

static bool same_place(const struct profile_code_row *a, const struct profile_code_row *b)
{
	return a == b || (a && b && a->function.v == b->function.v && a->file.v == b->file.v &&
			  a->line == b->line);
}

static int print_code(const struct writer *w, const struct annotation_copy *copy)
{
	_cleanup_(annotation_code__fini) struct annotation_code code;
	_cleanup_(source_lines__fini) struct source_lines source = {};
	const struct profile_code_row *last = NULL;
	bool is_gap = false;
	int err;

	fprintf(w->out, "\n# code       ");
	err = print_copy_name(w, copy);
	fputc('\n', w->out);
	if (!err)
		err = annotation_code__init(&code, w->a, copy, w->options->syntax);
	else
		code = (struct annotation_code){};
	if (code.problem)
		fprintf(w->out, "# no instructions: %s\n", code.problem);
	else if (!err)
		print_titles(w, "address", disassembly_syntax_name(w->options->syntax));
	for (size_t i = 0; i < code.text.count && !err; i++) {
		const struct instruction *instruction = &code.text.data[i];
		const struct profile_code_row *row = code.rows[i];

		if (!annotation_code__is_shown(&code, i)) {
			is_gap = true;
			continue;
		}
		if (is_gap)
			fprintf(w->out, "%*s\n", COLUMNS + 8, "...");
		if (row && (is_gap || !same_place(row, last)))
			err = print_place(w, copy->dso, row, &source);
		is_gap = false;
		last = row;
		print_figures(w, &code.counts[i]);
		paint_text(w->out, w->options->color, PAINT_DIM, "%8" PRIx64,
			   code.address + instruction->offset);
		fprintf(w->out, "    %s\n", disassembly__text(&code.text, i));
	}
	return err;
}

int annotation_text(const struct annotation *a, const struct report_options *options, FILE *out)
{
	const struct writer w = {.a = a, .p = a->p, .options = options, .out = out};
	int err = report_header(a->p, out) ?: print_head(&w) ?: print_files(&w);

	for (size_t i = 0; i < a->copies.count && options->assembly && !err; i++)
		err = print_code(&w, &a->copies.data[i]);
	return err;
}
