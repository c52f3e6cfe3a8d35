/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof report: the top of a recording or a profile as text, without root. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/recording_notes.h"
#include "cli/summary.h"
#include "cli/terminal.h"
#include "export/report.h"
#include "session/session.h"

#define TOP_MAX 1000000

static const struct option long_options[] = {
	{"by", required_argument, NULL, 'b'},
	{"tree", no_argument, NULL, 't'},
	{"callers", no_argument, NULL, 'c'},
	{"min", required_argument, NULL, 'm'},
	{"top", required_argument, NULL, 'n'},
	{"json", no_argument, NULL, 'j'},
	{NULL, 0, NULL, 0},
};

struct arguments {
	struct report_options report;
	bool tree, callers, min_given;
	unsigned int top;
};

static int parse_option(struct arguments *arguments, int option, char **argv)
{
	uint64_t rows;

	switch (option) {
	case 'b':
		if (report_by_parse(optarg, &arguments->report.by))
			return usage_error(
				&cmd_report,
				"--by %s: expected function, thread, process, dso or line", optarg);
		return 0;
	case 't':
		arguments->tree = true;
		return 0;
	case 'c':
		arguments->callers = true;
		return 0;
	case 'm':
		if (parse_share(optarg, &arguments->report.min_share))
			return usage_error(&cmd_report,
					   "--min %s: expected a share, as in 0.5%% or 0.005",
					   optarg);
		arguments->min_given = true;
		return 0;
	case 'n':
		if (parse_u64(optarg, 1, TOP_MAX, &rows))
			return usage_error(&cmd_report, "--top %s: expected a number of rows",
					   optarg);
		arguments->top = rows;
		return 0;
	case 'j':
		arguments->report.json = true;
		return 0;
	case ':':
		return usage_error(&cmd_report, "%s requires a value", argv[optind - 1]);
	}
	return usage_error(&cmd_report, "unknown option '%s'", argv[optind - 1]);
}

static int parse_options(struct arguments *arguments, int argc, char **argv)
{
	struct terminal terminal;
	int option, status;

	optind = 1;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		status = parse_option(arguments, option, argv);
		if (status)
			return status;
	}
	if (argc - optind != 1)
		return usage_error(&cmd_report,
				   argc - optind ? "more than one input" : "no input given");
	if (arguments->callers && !arguments->tree)
		return usage_error(&cmd_report, "--callers needs --tree");
	if (arguments->tree)
		arguments->report.shape = arguments->callers ? REPORT_CALLERS : REPORT_TREE;
	if (arguments->tree && !arguments->min_given)
		arguments->report.min_share = REPORT_TREE_MIN;
	terminal__init(&terminal);
	arguments->report.color = terminal.color;
	arguments->report.utf8 = terminal.utf8;
	arguments->report.width = terminal.width;
	return 0;
}

static int report_input(const char *path, const struct report_options *options, unsigned int top)
{
	struct export_left_out left_out = {};
	struct export_request request = {.out = stdout, .top = top, .left_out = &left_out};
	const struct replay_options replay = {.symbols = {.cache = true}};
	struct input input = {};
	int err = input__open(path, &replay, &input);

	if (err)
		return EXIT_FAILED;
	request.profile = input.profile;
	err = report_write(&request, options);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = errno ? -errno : -EIO;
	if (err)
		log_print(LOG_ERROR, "cannot write the report: %s", strerror(-err));
	else
		print_left_out(path, &left_out);
	input__close(&input);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_report(int argc, char **argv)
{
	struct arguments arguments = {.report = {.by = REPORT_FUNCTION}};
	int status = parse_options(&arguments, argc, argv);

	return status ? status : report_input(argv[optind], &arguments.report, arguments.top);
}

const struct command cmd_report = {
	.name = "report",
	.arguments =
		"IN [--by function|thread|process|dso|line] [--tree [--callers]] [--min SHARE]\n"
		"                      [--top N] [--json]",
	.summary = "print where CPU time was spent",
	.help = "  sysprof report x.sysprof\n"
		"  sysprof report x.sysprof --by thread --top 10\n"
		"  sysprof report x.sysprof --tree --min 2%\n"
		"  sysprof report x.sysprof --tree --callers\n"
		"  sysprof report CPU.1234.cpuprofile\n"
		"\n"
		"IN is a recording, or a profile in any format that `convert` reads.\n"
		"\n"
		"      --by WHAT    function (default), thread, process, dso or line\n"
		"      --tree       a call tree, from the roots down; by thread or process: one each\n"
		"      --callers    with --tree: the functions with most samples, and their callers\n"
		"      --min SHARE  leave out smaller shares, as in 0.5% or 0.005; default of a tree: 0.5%\n"
		"      --top N      number of rows, default of a table: 40\n"
		"      --json       print JSON (docs/report.schema.json)\n"
		"\n"
		"The range, or +/-, is a 95 % confidence interval of the share. On a terminal, names of kernel\n"
		"functions, libraries and JIT code have colours (NO_COLOR=1: none).\n",
	.run = run_report,
	.options = long_options,
};
