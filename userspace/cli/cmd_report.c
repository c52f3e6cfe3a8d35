/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof report: the top of a recording or a profile as text, without root. */
#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "formats/out/report.h"
#include "formats/out/report_wall.h"
#include "profile/figures.h"

#define TOP_MAX	      1000000
#define WIDTH_DEFAULT 80 /* of a terminal that does not say */
#define WIDTH_MIN     40

/* ---- the terminal ---------------------------------------------------------------------------- */

/* The abilities of the terminal that standard output goes to, if it goes to one. */
struct terminal {
	bool color; /* standard output is a terminal with colours, and NO_COLOR is not set */
	bool utf8;  /* by the locale, terminal or not */
	unsigned int width; /* columns; 0: no terminal */
};

/* The program's own locale stays "C": numbers look the same everywhere. */
static bool locale_is_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool utf8;

	if (!locale)
		return false;
	utf8 = !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");
	freelocale(locale);
	return utf8;
}

static unsigned int width_of(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col)
		return WIDTH_DEFAULT;
	return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
}

static void terminal__init(struct terminal *terminal)
{
	const char *type = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool is_terminal = isatty(STDOUT_FILENO);

	*terminal = (struct terminal){
		.color = is_terminal && !(no_color && *no_color) && type && strcmp(type, "dumb"),
		.utf8 = locale_is_utf8(),
		.width = is_terminal ? width_of(STDOUT_FILENO) : 0,
	};
}

/* ---- options --------------------------------------------------------------------------------- */

struct arguments {
	struct report_options report;
	bool tree, callers, min_given, intel, att;
	const char *by; /* NULL: not given */
	unsigned int top;
	struct input_options in;
};

static int take_min(const struct given_option *o)
{
	struct arguments *arguments = o->fields;

	arguments->min_given = true;
	return parse_share(o->value, &arguments->report.min_share);
}

static const struct cli_option rows[] = {
	{"by", .has_value = true, .take = option_text, .field = offsetof(struct arguments, by)},
	{"wall", .take = option_set, .field = offsetof(struct arguments, report.wall)},
	{"parked", .take = option_set, .field = offsetof(struct arguments, report.parked)},
	{"tree", .take = option_set, .field = offsetof(struct arguments, tree)},
	{"callers", .take = option_set, .field = offsetof(struct arguments, callers)},
	{"min", .has_value = true, .take = take_min, .expected = "a share, as in 0.5% or 0.005"},
	{"top", .has_value = true, .take = option_number, .field = offsetof(struct arguments, top),
	 .min = 1, .max = TOP_MAX, .expected = "a number of rows"},
	{"java-signatures", .take = option_set,
	 .field = offsetof(struct arguments, in.replay.full_names)},
	INPUT_ROOT_ROW(offsetof(struct arguments, in.root)),
	INPUT_SPAN_ROW(offsetof(struct arguments, in)),
	INPUT_FILTER_ROWS(offsetof(struct arguments, in)),
	{"annotate", .has_value = true, .take = option_text,
	 .field = offsetof(struct arguments, report.annotate)},
	{"asm", .take = option_set, .field = offsetof(struct arguments, report.assembly)},
	{"intel", .take = option_set, .field = offsetof(struct arguments, intel)},
	{"att", .take = option_set, .field = offsetof(struct arguments, att)},
	{"source", .take = option_set, .field = offsetof(struct arguments, report.whole_source)},
	{"json", .take = option_set, .field = offsetof(struct arguments, report.json)},
	{},
};

/* The meaning of --by depends on --wall, which may come later. */
static int check_by(struct arguments *arguments)
{
	struct report_options *report = &arguments->report;

	if (!arguments->by)
		return 0;
	return report->wall ? report_wall_by_parse(arguments->by, &report->wall_by)
			    : report_by_parse(arguments->by, &report->by);
}

/* 0, or the status of a wrong use. */
static int check_annotation(struct arguments *arguments)
{
	struct report_options *report = &arguments->report;

	if (!report->annotate) {
		if (report->assembly || report->whole_source)
			return usage_error(&cmd_report, "%s needs --annotate",
					   report->assembly ? "--asm" : "--source");
		if (arguments->intel || arguments->att)
			return usage_error(&cmd_report, "--intel and --att need --asm");
		return 0;
	}
	if (arguments->by || arguments->tree || report->wall)
		return usage_error(&cmd_report, "--annotate has no %s",
				   arguments->by     ? "--by"
				   : arguments->tree ? "--tree"
						     : "--wall");
	if ((arguments->intel || arguments->att) && !report->assembly)
		return usage_error(&cmd_report, "--intel and --att need --asm");
	if (arguments->intel && arguments->att)
		return usage_error(&cmd_report, "--intel or --att, not both");
	report->shape = REPORT_ANNOTATION;
	report->syntax = arguments->att ? SYNTAX_ATT : SYNTAX_INTEL;
	return 0;
}

