/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of `record`: a table of them, then what goes with what. */
#include "cli/record_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sysprof/meta_keys.h>

#include "base/clocks.h"
#include "base/parse.h"
#include "base/suffix.h"
#include "cli/commands.h"
#include "formats/out/describe.h"
#include "live/capture/tick_source.h"

#define HZ_DEFAULT	  999
#define HZ_DEFAULT_SYSTEM 99
#define HZ_MAX		  20000 /* 50 µs; far beyond it a CPU does nothing but take samples */
#define PERIOD_MAX	  (1ull << 48)
#define CPU_LIMIT	  8191
#define WALL_HZ_DEFAULT	  200
#define WALL_HZ_SYSTEM	  20
#define WALL_HZ_MAX	  1000
#define WALL_BUDGET	  5000	 /* millionths of a CPU */
#define WALL_BUDGET_LEAST 0.0001 /* a share */
#define CODE_SHARE	  0.0005
#define CODE_SIZE	  (16u << 20)
#define OUTPUT_DEFAULT	  "sysprof.json.gz"

static int take_ids(const struct given_option *o)
{
	struct number_list *ids = option_field(o, struct number_list);
	bool is_process = o->row->letter == 'p';

	if (ids->count)
		return fail(o->failure, -EINVAL,
			    "-%c given twice: separate several ids with commas", o->row->letter);
	if (isalpha((unsigned char)*o->value))
		return fail(o->failure, -EINVAL,
			    "-%c %s: expected numbers: write %s%s%s-%c \"$(pgrep -d, %s)\"",
			    o->row->letter, o->value, is_process ? "--comm " : "",
			    is_process ? o->value : "", is_process ? ", or " : "", o->row->letter,
			    o->value);
	return parse_u32_list(o->value, 1, PID_LIMIT, &ids->data, &ids->count);
}

static int take_cpus(const struct given_option *o)
{
	struct number_list *cpus = option_field(o, struct number_list);

	return cpus->count ? -EINVAL
			   : parse_cpu_list(o->value, CPU_LIMIT, &cpus->data, &cpus->count);
}

/* The row's `min` is the kind, `max` whether it excludes. */
static int take_name(const struct given_option *o)
{
	return target_names__add(option_field(o, struct target_names *),
				 (enum target_name)o->row->min, o->row->max, o->value, o->failure);
}

static const char *const wait_words[] = {"no", "yes", NULL};

static int take_wait(const struct given_option *o)
{
	bool wait = !o->value || !strcmp(o->value, wait_words[true]);

	if (!wait && strcmp(o->value, wait_words[false]))
		return -EINVAL;
	*option_field(o, enum wait_choice) = wait ? WAIT_YES : WAIT_NO;
	return 0;
}

static int take_duration(const struct given_option *o)
{
	return parse_seconds(o->value, &((struct record_options *)o->fields)->duration);
}

static const char *const call_graphs[] = {
	[CALL_GRAPH_AUTO] = "auto", [CALL_GRAPH_FP] = "fp", [CALL_GRAPH_NONE] = "none", NULL};
/* perf's -g has no value, and its --call-graph has others. */
static int take_call_graph(const struct given_option *o)
{
	bool is_copy = !strncmp(o->value, "dwarf", 5) || !strncmp(o->value, "lbr", 3);

	if (!option_word(o))
		return 0;
	return fail(
		o->failure, -EINVAL,
		is_copy ? "-g %s: whole stacks are the default, so leave it out (auto, fp or none)"
			: "-g %s: stacks are the default, so leave -g out, or give it a value: "
			  "auto, fp or none",
		o->value);
}

static int take_hz(const struct given_option *o)
{
	if (strcmp(o->value, "max"))
		return option_number(o);
	return fail(o->failure, -EINVAL, "-F max: the highest rate is -F %d", HZ_MAX);
}

static const char *const clock_choices[] = {[CLOCK_CHOICE_AUTO] = "auto",
					    [CLOCK_CHOICE_TSC] = "tsc",
					    [CLOCK_CHOICE_MONOTONIC] = "monotonic",
					    NULL};

