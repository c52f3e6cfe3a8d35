/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands, as data: one file each, listed in main.c. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <stdio.h>

#include "cli/options.h"

/* Exit codes of the contract. COMMAND's own status may come instead of EXIT_DONE. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_WORSE = 3,	      /* diff: by a rule */
	EXIT_CANNOT_TELL = 4, /* diff: whether it is */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL_BASE = 128,
};

struct command {
	const char *name;
	const char *arguments;		   /* for the usage line */
	const char *summary;		   /* one line */
	const char *help;		   /* examples first, then the options */
	int (*run)(int argc, char **argv); /* argv[0] is the command; returns an exit code */
	const struct cli_option *options;  /* NULL: none in a table */
	bool stops;			   /* options end at the first word that is none */
	void (*print_options)(FILE *out);  /* behind the help; NULL: it has them */
};

/* NULL-ended, in the order of `help`. */
extern const struct command *const commands[];

extern const struct command cmd_record;
extern const struct command cmd_convert;
extern const struct command cmd_report;
extern const struct command cmd_diff;
extern const struct command cmd_compare;
extern const struct command cmd_open;
extern const struct command cmd_agent;
extern const struct command cmd_perf_map;
extern const struct command cmd_check;

/* "sysprof COMMAND: what is wrong", with where to read on. Returns EXIT_USAGE. */
int usage_error(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
