/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof diff: two sets of profiles compared, for people and for pipelines. */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/output_file.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/summary.h"
#include "compare/compare.h"

#define RULES_MAX   64
#define TOP_DEFAULT 20
#define TOP_MAX	    1000000

enum diff_format { DIFF_TEXT, DIFF_JSON, DIFF_MARKDOWN };

struct arguments {
	struct compare_options compare;
	struct compare_rule rules[RULES_MAX];
	size_t rule_count;
	unsigned int format, top;
	const char *output, *unit;
	char **files[COMPARE_SIDES];
	size_t file_count[COMPARE_SIDES];
};

/* ---- options --------------------------------------------------------------------------------- */

/* "12000", or "12000 requests". */
static int take_work(const struct given_option *o, unsigned int sides)
{
	struct arguments *arguments = o->fields;
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
		if (sides & 1u << i)
			arguments->compare.work[i] = (double)work;
	if (blank)
		arguments->unit = blank + 1;
	return 0;
}

static int take_per(const struct given_option *o)
{
	return take_work(o, 3);
}

static int take_per_old(const struct given_option *o)
{
	return take_work(o, 1u << COMPARE_OLD);
}

static int take_per_new(const struct given_option *o)
{
	return take_work(o, 1u << COMPARE_NEW);
}

static int take_view(const struct given_option *o)
{
	struct arguments *arguments = o->fields;

	for (int i = 0; i < COMPARE_VIEW_COUNT; i++)
		if (i != COMPARE_WORK &&
		    !strcmp(o->value, compare_view_name((enum compare_view)i))) {
			arguments->compare.view = (enum compare_view)i;
			return 0;
		}
	return -EINVAL;
}

static int take_run_noise(const struct given_option *o)
{
	return parse_share(o->value, &((struct arguments *)o->fields)->compare.run_noise);
}

static int take_rule(const struct given_option *o)
{
	struct arguments *arguments = o->fields;

	if (arguments->rule_count == RULES_MAX)
		return fail(o->failure, -E2BIG, "more than %d rules", RULES_MAX);
	return compare_rule__parse(&arguments->rules[arguments->rule_count++], o->value);
}

static const struct cli_option rows[] = {
	{"view", .has_value = true, .take = take_view, .expected = "auto, share, second or run"},
	{"per", .has_value = true, .take = take_per,
	 .expected = "a number of units of work, as in 12000 or '12000 requests'"},
	{"per-old", .has_value = true, .take = take_per_old,
	 .expected = "a number of units of work"},
	{"per-new", .has_value = true, .take = take_per_new,
	 .expected = "a number of units of work"},
	{"run-noise", .has_value = true, .take = take_run_noise,
	 .expected = "a share, as in 3% or 0.03"},
	{"fail-if", .has_value = true, .take = take_rule,
	 .expected = "a rule, as in 'total > 2%' or 'function parse_* > 5%'"},
	{"top", .has_value = true, .take = option_number, .field = offsetof(struct arguments, top),
	 .min = 1, .max = TOP_MAX, .expected = "a number of rows"},
	{"json", .take = option_choose, .field = offsetof(struct arguments, format),
	 .min = DIFF_JSON},
	{"markdown", .take = option_choose, .field = offsetof(struct arguments, format),
	 .min = DIFF_MARKDOWN},
	{"output", 'o', .has_value = true, .take = option_text,
	 .field = offsetof(struct arguments, output)},
	{},
};

/* OLD… before the first "--", NEW… behind it; two files alone need none. */
static int take_files(struct arguments *arguments, int argc, char **argv, int dashes)
{
	size_t before = (size_t)(dashes - optind);

	arguments->files[COMPARE_OLD] = argv + optind;
	if (dashes == argc) {
		if (before != 2)
			return usage_error(&cmd_diff,
					   before < 2 ? "two profiles are needed: OLD NEW"
						      : "more than two profiles: separate those of "
							"NEW by --, as in a1 a2 -- b1 b2");
		arguments->files[COMPARE_NEW] = argv + optind + 1;
		arguments->file_count[COMPARE_OLD] = arguments->file_count[COMPARE_NEW] = 1;
		return 0;
	}
	arguments->files[COMPARE_NEW] = argv + dashes + 1;
	arguments->file_count[COMPARE_OLD] = before;
	arguments->file_count[COMPARE_NEW] = (size_t)(argc - dashes - 1);
	if (!before || !arguments->file_count[COMPARE_NEW])
		return usage_error(&cmd_diff, "no profile %s --", before ? "after" : "before");
	return 0;
}