static int take_event(const struct given_option *o)
{
	struct tick_source source;
	struct failure why = {};
	int err = tick_source__find(o->value, &source, &why);

	if (*option_field(o, const char *))
		return fail(o->failure, -EINVAL, "-e given twice: a recording has one event");
	if (err)
		return fail(o->failure, err, "%s%s%s", why.what, *why.remedy ? "; " : "",
			    why.remedy);
	return option_text(o);
}

static int take_period(const struct given_option *o)
{
	return parse_u64(o->value, 1, PERIOD_MAX, option_field(o, uint64_t));
}

static int take_verbose(const struct given_option *o)
{
	struct record_options *options = o->fields;

	options->verbosity = options->verbosity < VERBOSE ? VERBOSE : DEBUGGING;
	return 0;
}

static int take_wall(const struct given_option *o)
{
	struct record_options *options = o->fields;

	options->wall = options->wall_requested = options->outputs.waits = true;
	return o->value ? option_number(o) : 0;
}

static int take_no_wall(const struct given_option *o)
{
	struct record_options *options = o->fields;

	options->wall = options->wall_requested = options->outputs.waits = false;
	return 0;
}

static int take_wall_budget(const struct given_option *o)
{
	double share;
	int err = parse_share(o->value, &share);

	if (err || share < WALL_BUDGET_LEAST)
		return -EINVAL;
	*option_field(o, unsigned int) = (unsigned int)(share * 1e6);
	return 0;
}

static int take_code(const struct given_option *o)
{
	return parse_share(o->value, option_field(o, double));
}

static int take_no_code(const struct given_option *o)
{
	*option_field(o, double) = 0;
	return 0;
}

static int take_source_map(const struct given_option *o)
{
	struct source_map *maps = option_field(o, struct source_map);
	const char *to = strchr(o->value, '=');
	size_t count = 0;

	while (count < SOURCE_MAPS_MAX && maps[count].from)
		count++;
	if (!to || *o->value != '/' || to[1] != '/')
		return -EINVAL;
	if (count == SOURCE_MAPS_MAX)
		return fail(o->failure, -EINVAL, "--source-map given more than %d times",
			    SOURCE_MAPS_MAX);
	maps[count] = (struct source_map){o->value, (size_t)(to - o->value), to + 1};
	return 0;
}

static int take_code_size(const struct given_option *o)
{
	return parse_size(o->value, option_field(o, uint64_t));
}

#define FIELD(name)    .field = offsetof(struct record_options, name)
#define SAMPLING(name) FIELD(session.live.session.name)

/* A name of targets, and one of what is not recorded. */
#define NAME_ROWS(name, kind)                                                                      \
	{name, 0, true, take_name, FIELD(names), .min = (kind), .max = false},                     \
	{                                                                                          \
		"exclude-" name, 0, true, take_name, FIELD(names), .min = (kind), .max = true      \
	}

