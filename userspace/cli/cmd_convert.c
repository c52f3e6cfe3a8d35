/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof convert: a recording or a profile into any format, without root, on any machine. */
#include <getopt.h>

#include "cli/commands.h"
#include "cli/give_up.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/summary.h"

struct convert_options {
	const char *input;
	struct outputs outputs;
	struct input_options in;
};

static const struct cli_option rows[] = {
	{"output", 'o', .has_value = true, .take = outputs__take,
	 .field = offsetof(struct convert_options, outputs)},
	{"thread", .has_value = true, .take = option_number,
	 .field = offsetof(struct convert_options, outputs.thread), .min = 1, .max = UINT32_MAX,
	 .expected = "a thread id"},
	{"lines", .take = option_set, .field = offsetof(struct convert_options, outputs.lines)},
	{"wall", .take = option_set, .field = offsetof(struct convert_options, outputs.waits)},
	{"parked", .take = option_set, .field = offsetof(struct convert_options, outputs.parked)},
	{"java-signatures", .take = option_set,
	 .field = offsetof(struct convert_options, in.replay.full_names)},
	INPUT_ROOT_ROW(offsetof(struct convert_options, in.root)),
	{"debuginfod", .take = option_set,
	 .field = offsetof(struct convert_options, in.replay.symbols.debuginfod)},
	{"no-symbol-cache", .take = option_clear,
	 .field = offsetof(struct convert_options, in.replay.symbols.cache)},
	{},
};

static int parse_options(struct convert_options *options, int argc, char **argv)
{
	/* IN and -o come in any order */
	int status = options__parse(&cmd_convert, options, argc, argv);

	if (status)
		return status;
	if (argc - optind != 1)
		return usage_error(&cmd_convert,
				   argc - optind ? "more than one input"
						 : "no input: give a recording or a profile");
	options->input = argv[optind];
	if (!options->outputs.count)
		return usage_error(&cmd_convert, "no output: give -o FILE");
	if (outputs__recording(&options->outputs))
		return usage_error(&cmd_convert, "cannot write .sysprof; convert only reads it");
	return 0;
}

static int convert_input(struct convert_options *options)
{
	struct written_files written = {};
	struct failure failure = {};
	struct input input = {};
	int err;

	options->in.waits = options->outputs.waits;
	err = input__open(options->input, &options->in, &input);
	if (err)
		return EXIT_FAILED;
	give_up__arm();
	err = outputs__write(&options->outputs, input.profile, &written, &failure);
	if (err)
		print_failure(&failure);
	written_files__fini(&written);
	input__close(&input);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_convert(int argc, char **argv)
{
	struct convert_options options = {.in = {.replay = {.symbols = {.cache = true}}}};
	int status = parse_options(&options, argc, argv);

	if (!status)
		status = convert_input(&options);
	outputs__fini(&options.outputs);
	return status;
}

const struct command cmd_convert = {
	.name = "convert",
	.arguments = "IN -o OUT [-o OUT…] [--thread TID] [--lines] [--wall [--parked]]\n"
		     "                       [--java-signatures] [--root WHAT] [--debuginfod]\n"
		     "                       [--no-symbol-cache]",
	.summary = "convert a recording or a profile to other formats",
	.help = "  sysprof convert x.sysprof -o x.json.gz -o x.folded\n"
		"  sysprof convert CPU.1234.cpuprofile -o node.pb.gz\n"
		"\n"
		"IN is a recording or a profile of any tool: .cpuprofile, Chrome trace, Firefox profile, pprof,\n"
		"speedscope, perf script, folded stacks (any of them compressed by gzip), perf.data. The contents\n"
		"say which it is.\n"
		"\n"
		"  -o, --output FILE   as for record; may be repeated\n"
		"      --thread TID    which thread, for formats with one thread per file\n"
		"      --lines         with source lines, where the format supports them\n"
		"      --wall          folded stacks, Firefox files, traces: what threads wait for\n"
		"      --parked        with it event loops and idle threads of pools\n"
		"      --java-signatures  Java methods of a recording with the types of their parameters and result\n"
		"      --root WHAT     what the first field of folded stacks is: thread, process or frame;\n"
		"                      default: thread or frame, as all lines look\n"
		"\n"
		"For a recording without symbols (sysprof was killed), and perf.data:\n"
		"      --debuginfod       fetch debug files from the servers of DEBUGINFOD_URLS\n"
		"      --no-symbol-cache  do not use the on-disk cache of symbols\n",
	.run = run_convert,
	.options = rows,
};
