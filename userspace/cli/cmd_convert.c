/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof convert: a recording or a profile into any format, without root, on any machine. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/commands.h"
#include "cli/give_up.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/summary.h"
#include "profile/anonymize.h"

#define KEY_LEAST 16 /* bytes: fewer could be found by trying */
#define KEY_MOST  4096

struct convert_options {
	char *const *inputs;
	size_t input_count;
	struct outputs outputs;
	struct input_options in;
	bool anonymize;
	const char *key_file; /* NULL: a random key */
};

static int take_anonymize(const struct given_option *o)
{
	struct convert_options *options = o->fields;

	options->anonymize = true;
	options->key_file = o->value;
	return 0;
}

static const struct cli_option rows[] = {
	{"output", 'o', .has_value = true, .take = outputs__take,
	 .field = offsetof(struct convert_options, outputs)},
	OUTPUTS_MERGE_ROW(offsetof(struct convert_options, outputs)),
	{"lines", .take = option_set, .field = offsetof(struct convert_options, outputs.lines)},
	{"wall", .take = option_set, .field = offsetof(struct convert_options, outputs.waits)},
	{"parked", .take = option_set, .field = offsetof(struct convert_options, outputs.parked)},
	{"arguments", .take = option_set,
	 .field = offsetof(struct convert_options, in.replay.arguments)},
	{"anonymize", .value_is_optional = true, .take = take_anonymize},
	{"java-signatures", .take = option_set,
	 .field = offsetof(struct convert_options, in.replay.full_names)},
	INPUT_ROOT_ROW(offsetof(struct convert_options, in.root)),
	INPUT_SPAN_ROW(offsetof(struct convert_options, in)),
	{"debuginfod", .take = option_set,
	 .field = offsetof(struct convert_options, in.replay.symbols.debuginfod)},
	INPUT_FILTER_ROWS(offsetof(struct convert_options, in)),
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
	options->inputs = argv + optind;
	options->input_count = (size_t)(argc - optind);
	status = inputs__check(&cmd_convert, &options->in, options->inputs, options->input_count);
	if (status)
		return status;
	if (!options->outputs.count)
		return usage_error(&cmd_convert, "no output: give -o FILE");
	if (outputs__recording(&options->outputs))
		return usage_error(&cmd_convert, "cannot write .sysprof; convert only reads it");
	return 0;
}

static int read_key(const struct convert_options *options, struct anonymous_key *key,
		    struct failure *failure)
{
	_cleanup_free_ char *bytes = NULL;
	uint64_t random[2];
	size_t size;
	int err;

	if (!options->key_file) {
		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return fail(failure, -errno, "cannot make a key: %s", strerror(errno));
		*key = anonymous_key__of(random, sizeof(random));
		return 0;
	}
	err = read_file_at(AT_FDCWD, options->key_file, KEY_MOST, &bytes, &size);
	if (err)
		fail(failure, err, "cannot read the key %s: %s", options->key_file, strerror(-err));
	else if (size < KEY_LEAST)
		err = fail(failure, -EINVAL, "the key %s has %zu bytes: at least %d are needed",
			   options->key_file, size, KEY_LEAST);
	if (err)
		return fail_remedy(failure, err, "head -c 32 /dev/urandom > KEYFILE");
	*key = anonymous_key__of(bytes, size);
	return 0;
}

static int write_anonymous(struct convert_options *options, const struct profile *profile,
			   struct written_files *written, struct failure *failure)
{
	struct anonymous_profile *anonymous;
	struct anonymous_key key;
	int err = read_key(options, &key, failure);

	if (err)
		return err;
	err = anonymous_profile__new(profile, key, &anonymous);
	if (err)
		return fail(failure, err, "cannot convert: out of memory");
	err = outputs__write(&options->outputs, anonymous_profile__get(anonymous), written,
			     failure);
	anonymous_profile__free(anonymous);
	return err;
}

