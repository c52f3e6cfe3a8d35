/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands, as data, one file each. The options of a command are rows of a table, from which
 * parsing, messages and the shells' completions are made.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"

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

/* A given option: its row, its value, and the struct that takes it. */
struct given_option {
	const struct cli_option *row;
	const char *value; /* of argv; NULL: it has none */
	void *fields;
	struct failure *failure;
};

/* 0 or negative errno. Without a text in `failure` the message has what was expected. */
typedef int take_option_fn(const struct given_option *o);

struct cli_option {
	const char *name; /* the long one; NULL ends the table */
	char letter;	  /* the short one; 0: none */
	bool has_value;
	take_option_fn *take;	  /* NULL: the option is ignored */
	size_t field;		  /* offset of what is set */
	uint64_t min, max;	  /* of a number; min: what option_choose() sets */
	const char *expected;	  /* what the value should be; NULL: a number from min to max */
	const char *const *words; /* of option_word(), NULL-ended */
	bool value_is_optional;	  /* --name or --name=VALUE */
};

#define OPTIONS_MAX	      64 /* rows of a table */

#define option_field(o, type) ((type *)((char *)(o)->fields + (o)->row->field))

take_option_fn option_set, option_clear; /* a bool */
take_option_fn option_choose;		 /* an enum */
take_option_fn option_word;		 /* an enum, by its word */
take_option_fn option_number;		 /* an unsigned int */
take_option_fn option_text;		 /* a const char *, of argv */

/*
 * Take the options in argv; argv[optind] is the first other word. `stops`: options end there.
 * 0 or negative errno, `failure` filled.
 */
int options__take(const struct cli_option *rows, bool stops, void *fields, int argc, char **argv,
		  struct failure *failure);

struct command {
	const char *name;
	const char *arguments;		   /* for the usage line */
	const char *summary;		   /* one line */
	const char *help;		   /* examples first, then the options */
	int (*run)(int argc, char **argv); /* argv[0] is the command; returns an exit code */
	const struct cli_option *options;
	bool stops;			  /* options end at the first other word */
	void (*print_options)(FILE *out); /* behind the help; NULL: it has them */
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

/* Those of a command. 0, or EXIT_USAGE after a message. */
int options__parse(const struct command *command, void *fields, int argc, char **argv);

/* "sysprof COMMAND: what is wrong", with where to read on. Returns EXIT_USAGE. */
int usage_error(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Has standard output taken everything? `err`: of printing so far. 0, or negative errno after a
 * message.
 */
int print_ended(int err);

#endif
