/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/diffing.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output_file.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "cli/diffing_windows.h"
#include "cli/outputs.h"
#include "cli/summary.h"
#include "compare/output_json.h"
#include "compare/output_text.h"
#include "compare/rules.h"
#include "compare/tests.h"
#include "formats/out/exporters.h"

/* ---- options --------------------------------------------------------------------------------- */

/* "12000", or "12000 requests". The row's `min` has a bit for each side. */
int diffing__take_work(const struct given_option *o)
{
	struct diffing *arguments = o->fields;
	const char *blank = strchr(o->value, ' ');
	size_t size = blank ? (size_t)(blank - o->value) : strlen(o->value);
	char number[32];
	uint64_t work;

	if (size >= sizeof(number) || (blank && !blank[1]))
		return -EINVAL;
	memcpy(number, o->value, size);
	number[size] = '\0';
	if (parse_u64(number, 1, UINT64_C(1) << 53, &work))
		return -EINVAL;
	for (int i = 0; i < COMPARE_SIDES; i++)
		if (o->row->min & 1u << i)
			arguments->compare.work[i] = (double)work;
	if (blank)
		arguments->unit = blank + 1;
	return 0;
}

int diffing__take_view(const struct given_option *o)
{
	struct diffing *arguments = o->fields;

	for (int i = 0; i < COMPARE_VIEW_COUNT; i++)
		if (i != COMPARE_WORK &&
		    !strcmp(o->value, compare_view_name((enum compare_view)i))) {
			arguments->compare.view = (enum compare_view)i;
			return 0;
		}
	return -EINVAL;
}

int diffing__take_run_noise(const struct given_option *o)
{
	return parse_share(o->value, &((struct diffing *)o->fields)->compare.run_noise);
}

int diffing__take_rule(const struct given_option *o)
{
	struct diffing *arguments = o->fields;

	if (arguments->rule_count == DIFFING_RULES_MAX)
		return fail(o->failure, -E2BIG, "more than %d rules", DIFFING_RULES_MAX);
	return compare_rule__parse(&arguments->rules[arguments->rule_count++], o->value);
}

int diffing__take_output(const struct given_option *o)
{
	if (*option_field(o, const char *))
		return fail(o->failure, -EINVAL, "-o given twice: a comparison is one file");
	return option_text(o);
}

int diffing__check(const struct diffing *d, const struct command *command)
{
	const double *work = d->compare.work;

	if (!(work[COMPARE_OLD] > 0) != !(work[COMPARE_NEW] > 0))
		return usage_error(command, "--per-old and --per-new need each other");
	if (work[COMPARE_OLD] > 0 && d->compare.view != COMPARE_AUTO)
		return usage_error(command, "--per and --view exclude each other");
	return 0;
}

/* ---- work ------------------------------------------------------------------------------------ */

static int add_file(struct comparison *c, const struct diffing *arguments, enum compare_side side,
		    const char *name, struct failure *failure)
{
	struct input input = {};
	int err;

	if (arguments->stopped && *arguments->stopped)
		return fail(failure, -EINTR, "stopped; nothing was compared");
	err = input__open(name, &arguments->in, &input);
	if (err)
		return fail(failure, err, "cannot compare without %s", name);
	err = comparison__add(c, side, name, input.profile, failure);
	input__close(&input);
	return err;
}

/* One file at a time is in memory. */
static int add_files(struct comparison *c, const struct diffing *arguments, struct failure *failure)
{
	int err = 0;

	if (arguments->service)
		return diffing__add_windows(c, arguments, failure);
	for (int side = 0; side < COMPARE_SIDES; side++)
		for (size_t i = 0; i < arguments->file_count[side] && !err; i++)
			err = add_file(c, arguments, (enum compare_side)side,
				       arguments->files[side][i], failure);
	return err;
}

/* ---- as a profile of both sides: a page, pprof, Firefox -------------------------------------- */

/* By the suffix of OUT; NULL: OUT is a report, or there is none. */
static const struct exporter *profile_format(const char *path)
{
	static const char *const formats[] = {"html", "pprof", "firefox"};
	static const char *const suffixes[] = {".html", ".pb.gz", ".json.gz"};

	for (size_t i = 0; path && i < sizeof(formats) / sizeof(*formats); i++)
		if (has_suffix(path, suffixes[i]))
			return exporter_by_name(formats[i]);
	return NULL;
}

/* In ns of OLD's CPU time per file, or in billionths of OLD if that is unknown. */
static void set_values(struct export_difference *difference, const struct compare_output *output,
		       double *values)
{
	const struct compare_side_sum *old = &output->result->side[COMPARE_OLD];
	double whole = output->result->tests[0].side[COMPARE_OLD].value;
	double size = old->cpu_ns ? (double)old->cpu_ns / (double)old->files : 1e9;

	difference->type = old->cpu_ns ? "cpu" : "share";
	difference->unit = old->cpu_ns ? "nanoseconds" : "ppb";
	difference->tick_value = values;
	for (size_t i = 0; i < comparison__file_count(output->comparison); i++)
		values[i + 1] = comparison__tick_value(output->comparison, i) * size / whole;
}