static void print_files_left_out(const struct written_files *written, bool merged)
{
	char text[LEFT_OUT_SIZE];

	if (written_files__left_out(written, merged, text))
		log_print(LOG_WARNING, "%s", text);
}

static int convert_input(struct convert_options *options)
{
	struct written_files written = {};
	struct failure failure = {};
	struct input input = {};
	int err;

	options->in.waits = options->outputs.waits;
	err = inputs__open(options->inputs, options->input_count, &options->in, &input);
	if (err)
		return EXIT_FAILED;
	give_up__arm();
	err = options->anonymize
		      ? write_anonymous(options, input.profile, &written, &failure)
		      : outputs__write(&options->outputs, input.profile, &written, &failure);
	if (!err)
		print_files_left_out(&written, options->outputs.merge_threads != MERGE_NONE);
	written_files__fini(&written);
	input__close(&input);
	if (err == -EPIPE) /* of standard output, as of report and diff */
		print_ended(err);
	else if (err)
		print_failure(&failure);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_convert(int argc, char **argv)
{
	struct convert_options options = {.in = {.replay = {.symbols = {.cache = true}}}};
	int status = parse_options(&options, argc, argv);

	if (!status)
		status = convert_input(&options);
	outputs__fini(&options.outputs);
	profile_filter__fini(&options.in.filter);
	return status;
}

const struct command cmd_convert = {
	.name = "convert",
	.arguments =
		"IN[@SLICE]… -o OUT [-o OUT…] [FILTER…] [--merge-threads process] [--lines]\n"
		"                       [--wall [--parked]] [--arguments] [--anonymize[=KEYFILE]]\n"
		"                       [--java-signatures] [--root WHAT] [--debuginfod]\n"
		"                       [--no-symbol-cache] [--service NAME --span SPAN]",
	.summary = "convert a recording or a profile to other formats",
	.help = "  sysprof convert x.sysprof -o x.json.gz -o x.folded\n"
		"  sysprof convert CPU.1234.cpuprofile -o node.pb.gz\n"
		"  ssh host sudo sysprof record -a -d 10 -o sysprof:- | sysprof convert - -o host.html\n"
		"  sysprof convert x.sysprof@10s-20s --process java --focus parse -o parse.html\n"
		"\n"
		"IN is a recording or a profile of any tool: .cpuprofile, Chrome trace, Firefox profile, pprof,\n"
		"speedscope, perf script, folded stacks (any of them compressed by gzip), perf.data. The contents\n"
		"say which it is. Several files are one profile; - is standard input.\n"
		"\n"
		"  -o, --output FILE   as for record; may be repeated\n"
		"      --merge-threads process  one file for all threads of a process, in formats with one thread a file\n"
		"      --lines         with source lines, where the format supports them\n"
		"      --wall          folded stacks, Firefox files, traces: what threads wait for\n"
		"      --parked        with it event loops and idle threads of pools\n"
		"      --arguments     the arguments of the recorded command, which may have passwords\n"
		"      --anonymize[=KEYFILE]  hash names, paths, hosts and users by a key, random or that of the file;\n"
		"                      kept are those of libc, the kernel and public runtimes (docs/FORMATS.md)\n"
		"      --java-signatures  Java methods of a recording with the types of their parameters and result\n"
		"      --root WHAT     what the first field of folded stacks is: thread, process or frame;\n"
		"                      default: thread or frame, as all lines look\n"
		"      --span SPAN     of a directory of windows (sysprof agent --sink dir:…) or a spool, with --service\n"
		"                      NAME: what began in this time, as in '-1h' or '1 day ago+1h' (sysprof diff --old)\n"
		"\n" INPUT_FILTER_HELP "\n"
		"For a recording without symbols (sysprof was killed), and perf.data:\n"
		"      --debuginfod       fetch debug files from the servers of DEBUGINFOD_URLS\n"
		"      --no-symbol-cache  do not use the on-disk cache of symbols\n",
	.run = run_convert,
	.options = rows,
};
