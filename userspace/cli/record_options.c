/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of `record`: getopt_long into a struct, then what goes with what. */
#include "cli/record_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "capture/perf_events.h"
#include "cli/commands.h"

#define HZ_DEFAULT	  999
#define HZ_DEFAULT_SYSTEM 99
#define HZ_MAX		  20000 /* 50 µs; far beyond it a CPU does nothing but take samples */
#define UNWIND_MEMORY_MIN 4
#define UNWIND_MEMORY_MAX 256
#define RING_MEMORY_MIN	  1
#define RING_MEMORY_MAX	  65536
#define PID_LIMIT	  4194304 /* PID_MAX_LIMIT of 64-bit kernels */
#define CPU_LIMIT	  8191
#define OUTPUT_DEFAULT	  "sysprof.json.gz"

enum {
	OPT_CGROUP = 256,
	OPT_NO_INHERIT,
	OPT_NO_KERNEL,
	OPT_EXCLUDE_SELF,
	OPT_CLOCK,
	OPT_MAX_DEPTH,
	OPT_UNWIND_MEM,
	OPT_RING_MEM,
	OPT_THREAD,
	OPT_LINES,
	OPT_DEBUGINFOD,
	OPT_NO_SYMBOL_CACHE,
	OPT_JVM_PERFMAP,
	OPT_OPEN
};

const struct option record_long_options[] = {
	{"pid", required_argument, NULL, 'p'},
	{"tid", required_argument, NULL, 't'},
	{"all-cpus", no_argument, NULL, 'a'},
	{"frequency", required_argument, NULL, 'F'},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"event", required_argument, NULL, 'e'},
	{"call-graph", required_argument, NULL, 'g'},
	{"cpus", required_argument, NULL, 'C'},
	{"cgroup", required_argument, NULL, OPT_CGROUP},
	{"no-inherit", no_argument, NULL, OPT_NO_INHERIT},
	{"no-kernel", no_argument, NULL, OPT_NO_KERNEL},
	{"exclude-self", no_argument, NULL, OPT_EXCLUDE_SELF},
	{"clock", required_argument, NULL, OPT_CLOCK},
	{"max-depth", required_argument, NULL, OPT_MAX_DEPTH},
	{"unwind-mem", required_argument, NULL, OPT_UNWIND_MEM},
	{"ring-mem", required_argument, NULL, OPT_RING_MEM},
	{"thread", required_argument, NULL, OPT_THREAD},
	{"lines", no_argument, NULL, OPT_LINES},
	{"debuginfod", no_argument, NULL, OPT_DEBUGINFOD},
	{"no-symbol-cache", no_argument, NULL, OPT_NO_SYMBOL_CACHE},
	{"jvm-perfmap", no_argument, NULL, OPT_JVM_PERFMAP},
	{"open", no_argument, NULL, OPT_OPEN},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{NULL, 0, NULL, 0},
};

static int bad_value(const char *option, const char *value, const char *expected)
{
	return usage_error(&cmd_record, "%s %s: expected %s", option, value, expected);
}

static int parse_number(const char *option, uint64_t min, uint64_t max, unsigned int *value)
{
	uint64_t number;
	char expected[80];

	if (parse_u64(optarg, min, max, &number)) {
		snprintf(expected, sizeof(expected), "a whole number from %lu to %lu",
			 (unsigned long)min, (unsigned long)max);
		return bad_value(option, optarg, expected);
	}
	*value = number;
	return 0;
}

static int parse_ids(const char *option, uint32_t **ids, size_t *count)
{
	if (*ids)
		return usage_error(&cmd_record, "%s given twice: separate several ids with commas",
				   option);
	if (parse_u32_list(optarg, 1, PID_LIMIT, ids, count))
		return bad_value(option, optarg, "a list of numbers, as in 12,34");
	return 0;
}

static int parse_call_graph(struct record_options *options)
{
	options->user_stacks = strcmp(optarg, "none");
	options->unwind_tables = !strcmp(optarg, "auto");
	if (!options->unwind_tables && options->user_stacks && strcmp(optarg, "fp"))
		return bad_value("-g", optarg, "auto, fp or none");
	return 0;
}

static int parse_clock(struct record_options *options)
{
	if (!strcmp(optarg, "auto"))
		options->clock = CLOCK_CHOICE_AUTO;
	else if (!strcmp(optarg, "tsc"))
		options->clock = CLOCK_CHOICE_TSC;
	else if (!strcmp(optarg, "monotonic"))
		options->clock = CLOCK_CHOICE_MONOTONIC;
	else
		return bad_value("--clock", optarg, "auto, tsc or monotonic");
	return 0;
}

static int parse_event(struct record_options *options)
{
	struct tick_source source;
	struct failure failure = {};

	if (tick_source__find(optarg, &source, &failure))
		return usage_error(&cmd_record, "%s; %s", failure.what, failure.remedy);
	options->event = optarg;
	return 0;
}

static int parse_output(struct record_options *options)
{
	struct failure failure = {};

	if (outputs__add(&options->outputs, optarg, &failure))
		return usage_error(&cmd_record, "%s", failure.what);
	return 0;
}

static int parse_target_option(struct record_options *options, int option)
{
	switch (option) {
	case 'p':
		return parse_ids("-p", &options->processes, &options->process_count);
	case 't':
		return parse_ids("-t", &options->threads, &options->thread_count);
	case 'a':
		options->all = true;
		return 0;
	case 'C':
		if (options->cpus ||
		    parse_cpu_list(optarg, CPU_LIMIT, &options->cpus, &options->cpu_count))
			return bad_value("-C", optarg, "one list of CPUs, as in 0,2-4");
		return 0;
	case OPT_CGROUP:
		options->cgroup = optarg;
		return 0;
	case OPT_NO_INHERIT:
		options->inherit = false;
		return 0;
	case OPT_EXCLUDE_SELF:
		options->exclude_self = true;
		return 0;
	}
	return -EINVAL;
}

