/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/output_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/minmax.h"
#include "base/utf8.h"
#include "compare/output_private.h"
#include "compare/sentences.h"

static const char *unit_of(const struct compare_output *o)
{
	if (o->result->is_waiting && o->result->view != COMPARE_SHARE)
		return o->result->view == COMPARE_SECOND
			       ? "OLD and NEW are shares of one thread's time"
		       : o->result->view == COMPARE_RUN
			       ? "OLD and NEW are waiting time per run"
			       : "OLD and NEW are waiting time per unit of work";
	switch (o->result->view) {
	case COMPARE_SECOND:
		return "OLD and NEW are shares of one CPU";
	case COMPARE_RUN:
		return "OLD and NEW are CPU time per run";
	case COMPARE_WORK:
		return "OLD and NEW are CPU time per unit of work";
	default:
		return "OLD and NEW are shares of OLD's samples; NEW is scaled so that the code "
		       "that looks unchanged is as large as in OLD";
	}
}

/* Differences between the sides other than samples. */
static void write_warnings(const struct compare_output *o, const char *before, FILE *out)
{
	const struct comparison *c = o->comparison;
	const struct compare_file *first = comparison__file(c, 0);
	bool kernels = false;

	for (size_t i = 0; i < comparison__file_count(c); i++) {
		const struct compare_file *f = comparison__file(c, i);

		kernels |= strcmp(f->kernel, first->kernel) && *f->kernel && *first->kernel;
		if (f->cut_short)
			fprintf(out, "%snote: file %zu has no end: its recording was cut short\n",
				before, i + 1);
	}
	if (kernels)
		fprintf(out, "%snote: the kernels differ, so functions of the kernel may\n",
			before);
}

/* What filters kept of a side, by the clauses of its first file: those of others differ in slices. */
static void write_filter(const struct compare_output *o, enum compare_side side, const char *before,
			 FILE *out)
{
	uint64_t kept = 0, all = 0, cpu = 0, all_cpu = 0;
	const char *first = NULL;
	char text[SENTENCE_SIZE];

	for (size_t i = 0; i < comparison__file_count(o->comparison); i++) {
		const struct compare_file *f = comparison__file(o->comparison, i);

		if (f->side != side)
			continue;
		first = first ?: f->filter;
		kept += f->samples;
		all += f->samples + f->dropped_samples;
		cpu += f->cpu_ns;
		all_cpu += f->cpu_ns + f->dropped_cpu_ns;
	}
	if (first)
		fprintf(out,
			"%sfilter of %s: %" PRIu64 " of %" PRIu64
			" samples, %.9f s of %.9f s of CPU time: %s\n",
			before, side == COMPARE_OLD ? "OLD" : "NEW", kept, all, (double)cpu / 1e9,
			(double)all_cpu / 1e9, utf8_sanitize(text, sizeof(text), first));
}

static void write_head(const struct compare_output *o, const char *before, FILE *out)
{
	char text[SENTENCE_SIZE];

	for (int i = 0; i < COMPARE_SIDES; i++) {
		compare_side_sentence(o, (enum compare_side)i, text);
		fprintf(out, "%s%s: %s\n", before, i == COMPARE_OLD ? "OLD" : "NEW", text);
	}
	if (compare_elapsed_sentence(o, text))
		fprintf(out, "%selapsed: %s\n", before, text);
	for (int side = 0; side < COMPARE_SIDES; side++)
		write_filter(o, (enum compare_side)side, before, out);
	compare_noise_sentence(o, text);
	fprintf(out, "%snoise of runs: %s\n", before, text);
	compare_detectable_sentence(o, text);
	fprintf(out, "%ssmallest change that would have been found in 9 of 10 cases: %s\n", before,
		text);
	write_warnings(o, before, out);
	if (o->result->waiting_missing)
		fprintf(out, "%snote: waiting time is not compared: %s\n", before,
			o->result->waiting_missing);
}

static void write_rulings(const struct compare_output *o, const char *before, FILE *out)
{
	char text[SENTENCE_SIZE];

	for (size_t i = 0; i < o->rule_count; i++) {
		compare_ruling_sentence(o, i, text);
		fprintf(out, "%srule %s\n", before, text);
	}
}

/* ---- text ------------------------------------------------------------------------------------ */

struct row_texts {
	char old[VALUE_SIZE], new[VALUE_SIZE], change[3 * VALUE_SIZE], q[VALUE_SIZE];
	char path[4 * NAME_SIZE];
};

static void fill_texts(struct row_texts *texts, const struct compare_output *o,
		       const struct compare_row *row)
{
	const struct compare_test *t = &o->result->tests[row->test];

	compare_value(o, t->side[COMPARE_OLD].value, texts->old);
	compare_value(o, t->side[COMPARE_NEW].value, texts->new);
	compare_change(o, t, texts->change);
	compare_q(t->q, texts->q);
	compare_path(o, row, texts->path);
}