static int parse_options(struct arguments *arguments, int argc, char **argv)
{
	int dashes = 1, status;

	while (dashes < argc && strcmp(argv[dashes], "--"))
		dashes++;
	status = options__parse(&cmd_diff, arguments, dashes, argv);
	if (!status)
		status = take_files(arguments, argc, argv, dashes);
	if (status)
		return status;
	if (!(arguments->compare.work[COMPARE_OLD] > 0) !=
	    !(arguments->compare.work[COMPARE_NEW] > 0))
		return usage_error(&cmd_diff, "--per-old and --per-new need each other");
	if (arguments->compare.work[COMPARE_OLD] > 0 && arguments->compare.view != COMPARE_AUTO)
		return usage_error(&cmd_diff, "--per and --view exclude each other");
	return 0;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* "10s" or "10"; 0 is one as well. */
static int parse_time(const char *text, size_t size, uint64_t *ns)
{
	char copy[32];

	if (size && text[size - 1] == 's')
		size--;
	if (!size || size >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	*ns = 0;
	return strspn(copy, "0.") == size ? 0 : parse_seconds(copy, ns);
}

/*
 * "FILE@10s-20s", "FILE@10s-": a part of its time, unless a file has that very name. Cuts it off the path. False: all of
 * the file.
 */
static bool take_range(char *path, struct compare_range *range)
{
	char *at = strrchr(path, '@'), *dash = at ? strchr(at, '-') : NULL;

	*range = (struct compare_range){};
	if (!dash || !access(path, F_OK) ||
	    parse_time(at + 1, (size_t)(dash - at - 1), &range->from) ||
	    (dash[1] && parse_time(dash + 1, strlen(dash + 1), &range->until)) ||
	    (dash[1] && range->until <= range->from))
		return false;
	*at = '\0';
	return true;
}

static int add_file(struct comparison *c, enum compare_side side, const char *name,
		    struct failure *failure)
{
	const struct replay_options replay = {.symbols = {.cache = true}};
	_cleanup_free_ char *path = strdup(name);
	struct compare_range range;
	struct input input = {};
	bool is_part;
	int err;

	if (!path)
		return fail(failure, -ENOMEM, "cannot compare: out of memory");
	is_part = take_range(path, &range);
	err = input__open(path, &replay, &input);
	if (err)
		return fail(failure, err, "cannot compare without %s", name);
	err = comparison__add(c, side, name, input.profile, is_part ? &range : NULL, failure);
	input__close(&input);
	return err;
}

/* One file at a time is in memory. */
static int add_files(struct comparison *c, const struct arguments *arguments,
		     struct failure *failure)
{
	int err = 0;

	for (int side = 0; side < COMPARE_SIDES; side++)
		for (size_t i = 0; i < arguments->file_count[side] && !err; i++)
			err = add_file(c, (enum compare_side)side, arguments->files[side][i],
				       failure);
	return err;
}

static int write_to(FILE *out, const struct arguments *arguments,
		    const struct compare_output *output)
{
	const char *path = arguments->output ? arguments->output : "";

	if (arguments->format == DIFF_JSON || has_suffix(path, ".json"))
		return compare_write_json(output, out);
	if (arguments->format == DIFF_MARKDOWN || has_suffix(path, ".md"))
		return compare_write_markdown(output, out);
	return compare_write_text(output, out);
}

static int write_output(const struct arguments *arguments, const struct compare_output *output)
{
	struct output_file *file;
	int err;

	if (!arguments->output) {
		err = write_to(stdout, arguments, output);
		return !err && (fflush(stdout) || ferror(stdout)) ? -EIO : err;
	}
	err = output_file__open(arguments->output, &file);
	if (err)
		return err;
	err = write_to(output_file__stream(file), arguments, output);
	if (err) {
		output_file__abort(file);
		return err;
	}
	return output_file__commit(file);
}

static int exit_code(const struct compare_ruling *rulings, size_t count)
{
	static const int codes[] = {[COMPARE_NOT_WORSE] = EXIT_DONE,
				    [COMPARE_CANNOT_TELL] = EXIT_CANNOT_TELL,
				    [COMPARE_WORSE] = EXIT_WORSE};
	enum compare_answer worst = COMPARE_NOT_WORSE;

	for (size_t i = 0; i < count; i++)
		if (rulings[i].answer > worst)
			worst = rulings[i].answer;
	return codes[worst];
}

static int finish(struct comparison *c, const struct arguments *arguments, int *status,
		  struct failure *failure)
{
	struct compare_ruling rulings[RULES_MAX];
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
	err = write_output(arguments, &output);
	if (err)
		return fail(failure, err, "cannot write %s: %s",
			    arguments->output ? arguments->output : "the comparison",
			    strerror(-err));
	*status = exit_code(rulings, arguments->rule_count);
	return 0;
}

static int run_diff(int argc, char **argv)
{
	struct arguments arguments = {.compare = {.run_noise = -1}, .top = TOP_DEFAULT};
	int status = parse_options(&arguments, argc, argv), err;
	struct failure failure = {};
	struct comparison *c;

	if (status)
		return status;
	c = comparison__new();
	err = c ? add_files(c, &arguments, &failure)
		: fail(&failure, -ENOMEM, "cannot compare: out of memory");
	if (!err)
		err = finish(c, &arguments, &status, &failure);
	if (err)
		print_failure(&failure);
	comparison__free(c);
	return err ? EXIT_FAILED : status;
}

const struct command cmd_diff = {
	.name = "diff",
	.arguments =
		"OLD… [-- NEW…] [--per N | --per-old N --per-new N] [--view VIEW]\n"
		"                    [--run-noise SHARE] [--fail-if RULE]… [--top N] [--json | --markdown]\n"
		"                    [-o OUT]",
	.summary = "compare two profiles, or several of each, with statistics",
	.help = "  sysprof diff old.sysprof new.sysprof\n"
		"  sysprof diff old1.sysprof old2.sysprof old3.sysprof -- new1.sysprof new2.sysprof new3.sysprof\n"
		"  sysprof diff a.sysprof b.sysprof --per-old 12000 --per-new '13000 requests'\n"
		"  sysprof diff old*.sysprof --fail-if 'total > 2%' --fail-if 'function parse_* > 5%' -- new*.sysprof\n"
		"  sysprof diff x.sysprof@10s-20s x.sysprof@40s-50s\n"
		"\n"
		"OLD and NEW are recordings, or profiles in any format that `convert` reads, or parts of their time\n"
		"(FILE@FROM-TO, FILE@FROM-). Options come before --.\n"
		"With three files a side or more, the noise of runs is measured.\n"
		"\n"
		"      --per N          CPU time per unit of work: how much work each file has, as in '12000 requests'\n"
		"      --per-old N      the same for the files of OLD alone\n"
		"      --per-new N      the same for the files of NEW alone\n"
		"      --view VIEW      share (of the samples), second (CPU time per second), run (CPU time per file) or\n"
		"                       auto: run if each file is a whole COMMAND, else second, or share without times\n"
		"      --run-noise SHARE  how much one run differs from the next, with fewer than three files a side;\n"
		"                       default: 10%\n"
		"      --fail-if RULE   'total > 2%' or 'function NAME > 5%'; NAME may have * and ?\n"
		"      --top N          number of rows, default: 20\n"
		"      --json           print JSON (docs/diff.schema.json)\n"
		"      --markdown       print Markdown for a pull request, at most 20 lines with one rule\n"
		"  -o, --output FILE    write to a file: .json is JSON, .md is Markdown\n"
		"\n"
		"Exit status: 0 not worse by any rule, 3 worse by a rule, for certain, 4 cannot tell.\n"
		"docs/DIFF.md explains the method.\n",
	.run = run_diff,
	.options = rows,
};