const struct cli_option record_option_rows[] = {
	{"pid", 'p', true, take_ids, FIELD(processes),
	 .expected = "a list of numbers, as in 12,34"},
	{"tid", 't', true, take_ids, FIELD(threads), .expected = "a list of numbers, as in 12,34"},
	{"all-cpus", 'a', false, option_set, FIELD(all)},
	{"frequency", 'F', true, take_hz, SAMPLING(hz), .min = 1, .max = HZ_MAX},
	{"duration", 'd', true, take_duration, .expected = "a number of seconds above 0"},
	{"output", 'o', true, outputs__take, FIELD(outputs)},
	{"event", 'e', true, take_event, SAMPLING(event)},
	{"count", 'c', true, take_period, SAMPLING(period),
	 .expected = "a number of events above 0, or of ns of a clock"},
	{"call-graph", 'g', true, take_call_graph, FIELD(call_graph), .words = call_graphs},
	{"cpus", 'C', true, take_cpus, FIELD(cpus), .expected = "one list of CPUs, as in 0,2-4"},
	{"cgroup", 0, true, option_text, SAMPLING(target.cgroup)},
	NAME_ROWS("comm", TARGET_BY_COMM),
	NAME_ROWS("exe", TARGET_BY_EXE),
	NAME_ROWS("user", TARGET_BY_USER),
	NAME_ROWS("unit", TARGET_BY_UNIT),
	NAME_ROWS("container", TARGET_BY_CONTAINER),
	NAME_ROWS("service", TARGET_BY_SERVICE),
	{"wait", 0, .value_is_optional = true, .take = take_wait, FIELD(wait), .words = wait_words,
	 .expected = "yes or no"},
	{"wall", 0, .value_is_optional = true, .take = take_wall, FIELD(session.live.wall_hz),
	 .min = 1, .max = WALL_HZ_MAX},
	{"no-wall", .take = take_no_wall},
	{"arguments", 0, false, option_choose, FIELD(arguments), ARGUMENTS_SHOWN},
	{"no-arguments", 0, false, option_choose, FIELD(arguments), ARGUMENTS_NOWHERE},
	{"parked", 0, false, option_set, FIELD(outputs.parked)},
	{"wall-cpu", 0, true, take_wall_budget, FIELD(session.live.wall_budget),
	 .expected = "a share of one CPU, as in 0.5% or 0.005"},
	{"no-inherit", 0, false, option_clear, SAMPLING(target.inherit)},
	{"interrupts", 0, false, option_set, FIELD(session.live.interrupts)},
	{"no-kernel", 0, false, option_clear, SAMPLING(kernel_stacks)},
	{"exclude-self", 0, false, option_set, SAMPLING(target.exclude_self)},
	{"clock", 0, true, option_word, SAMPLING(clock), .words = clock_choices,
	 .expected = "auto, tsc or monotonic"},
	{"max-depth", 0, true, option_number, SAMPLING(max_depth), 1, SAMPLE_USER_DEPTH_MAX},
	{"unwind-mem", 0, true, option_number, FIELD(unwind_memory), 4, 256},
	{"ring-mem", 0, true, option_number, FIELD(ring_memory), 1, 65536},
	{"thread", 0, true, option_number, FIELD(outputs.thread), 1, PID_LIMIT},
	OUTPUTS_MERGE_ROW(offsetof(struct record_options, outputs)),
	{"lines", 0, false, option_set, FIELD(outputs.lines)},
	{"java-signatures", 0, false, option_set, FIELD(session.full_names)},
	{"debuginfod", 0, false, option_set, FIELD(symbols.debuginfod)},
	{"no-symbol-cache", 0, false, option_clear, FIELD(symbols.cache)},
	{"code", 0, true, take_code, FIELD(symbols.code_share),
	 .expected = "a share of the samples, as in 0.05% or 0.0005"},
	{"no-code", 0, false, take_no_code, FIELD(symbols.code_share)},
	{"code-size", 0, true, take_code_size, FIELD(symbols.code_size),
	 .expected = "a size, as in 16M"},
	{"no-source", 0, false, option_clear, FIELD(symbols.sources)},
	{"source-map", 0, true, take_source_map, FIELD(symbols.source_maps),
	 .expected = "FROM=TO, two directories, as in /build/orders=/home/me/orders"},
	{"jvm-perfmap", 0, false, option_set, FIELD(session.live.jvm_perfmap)},
	{"open", 0, false, option_set, FIELD(open)},
	{"quiet", 'q', false, option_choose, FIELD(verbosity), QUIET},
	{"verbose", 'v', .take = take_verbose},
	{},
};

/* `-p $(pidof NAME)` of several processes. */
static bool is_list_of_words(const struct record_options *options)
{
	uint64_t number;

	return options->processes.count && options->command &&
	       !parse_u64(options->command[0], 1, PID_LIMIT, &number);
}