static int write_both(const struct exporter *exporter, const struct compare_output *output,
		      const char *facts, const char *path, FILE *out)
{
	struct profile_builder *b = profile_builder__new();
	double values[COMPARE_FILES_MAX + 1] = {};
	struct export_difference difference = {.facts = facts};
	struct export_request request = {.difference = &difference};
	uint64_t size;
	bool waits = exporter == exporter_by_name("html");
	int err = b ? comparison__build_profile(output->comparison, waits, b) : -ENOMEM;

	if (!err)
		err = profile_builder__finish(b, &request.profile, NULL, 0);
	if (!err) {
		set_values(&difference, output, values);
		err = outputs__write_format(exporter, request,
					    outputs__are_compressed(exporter, path), out, &size);
	}
	profile_builder__free(b);
	return err;
}

static int write_profile(const struct exporter *exporter, const struct compare_output *output,
			 const char *path, FILE *out)
{
	_cleanup_free_ char *facts = NULL;
	size_t size = 0;
	FILE *text = open_memstream(&facts, &size);
	int err = text ? compare_write_json(output, text) : -ENOMEM;

	if (text && fclose(text))
		err = err ? err : -ENOMEM;
	return err ? err : write_both(exporter, output, facts, path, out);
}

/* ---- the comparison, written ----------------------------------------------------------------- */

/* `path`: of the report; "": none. */
static int write_report(FILE *out, const struct diffing *arguments, const char *path,
			const struct compare_output *output)
{
	if (arguments->format == DIFF_JSON || has_suffix(path, ".json"))
		return compare_write_json(output, out);
	if (arguments->format == DIFF_MARKDOWN || has_suffix(path, ".md"))
		return compare_write_markdown(output, out);
	return compare_write_text(output, out);
}

static int write_file(const struct diffing *arguments, const struct exporter *format,
		      const struct compare_output *output)
{
	struct output_file *file;
	int err = output_file__open(arguments->output, &file);
	FILE *out;

	if (err)
		return err;
	out = output_file__stream(file);
	err = format ? write_profile(format, output, arguments->output, out)
		     : write_report(out, arguments, arguments->output, output);
	if (err) {
		output_file__abort(file);
		return err;
	}
	return output_file__commit(file);
}

/* If OUT is a profile, the report is printed as well. */
static int write_output(const struct diffing *arguments, const struct compare_output *output,
			struct failure *failure)
{
	const struct exporter *format = profile_format(arguments->output);
	int err = arguments->output ? write_file(arguments, format, output) : 0;

	if (err)
		return fail(failure, err, "cannot write %s: %s", arguments->output, strerror(-err));
	if (arguments->output && !format)
		return 0;
	return print_ended(write_report(stdout, arguments, "", output));
}

static enum compare_answer worst_of(const struct compare_ruling *rulings, size_t count)
{
	enum compare_answer worst = COMPARE_NOT_WORSE;

	for (size_t i = 0; i < count; i++)
		if (rulings[i].answer > worst)
			worst = rulings[i].answer;
	return worst;
}

static int finish(struct comparison *c, const struct diffing *arguments, bool last,
		  enum compare_answer *answer, struct failure *failure)
{
	struct compare_ruling rulings[DIFFING_RULES_MAX];
	const struct compare_result *result;
	int err = comparison__finish(c, &arguments->compare, &result, failure);
	struct compare_output output = {.comparison = c,
					.rules = arguments->rules,
					.rulings = rulings,
					.rule_count = arguments->rule_count,
					.top = arguments->top,
					.unit = arguments->unit};

	if (err)
		return err;
	output.result = result;
	for (size_t i = 0; i < arguments->rule_count; i++)
		rulings[i] = compare_rule__apply(&arguments->rules[i], c, result);
	*answer = worst_of(rulings, arguments->rule_count);
	if (!arguments->rule_count)
		*answer = result->tests[0].found || result->row_count ? COMPARE_WORSE
								      : COMPARE_CANNOT_TELL;
	return last || *answer != COMPARE_CANNOT_TELL ? write_output(arguments, &output, failure)
						      : 0;
}

int diffing__run(const struct diffing *d, bool last, enum compare_answer *answer)
{
	struct failure failure = {};
	struct comparison *c = comparison__new();
	int err = c ? add_files(c, d, &failure)
		    : fail(&failure, -ENOMEM, "cannot compare: out of memory");

	if (!err)
		err = finish(c, d, last, answer, &failure);
	if (err && *failure.what)
		print_failure(&failure);
	comparison__free(c);
	return err;
}

int diffing__exit_code(const struct diffing *d, enum compare_answer answer)
{
	static const int codes[] = {[COMPARE_NOT_WORSE] = EXIT_DONE,
				    [COMPARE_CANNOT_TELL] = EXIT_CANNOT_TELL,
				    [COMPARE_WORSE] = EXIT_WORSE};

	return d->rule_count ? codes[answer] : EXIT_DONE;
}
