/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof open: a profile in the browser, served to this machine alone. */
#include <getopt.h>
#include <stdint.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/serving.h"
#include "cli/summary.h"
#include "session/session.h"

static const struct option long_options[] = {
	{"port", required_argument, NULL, 'p'},
	{"no-browser", no_argument, NULL, 'n'},
	{NULL, 0, NULL, 0},
};

static int parse_option(struct serving_options *options, int option, char **argv)
{
	uint64_t port;

	switch (option) {
	case 'p':
		if (parse_u64(optarg, 1, UINT16_MAX, &port))
			return usage_error(&cmd_open, "--port %s: expected a number from 1 to %d",
					   optarg, UINT16_MAX);
		options->port = port;
		return 0;
	case 'n':
		options->browser = false;
		return 0;
	case ':':
		return usage_error(&cmd_open, "%s requires a value", argv[optind - 1]);
	}
	return usage_error(&cmd_open, "unknown option '%s'", argv[optind - 1]);
}

static int open_input(const char *path, const struct serving_options *options)
{
	const struct replay_options replay = {.symbols = {.cache = true}};
	struct failure failure = {};
	struct input input = {};
	int err = input__open(path, &replay, &input);

	if (err)
		return EXIT_FAILED;
	err = serving__run(input.profile, options, &failure);
	if (err)
		print_failure(&failure);
	input__close(&input);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_open(int argc, char **argv)
{
	struct serving_options options = {.browser = true};
	int option, status;

	optind = 1;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		status = parse_option(&options, option, argv);
		if (status)
			return status;
	}
	if (argc - optind != 1)
		return usage_error(&cmd_open,
				   argc - optind ? "more than one input" : "no input given");
	options.what = argv[optind];
	return open_input(argv[optind], &options);
}

const struct command cmd_open = {
	.name = "open",
	.arguments = "IN [--port N] [--no-browser]",
	.summary = "show a profile in the browser",
	.help = "  sysprof open x.sysprof\n"
		"  sysprof open CPU.1234.cpuprofile\n"
		"\n"
		"IN is a recording, or a profile in any format that `convert` reads.\n"
		"Serves the profile on the loopback interface, under an address that cannot be guessed,\n"
		"until Ctrl-C: as a page, to the Firefox Profiler, and for download in every format.\n"
		"\n"
		"      --port N       listen on that port; default: any that is free\n"
		"      --no-browser   only print the addresses\n"
		"\n"
		"Set BROWSER for another browser, PROFILER_URL for another Firefox Profiler.\n",
	.run = run_open,
	.options = long_options,
};
