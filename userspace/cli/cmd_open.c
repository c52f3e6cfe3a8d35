/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof open: a profile in the browser, served to this machine alone. */
#include <getopt.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/serving.h"
#include "cli/summary.h"

struct open_options {
	struct serving_options serving;
	struct input_options in;
	char *const *inputs;
	size_t input_count;
};

static const struct cli_option rows[] = {
	{"port", .has_value = true, .take = option_number,
	 .field = offsetof(struct open_options, serving.port), .min = 1, .max = UINT16_MAX,
	 .expected = "a number from 1 to 65535"},
	{"no-browser", .take = option_clear,
	 .field = offsetof(struct open_options, serving.browser)},
	{"java-signatures", .take = option_set,
	 .field = offsetof(struct open_options, in.replay.full_names)},
	INPUT_ROOT_ROW(offsetof(struct open_options, in.root)),
	INPUT_SPAN_ROW(offsetof(struct open_options, in)),
	INPUT_FILTER_ROWS(offsetof(struct open_options, in)),
	{},
};

static int open_input(struct open_options *options)
{
	_cleanup_free_ char *what = inputs__name(options->inputs, options->input_count,
						 &options->in);
	struct failure failure = {};
	struct input input = {};
	int err = inputs__open(options->inputs, options->input_count, &options->in, &input);

	if (err)
		return EXIT_FAILED;
	options->serving.what = what ?: "";
	err = serving__run(input.profile, &options->serving, 0, &failure);
	if (err)
		print_failure(&failure);
	input__close(&input);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_open(int argc, char **argv)
{
	struct open_options options = {.serving = {.browser = true},
				       .in = {.replay = {.symbols = {.cache = true}}}};
	int status = options__parse(&cmd_open, &options, argc, argv);

	options.inputs = argv + optind;
	options.input_count = (size_t)(argc - optind);
	if (!status)
		status = inputs__check(&cmd_open, &options.in, options.inputs, options.input_count);
	if (!status)
		status = open_input(&options);
	profile_filter__fini(&options.in.filter);
	return status;
}

const struct command cmd_open = {
	.name = "open",
	.arguments = "IN[@SLICE]… [FILTER…] [--port N] [--no-browser] [--java-signatures]\n"
		     "                    [--root WHAT] [--service NAME --span SPAN]",
	.summary = "show a profile in the browser",
	.help = "  sysprof open x.sysprof\n"
		"  sysprof open CPU.1234.cpuprofile\n"
		"  ssh host sudo sysprof record -a -d 10 -o sysprof:- | sysprof open -\n"
		"  sysprof open --service shop --span '-24h' /var/lib/profiles\n"
		"\n"
		"IN is a recording, or a profile in any format that `convert` reads; - is standard input. Several\n"
		"files are one profile.\n"
		"Serves the profile on the loopback interface, under an address that cannot be guessed,\n"
		"until Ctrl-C: as a page, to the Firefox Profiler, and for download in every format.\n"
		"\n"
		"      --port N       listen on that port; default: any that is free\n"
		"      --no-browser   only print the addresses\n"
		"      --java-signatures  Java methods of a recording with the types of their parameters and result\n"
		"      --root WHAT    what the first field of folded stacks is: thread, process or frame;\n"
		"                     default: thread or frame, as all lines look\n"
		"      --span SPAN     of a directory of windows (sysprof agent --sink dir:…) or a spool, with --service\n"
		"                      NAME: what began in this time, as in '-1h' or '1 day ago+1h' (sysprof diff --old)\n"
		"\n" INPUT_FILTER_HELP "\n"
		"Set BROWSER for another browser, PROFILER_URL for another Firefox Profiler.\n",
	.run = run_open,
	.options = rows,
};
