/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a command as rows of a table: parsing, messages and the shells' completions are made of it. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

struct command;

/* An option of the command line, to be taken: its row, its value, and the struct that it is for. */
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
	take_option_fn *take;	/* NULL: the option is ignored */
	size_t field;		/* offset of what is set */
	uint64_t min, max;	/* of a number; min: what option_choose() sets */
	const char *expected;	/* what the value should be; NULL: a number from min to max */
	bool value_is_optional; /* --name or --name=VALUE */
};

#define OPTIONS_MAX	      48 /* rows of a table */

#define option_field(o, type) ((type *)((char *)(o)->fields + (o)->row->field))

take_option_fn option_set, option_clear; /* a bool */
take_option_fn option_choose;		 /* an enum */
take_option_fn option_number;		 /* an unsigned int */
take_option_fn option_text;		 /* a const char *, of argv */

/*
 * Take the options in argv; argv[optind] is the first word that is none. `stops`: options end at the first such word.
 * 0 or negative errno, `failure` filled.
 */
int options__take(const struct cli_option *rows, bool stops, void *fields, int argc, char **argv,
		  struct failure *failure);

/* Those of a command. 0, or EXIT_USAGE after a message. */
int options__parse(const struct command *command, void *fields, int argc, char **argv);

#endif
