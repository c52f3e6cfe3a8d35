/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof report: the top of a recording or a profile as text, without root. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/summary.h"
#include "export/report.h"
#include "session/session.h"

#define TOP_MAX 1000000

static const struct option long_options[] = {
	{"by", required_argument, NULL, 'b'},
	{"top", required_argument, NULL, 'n'},
	{"json", no_argument, NULL, 'j'},
	{NULL, 0, NULL, 0},
};

static int parse_option(struct report_options *options, unsigned int *top, int option, char **argv)
{
	uint64_t rows;

	switch (option) {
	case 'b':
		if (report_by_parse(optarg, &options->by))
			return usage_error(
				&cmd_report,
				"--by %s: expected function, thread, process, dso or line", optarg);
		return 0;
	case 'n':
		if (parse_u64(optarg, 1, TOP_MAX, &rows))
			return usage_error(&cmd_report, "--top %s: expected a number of rows",
					   optarg);
		*top = rows;
		return 0;
	case 'j':
		options->json = true;
		return 0;
	case ':':
		return usage_error(&cmd_report, "%s requires a value", argv[optind - 1]);
	}
	return usage_error(&cmd_report, "unknown option '%s'", argv[optind - 1]);
}

static int report_input(const char *path, const struct report_options *options, unsigned int top)
{
	struct export_request request = {.out = stdout, .top = top};
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
	input__close(&input);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_report(int argc, char **argv)
{
	struct report_options options = {.by = REPORT_FUNCTION};
	unsigned int top = 0;
	int option, status;

	optind = 1;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		status = parse_option(&options, &top, option, argv);
		if (status)
			return status;
	}
	if (argc - optind != 1)
		return usage_error(&cmd_report,
				   argc - optind ? "more than one input" : "no input given");
	return report_input(argv[optind], &options, top);
}

const struct command cmd_report = {
	.name = "report",
	.arguments = "IN [--by function|thread|process|dso|line] [--top N] [--json]",
	.summary = "print where the time went",
	.help = "  sysprof report x.sysprof\n"
		"  sysprof report x.sysprof --by thread --top 10\n"
		"  sysprof report CPU.1234.cpuprofile\n"
		"\n"
		"IN is a recording, or a profile in any format that `convert` reads.\n"
		"\n"
		"      --by WHAT   function (default), thread, process, dso or line\n"
		"      --top N     number of rows, default 40\n"
		"      --json      print JSON\n",
	.run = run_report,
};