static int parse_option(struct record_options *options, int option)
{
	switch (option) {
	case 'F':
		return parse_number("-F", 1, HZ_MAX, &options->hz);
	case 'd':
		if (parse_seconds(optarg, &options->duration))
			return bad_value("-d", optarg, "a number of seconds above 0");
		return 0;
	case 'o':
		return parse_output(options);
	case 'e':
		return parse_event(options);
	case 'g':
		return parse_call_graph(options);
	case OPT_NO_KERNEL:
		options->kernel_stacks = false;
		return 0;
	case OPT_CLOCK:
		return parse_clock(options);
	case OPT_MAX_DEPTH:
		return parse_number("--max-depth", 1, SAMPLE_USER_DEPTH_MAX, &options->max_depth);
	case OPT_UNWIND_MEM:
		return parse_number("--unwind-mem", UNWIND_MEMORY_MIN, UNWIND_MEMORY_MAX,
				    &options->unwind_memory);
	case OPT_RING_MEM:
		return parse_number("--ring-mem", RING_MEMORY_MIN, RING_MEMORY_MAX,
				    &options->ring_memory);
	case OPT_THREAD:
		return parse_number("--thread", 1, PID_LIMIT, &options->outputs.thread);
	case OPT_LINES:
		options->outputs.lines = true;
		return 0;
	case OPT_DEBUGINFOD:
		options->debuginfod = true;
		return 0;
	case OPT_JVM_PERFMAP:
		options->jvm_perfmap = true;
		return 0;
	case OPT_OPEN:
		options->open = true;
		return 0;
	case OPT_NO_SYMBOL_CACHE:
		options->symbol_cache = false;
		return 0;
	case 'q':
		options->verbosity = QUIET;
		return 0;
	case 'v':
		options->verbosity = options->verbosity < VERBOSE ? VERBOSE : DEBUGGING;
		return 0;
	case ':':
		return usage_error(&cmd_record, "-%c requires a value", optopt);
	case '?':
		return usage_error(&cmd_record, "unknown option");
	}
	return parse_target_option(options, option);
}

static int check_together(const struct record_options *options)
{
	int targets = !!options->processes + !!options->threads + options->all + !!options->command;

	/* a cgroup alone is a choice of the whole system */
	if (targets == 0 && !options->cgroup)
		return usage_error(&cmd_record, "no target: give -p, -t, -a or -- COMMAND");
	if (targets > 1)
		return usage_error(&cmd_record, "-p, -t, -a and COMMAND are mutually exclusive");
	return 0;
}

static int set_defaults(struct record_options *options)
{
	struct failure failure = {};
	bool system = options->all ||
		      (!options->processes && !options->threads && !options->command);

	if (!options->hz)
		options->hz = system ? HZ_DEFAULT_SYSTEM : HZ_DEFAULT;
	if (!options->outputs.count &&
	    outputs__add_default(&options->outputs, OUTPUT_DEFAULT, &failure))
		return usage_error(&cmd_record, "%s", failure.what);
	return 0;
}

int record_options__parse(struct record_options *options, int argc, char **argv)
{
	int option, status;

	*options = (struct record_options){
		.user_stacks = true,
		.unwind_tables = true,
		.unwind_memory = UNWIND_MEMORY_DEFAULT,
		.ring_memory = RING_MEMORY_DEFAULT,
		.kernel_stacks = true,
		.inherit = true,
		.max_depth = DEPTH_DEFAULT,
		.symbol_cache = true,
		.verbosity = NORMAL,
	};
	optind = 1;
	/* "+": options end where COMMAND begins; ":": we word the errors */
	while ((option = getopt_long(argc, argv, "+:p:t:aF:d:o:e:g:C:qv", record_long_options,
				     NULL)) != -1) {
		if (option == '?' && optind > 1)
			return usage_error(&cmd_record, "unknown option '%s'", argv[optind - 1]);
		if (option == ':')
			return usage_error(&cmd_record, "%s requires a value", argv[optind - 1]);
		status = parse_option(options, option);
		if (status)
			return status;
	}
	if (optind < argc)
		options->command = argv + optind;
	status = check_together(options);
	return status ? status : set_defaults(options);
}

void record_options__fini(struct record_options *options)
{
	free(options->processes);
	free(options->threads);
	free(options->cpus);
	outputs__fini(&options->outputs);
}

static size_t append_text(char *text, size_t size, size_t used, const char *piece)
{
	int n = used < size ? snprintf(text + used, size - used, "%s", piece) : 0;

	return n < 0 ? used : used + n;
}

void record_options__describe_target(const struct record_options *options, char *text, size_t size)
{
	const uint32_t *ids = options->processes ? options->processes : options->threads;
	size_t count = options->processes ? options->process_count : options->thread_count;
	size_t used = 0;
	char number[16];

	*text = '\0';
	if (options->command) {
		used = append_text(text, size, used, "--");
		for (char **word = options->command; *word; word++) {
			used = append_text(text, size, used, " ");
			used = append_text(text, size, used, *word);
		}
	} else if (ids) {
		used = append_text(text, size, used, options->processes ? "-p " : "-t ");
		for (size_t i = 0; i < count; i++) {
			snprintf(number, sizeof(number), "%s%u", i ? "," : "", ids[i]);
			used = append_text(text, size, used, number);
		}
	} else {
		used = append_text(text, size, used, "-a");
	}
	if (options->cgroup) {
		used = append_text(text, size, used, " --cgroup ");
		append_text(text, size, used, options->cgroup);
	}
}