static void write_row(const struct compare_output *o, const struct compare_row *row, FILE *out)
{
	const struct compare_test *t = &o->result->tests[row->test];
	char name[NAME_SIZE];
	struct row_texts s;

	fill_texts(&s, o, row);
	compare_name(o, t->function, t->is_self, name);
	fprintf(out, "%11s  %11s  %-27s  %6s  %-7s  %s\n", s.old, s.new, s.change, s.q,
		compare_verdict_name(row->verdict), name);
	fprintf(out, "%*sin %s\n", 72, "", s.path);
}

static void write_rows(const struct compare_output *o, FILE *out)
{
	size_t shown = min_u64(o->result->row_count, o->top);
	char difference[40];

	snprintf(difference, sizeof(difference), "DIFFERENCE (%.3g %% interval)",
		 100 * (1 - o->result->level));
	if (shown) {
		fprintf(out, "# %s\n", unit_of(o));
		fprintf(out, "\n%11s  %11s  %-27s  %6s  %-7s  %s\n", "OLD", "NEW", difference, "q",
			"VERDICT", "FUNCTION");
	}
	for (size_t i = 0; i < shown; i++)
		write_row(o, &o->result->rows[i], out);
	if (shown < o->result->row_count)
		fprintf(out, "%11s  %zu more rows: --top\n", "", o->result->row_count - shown);
}

static void write_waiting(const struct compare_output *o, FILE *out)
{
	char text[SENTENCE_SIZE];

	compare_sentence(o, text);
	fprintf(out, "\n%s\n\n", text);
	compare_noise_sentence(o, text);
	fprintf(out, "# noise of runs: %s\n", text);
	compare_detectable_sentence(o, text);
	fprintf(out, "# smallest change that would have been found in 9 of 10 cases: %s\n", text);
	write_rows(o, out);
}

int compare_write_text(const struct compare_output *o, FILE *out)
{
	const struct compare_output waiting = compare_output_of_waiting(o);
	char text[SENTENCE_SIZE];

	compare_sentence(o, text);
	fprintf(out, "%s\n", text);
	write_rulings(o, "", out);
	fputc('\n', out);
	write_head(o, "# ", out);
	write_rows(o, out);
	if (waiting.result)
		write_waiting(&waiting, out);
	return ferror(out) ? -EIO : 0;
}

/* ---- Markdown -------------------------------------------------------------------------------- */

#define MARKDOWN_ROWS 7 /* so that all has 20 lines */
#define WAITING_ROWS  2 /* at most of these, if functions leave room */

/* For a cell: no bars, no ends of code. Names have no line ends. */
static void write_cell(const char *text, FILE *out)
{
	fputc('`', out);
	for (; *text; text++)
		fputc(*text == '`' ? '\'' : *text == '|' ? '/' : *text, out);
	fputc('`', out);
}

static void write_markdown_row(const struct compare_output *o, const struct compare_row *row,
			       FILE *out)
{
	const struct compare_test *t = &o->result->tests[row->test];
	struct row_texts s;

	fill_texts(&s, o, row);
	fprintf(out, "| %s | %s | %s | %s | %s%s | ", s.old, s.new, s.change, s.q,
		compare_verdict_name(row->verdict), t->is_self ? " (own code)" : "");
	write_cell(s.path, out);
	fputs(" |\n", out);
}

int compare_write_markdown(const struct compare_output *o, FILE *out)
{
	const struct compare_output waiting = compare_output_of_waiting(o);
	size_t waits = waiting.result ? min_u64(waiting.result->row_count, WAITING_ROWS) : 0;
	size_t shown = min_u64(o->result->row_count, min_u64(o->top, MARKDOWN_ROWS - waits));
	char text[SENTENCE_SIZE];

	compare_sentence(o, text);
	fprintf(out, "**%s**\n", text);
	if (o->rule_count || waiting.result)
		fputc('\n', out);
	write_rulings(o, "- ", out);
	if (waiting.result) {
		compare_sentence(&waiting, text);
		fprintf(out, "- %s\n", text);
	}
	if (shown + waits)
		fprintf(out,
			"\n| OLD | NEW | difference (%.3g %%) | q | verdict | where |\n"
			"|--:|--:|:--|--:|:--|:--|\n",
			100 * (1 - o->result->level));
	for (size_t i = 0; i < shown; i++)
		write_markdown_row(o, &o->result->rows[i], out);
	for (size_t i = 0; i < waits; i++)
		write_markdown_row(&waiting, &waiting.result->rows[i], out);
	fputc('\n', out);
	write_head(o, "- ", out);
	return ferror(out) ? -EIO : 0;
}
