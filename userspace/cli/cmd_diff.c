/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof diff: two sets of profiles compared, for people and for pipelines. */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/order.h"
#include "cli/diffing.h"
#include "cli/inputs.h"
#include "cli/standard_input.h"

static const struct cli_option rows[] = {
	DIFFING_ROWS,
	INPUT_ROOT_ROW(offsetof(struct diffing, in.root)),
	{"old", .has_value = true, .take = diffing__take_span, .min = COMPARE_OLD,
	 .expected = "a span of time, as in '1 day ago+1h', '-1h' or '2026-11-26 10:00+30m'"},
	{"new", .has_value = true, .take = diffing__take_span, .min = COMPARE_NEW,
	 .expected = "a span of time, as in '-1h'"},
	{}};

/* Of files, --service is a filter; of a directory, which has one word, it names the service. */
static bool has_service(const struct profile_filter *filter)
{
	return any_of(filter->clauses, filter->count, clause, clause->kind == FILTER_SERVICE);
}

/* --service NAME --old SPAN --new SPAN DIR */
static int take_directory(struct diffing *arguments, int argc, char **argv, int dashes)
{
	if (inputs__service(&cmd_diff, &arguments->in.filter, &arguments->service))
		return EXIT_USAGE;
	if (!arguments->service)
		return usage_error(&cmd_diff, "--old and --new need --service");
	if (!arguments->span_count[COMPARE_OLD] || !arguments->span_count[COMPARE_NEW])
		return usage_error(&cmd_diff, "--service needs --old and --new");
	if (dashes != argc || argc - optind != 1)
		return usage_error(&cmd_diff,
				   "--service needs one directory: that of an agent's --sink dir:");
	arguments->files[COMPARE_OLD] = argv + optind;
	return 0;
}

/* OLD… before the first "--", NEW… behind it; two files alone need none. */
static int take_files(struct diffing *arguments, int argc, char **argv, int dashes)
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

static int parse_options(struct diffing *arguments, int argc, char **argv)
{
	int dashes = 1, status;

	while (dashes < argc && strcmp(argv[dashes], "--"))
		dashes++;
	status = options__parse(&cmd_diff, arguments, dashes, argv);
	if (!status && (arguments->span_count[COMPARE_OLD] || arguments->span_count[COMPARE_NEW] ||
			(has_service(&arguments->in.filter) && argc - optind == 1)))
		status = take_directory(arguments, argc, argv, dashes);
	else if (!status)
		status = take_files(arguments, argc, argv, dashes);
	if (!status)
		status = standard_input__check(&cmd_diff, argv + optind, (size_t)(argc - optind));
	return status ? status : diffing__check(arguments, &cmd_diff);
}

static int run_diff(int argc, char **argv)
{
	struct diffing arguments = DIFFING_DEFAULTS;
	int status = parse_options(&arguments, argc, argv);
	enum compare_answer answer;
	int err;

	if (!status) {
		err = diffing__run(&arguments, true, &answer);
		status = !err		? diffing__exit_code(&arguments, answer)
			 : err == -EDOM ? EXIT_CANNOT_TELL
					: EXIT_FAILED;
	}
	profile_filter__fini(&arguments.in.filter);
	return status;
}

const struct command cmd_diff = {
	.name = "diff",
	.arguments =
		"OLD… [-- NEW…] [--per N | --per-old N --per-new N] [--view VIEW]\n"
		"                    [--run-noise SHARE] [--fail-if RULE]… [FILTER…] [--top N] [--root WHAT] [--json | --markdown]\n"
		"                    [-o OUT]\n"
		"       sysprof diff --service NAME --old SPAN… --new SPAN… [FILTER…] DIR",
	.summary = "compare two profiles, or several of each, with statistics",
	.help = "  sysprof diff old.sysprof new.sysprof\n"
		"  sysprof diff old1.sysprof old2.sysprof old3.sysprof -- new1.sysprof new2.sysprof new3.sysprof\n"
		"  sysprof diff a.sysprof b.sysprof --per-old 12000 --per-new '13000 requests'\n"
		"  sysprof diff old*.sysprof --fail-if 'total > 2%' --fail-if 'function parse_* > 5%' -- new*.sysprof\n"
		"  sysprof diff x.sysprof@10s-20s x.sysprof@40s-50s\n"
		"  sysprof diff -o d.html old.sysprof new.sysprof\n"
		"  sysprof diff --service shop --old '1 day ago+1h' --new '-1h' /var/lib/profiles\n"
		"\n"
		"OLD and NEW are recordings, or profiles in any format that `convert` reads, or parts of their time\n"
		"(FILE@FROM-TO, FILE@FROM-, FILE@-LENGTH). Options come before --.\n"
		"With three files a side or more, the noise of runs is measured.\n"
		"\n"
		"      --per N          CPU time per unit of work: how much work each file has, as in '12000 requests'\n"
		"      --per-old N      the same for the files of OLD alone\n"
		"      --per-new N      the same for the files of NEW alone\n"
		"      --view VIEW      share (of the samples), second (CPU time per second), run (CPU time per file) or\n"
		"                       auto: run if each file is a whole COMMAND, else second, or share without times\n"
		"      --run-noise SHARE  how much one run differs from the next, with fewer than three files a side;\n"
		"                       default: by the files of the other side if three or more, else 10%\n"
		"      --fail-if RULE   'total > 2%' or 'function NAME > 5%'; NAME may have * and ?; of recordings with\n"
		"                       waits also 'waiting > 5%' or 'state lock > 10%'\n"
		"      --top N          number of rows, default: 20\n"
		"      --root WHAT      what the first field of folded stacks is: thread, process or frame\n"
		"      --json           print JSON (docs/diff.schema.json)\n"
		"      --markdown       print Markdown for a pull request, at most 20 lines with one rule\n"
		"  -o, --output FILE    write to a file: .json is JSON, .md is Markdown; or both sides as one profile, and print\n"
		"                       as well: .html is a page, .pb.gz pprof (as of -diff_base), .json.gz Firefox\n"
		"\n" INPUT_FILTER_HELP "\n"
		"Of a service, out of the directory DIR of an agent with the sink dir:DIR, or of what waits in its spool:\n"
		"      --service NAME   its name, as in the label service_name\n"
		"      --old SPAN       a span of time: '1 day ago+1h', '-1h', '2026-11-26 10:00+30m' (local time, with Z\n"
		"                       UTC); several are several files\n"
		"      --new SPAN       the same\n"
		"\n"
		"Exit status: 0 not worse by any rule, 3 worse by a rule, for certain, 4 cannot tell (also: weights\n"
		"instead of counts of samples).\n"
		"docs/DIFF.md explains the method.\n",
	.run = run_diff,
	.options = rows,
};