/* Of sleep, "1m": "-d 60", by which a recording ends. False: COMMAND is something else. */
static bool duration_of_sleep(char **command, char *text, size_t size)
{
	static const char units[] = "smhd";
	static const unsigned int seconds[] = {1, 60, 3600, 86400};
	const char *unit;
	double value;
	char *end;

	if (strcmp(path_base(command[0]), "sleep") || !command[1] || command[2])
		return false;
	value = strtod(command[1], &end);
	unit = *end ? strchr(units, *end) : units;
	if (!unit || (*end && end[1]) || !(value > 0))
		return false;
	if (isinf(value))
		snprintf(text, size, "and no -d: Ctrl-C ends it");
	else
		snprintf(text, size, "-d %.15g", value * seconds[unit - units]);
	return true;
}

/* perf records other targets for as long as COMMAND runs, which mostly is `sleep SECONDS`. */
static int refuse_targets(const struct record_options *options)
{
	static const char rule[] = "-p, -t, -a and COMMAND are mutually exclusive";
	const char *target = options->processes.count ? "-p PID"
			     : options->threads.count ? "-t TID"
						      : "-a";
	bool is_system = !options->processes.count && !options->threads.count;
	char **command = options->command, duration[64];

	if (!command)
		return usage_error(&cmd_record, "%s", rule);
	if (duration_of_sleep(command, duration, sizeof(duration)))
		return usage_error(&cmd_record, "%s: instead of sleep, write %s %s", rule, target,
				   duration);
	return usage_error(&cmd_record, "%s: %s -d SECONDS records %s%s%s", rule, target,
			   is_system ? "the system, and " : "it beside ", command[0],
			   is_system ? " if it is started beside" : "");
}

/* Names are what a process is: it is one of them, or it is of another target. */
static int check_names(const struct record_options *options)
{
	if (!target_names__include(options->names))
		return options->wait ? usage_error(&cmd_record, "--wait is for targets by name, as "
								"with --comm")
				     : 0;
	if (options->all)
		return usage_error(
			&cmd_record,
			"-a records all processes: leave it out, or exclude some, as with "
			"--exclude-comm");
	if (options->threads.count || options->command)
		return usage_error(&cmd_record, "%s and targets by name are mutually exclusive",
				   options->command ? "COMMAND" : "-t");
	return 0;
}

static int check_together(const struct record_options *options)
{
	int targets = !!options->processes.count + !!options->threads.count + options->all +
		      !!options->command;

	/* a cgroup alone is a choice of the whole system */
	if (targets == 0 && !options->session.live.session.target.cgroup &&
	    !target_names__include(options->names))
		return usage_error(
			&cmd_record,
			"no target: give -p, -t, -a, a name (as --comm NAME) or -- COMMAND");
	if (is_list_of_words(options))
		return usage_error(&cmd_record,
				   "several processes are separated by commas, as in -p 1,2,3");
	if (targets > 1)
		return refuse_targets(options);
	return check_names(options);
}

/* How often samples come, and what goes with it. Samples of events are no time: nor are waits. */
static int set_rate(struct record_options *options, bool system)
{
	struct bpf_session_options *session = &options->session.live.session;
	struct tick_source source = {};

	if (session->hz && session->period)
		return usage_error(&cmd_record, "-F and -c are mutually exclusive");
	tick_source__find(session->event ? session->event : TICK_SOURCE_DEFAULT, &source, NULL);
	if (source.clock && session->period && session->period < NS_PER_SECOND / HZ_MAX)
		return usage_error(&cmd_record,
				   "-c %" PRIu64 ": of a clock, %" PRIu64 " ns at least",
				   session->period, NS_PER_SECOND / HZ_MAX);
	if (!session->hz)
		session->hz = system ? HZ_DEFAULT_SYSTEM : HZ_DEFAULT;
	if (source.clock && session->period)
		session->hz = session->period < NS_PER_SECOND ? NS_PER_SECOND / session->period : 1;
	if ((system || !source.clock) && !options->wall_requested)
		options->wall = false;
	return 0;
}

static int set_defaults(struct record_options *options)
{
	struct live_options *live = &options->session.live;
	struct failure failure = {};
	bool system = options->all || (!options->processes.count && !options->threads.count &&
				       !options->command && !target_names__include(options->names));

	if (set_rate(options, system))
		return EXIT_USAGE;
	if (!live->wall_hz)
		live->wall_hz = system ? WALL_HZ_SYSTEM : WALL_HZ_DEFAULT;
	if (!options->outputs.count &&
	    outputs__add_default(&options->outputs, OUTPUT_DEFAULT, &failure))
		return usage_error(&cmd_record, "%s", failure.what);
	return 0;
}