static int parse_options(struct arguments *arguments, int argc, char **argv)
{
	struct terminal terminal;
	int status = options__parse(&cmd_report, arguments, argc, argv);

	if (status)
		return status;
	status = inputs__check(&cmd_report, &arguments->in, argv + optind, (size_t)(argc - optind));
	if (status)
		return status;
	if (check_by(arguments))
		return usage_error(&cmd_report, "--by %s: expected %s", arguments->by,
				   arguments->report.wall
					   ? "state, function, thread or holder"
					   : "function, thread, process, dso, line, service, "
					     "container, unit or user");
	if (arguments->report.wall && arguments->tree)
		return usage_error(&cmd_report, "--wall has no --tree");
	if (arguments->report.parked && !arguments->report.wall)
		return usage_error(&cmd_report, "--parked needs --wall");
	if (arguments->callers && !arguments->tree)
		return usage_error(&cmd_report, "--callers needs --tree");
	status = check_annotation(arguments);
	if (status)
		return status;
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

/* The table is of CPU time, and the filter keeps none of that. */
static void print_hint_at_waits(const char *name, const struct input *input)
{
	struct figures figures;

	figures__init(&figures, input->profile);
	if (input->profile->clause_count && !input->profile->sample_count &&
	    figures.value[FIGURE_LIVED])
		log_print(LOG_WARNING,
			  "%s: the filter keeps only waits: `report --wall` prints them", name);
}

static int report_input(char *const *paths, size_t count, struct arguments *arguments)
{
	_cleanup_free_ char *name = inputs__name(paths, count, &arguments->in);
	struct export_left_out left_out = {};
	struct export_request request = {
		.out = stdout, .top = arguments->top, .left_out = &left_out};
	struct input input = {};
	int err;

	arguments->in.waits = arguments->report.wall;
	err = inputs__open(paths, count, &arguments->in, &input);
	if (err)
		return EXIT_FAILED;
	request.profile = input.profile;
	if (!arguments->report.wall)
		print_hint_at_waits(name ?: "", &input);
	err = report_write(&request, &arguments->report);
	if (err == -ENOENT && arguments->report.annotate)
		log_print(
			LOG_ERROR,
			"%s: no function and no line %s: `report --by function` and `--by line` list them",
			name ?: "", arguments->report.annotate);
	else
		err = print_ended(err);
	if (!err)
		print_left_out(name ?: "", &left_out);
	input__close(&input);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_report(int argc, char **argv)
{
	struct arguments arguments = {.report = {.by = REPORT_FUNCTION},
				      .in = {.replay = {.symbols = {.cache = true}}}};
	int status = parse_options(&arguments, argc, argv);

	if (!status)
		status = report_input(argv + optind, (size_t)(argc - optind), &arguments);
	profile_filter__fini(&arguments.in.filter);
	return status;
}

const struct command cmd_report = {
	.name = "report",
	.arguments =
		"IN[@SLICE]… [FILTER…] [--by function|thread|process|dso|line|service|container|unit|user]\n"
		"                      [--tree [--callers]]\n"
		"                      [--annotate FUNCTION|FILE:LINE [--asm [--intel|--att]] [--source]]\n"
		"                      [--wall [--by state|function|thread|holder] [--parked]]\n"
		"                      [--min SHARE] [--top N] [--java-signatures] [--root WHAT]\n"
		"                      [--json] [--service NAME --span SPAN]",
	.summary = "print where CPU time was spent",
	.help = "  sysprof report x.sysprof\n"
		"  sysprof report x.sysprof --by thread --top 10\n"
		"  sysprof report x.sysprof --by service\n"
		"  sysprof report x.sysprof --tree --min 2%\n"
		"  sysprof report x.sysprof --tree --callers\n"
		"  sysprof report CPU.1234.cpuprofile\n"
		"  sysprof report x.sysprof --wall --by function\n"
		"  sysprof report x.sysprof --annotate sum_order --asm\n"
		"  sysprof report x.sysprof@10s-20s --process java --focus parse --tree\n"
		"\n"
		"IN is a recording, or a profile in any format that `convert` reads; - is standard input. Several\n"
		"files are one profile.\n"
		"\n"
		"      --by WHAT    function (default), thread, process, dso, line, service, container,\n"
		"                   unit or user\n"
		"      --wall       all time of the threads, not CPU time: of a recording with waits;\n"
		"                   by state (default), function, thread or holder\n"
		"      --parked     with --wall: event loops and idle threads of pools as any other\n"
		"      --tree       a call tree, from the roots down; by thread, process, service, …: one each\n"
		"      --callers    with --tree: the functions with most samples, and their callers\n"
		"      --annotate WHAT  the lines of a function, or of that with FILE:LINE, and their samples;\n"
		"                   its source is as the recording has it\n"
		"      --asm        with --annotate: instructions, too, in Intel's syntax (--intel) or AT&T's (--att)\n"
		"      --source     with --annotate: all lines of its files\n"
		"      --min SHARE  leave out smaller shares, as in 0.5% or 0.005; default of a tree: 0.5%\n"
		"      --top N      number of rows, default of a table: 40\n"
		"      --java-signatures  Java methods with the types of their parameters and result\n"
		"      --root WHAT  what the first field of folded stacks is: thread, process or frame;\n"
		"                   default: thread or frame, as all lines look\n"
		"      --json       print JSON (docs/report.schema.json)\n"
		"      --span SPAN     of a directory of windows (sysprof agent --sink dir:…) or a spool, with --service\n"
		"                      NAME: what began in this time, as in '-1h' or '1 day ago+1h' (sysprof diff --old)\n"
		"\n" INPUT_FILTER_HELP "\n"
		"The range, or +/-, is a 95 % confidence interval of the share. On a terminal, names of kernel\n"
		"functions, libraries and JIT code have colours (NO_COLOR=1: none).\n",
	.run = run_report,
	.options = rows,
};