/* Options that the session takes in another form than the command line. */
static void fill_session(struct record_options *options)
{
	bool threads = options->threads.count;
	const struct number_list *ids = threads ? &options->threads : &options->processes;
	struct live_options *live = &options->session.live;
	struct target *target = &live->session.target;

	target->mode = threads				? TARGET_THREADS
		       : ids->count || options->command ? TARGET_PROCESSES
							: TARGET_ALL;
	target->cpus = options->cpus.data;
	target->cpu_count = options->cpus.count;
	live->names = target_names__judge(options->names);
	live->ids = ids->data;
	live->id_count = ids->count;
	live->session.user_stacks = options->call_graph != CALL_GRAPH_NONE;
	if (options->call_graph == CALL_GRAPH_AUTO)
		live->session.unwind_bytes = (size_t)options->unwind_memory << 20;
	live->session.ring_bytes = (size_t)options->ring_memory << 20;
	live->wall_hz = options->wall ? live->wall_hz : 0;
	live->wall_if_possible = !options->wall_requested;
	options->session.table_cache = options->symbols.cache;
}

int record_options__parse(struct record_options *options, int argc, char **argv)
{
	int status;

	*options = (struct record_options){
		.session.live = {.session = {.target.inherit = true,
					     .kernel_stacks = true,
					     .max_depth = DEPTH_DEFAULT},
				 .wall_budget = WALL_BUDGET},
		.unwind_memory = UNWIND_MEMORY_DEFAULT,
		.ring_memory = RING_MEMORY_DEFAULT,
		.wall = true,
		.symbols.cache = true,
		.symbols.code_share = CODE_SHARE,
		.symbols.sources = true,
		.symbols.code_size = CODE_SIZE,
		.verbosity = NORMAL,
	};
	status = options__parse(&cmd_record, options, argc, argv);
	if (status)
		return status;
	if (optind < argc)
		options->command = argv + optind;
	status = check_together(options) ?: set_defaults(options);
	fill_session(options);
	return status;
}

void record_options__fini(struct record_options *options)
{
	target_names__free(options->names);
	free(options->processes.data);
	free(options->threads.data);
	free(options->cpus.data);
	outputs__fini(&options->outputs);
}

static void add_command(struct text_line *line, const struct record_options *options,
			bool arguments)
{
	char **word = options->command;

	add_text(line, "-- %s", *word++);
	if (*word && !arguments)
		add_text(line, " " ARGUMENTS_LEFT_OUT);
	while (arguments && *word)
		add_text(line, " %s", *word++);
}

void record_options__describe_target(const struct record_options *options, char *text, size_t size)
{
	bool processes = options->processes.count;
	const char *cgroup = options->session.live.session.target.cgroup;
	const struct number_list *ids = processes ? &options->processes : &options->threads;
	struct text_line line = {text, size, target_names__describe(options->names, text, size)};
	const char *gap = line.used ? " " : "";

	if (options->command) {
		add_text(&line, "%s", gap);
		add_command(&line, options, options->arguments != ARGUMENTS_NOWHERE);
	} else if (ids->count) {
		add_text(&line, "%s%s ", gap, processes ? "-p" : "-t");
		for (size_t i = 0; i < ids->count; i++)
			add_text(&line, "%s%u", i ? "," : "", ids->data[i]);
	} else if (!target_names__include(options->names)) {
		add_text(&line, "%s-a", gap);
	}
	if (cgroup)
		add_text(&line, " --cgroup %s", cgroup);
}

void record_options__describe_run(const struct record_options *options, char *text, size_t size)
{
	struct text_line line = {text, size, 0};

	add_text(&line, "sysprof record " ARGUMENTS_LEFT_OUT);
	if (!options->command)
		return;
	add_text(&line, " ");
	add_command(&line, options, false);
}
