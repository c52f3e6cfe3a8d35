/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/commands.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/give_up.h"
#include "cli/habits.h"

#define LONG_ONLY 256 /* and the number of the row */
#define OPERAND	  1

const struct command *const commands[] = {
	&cmd_record, &cmd_convert, &cmd_report,	  &cmd_diff,  &cmd_compare,
	&cmd_open,   &cmd_agent,   &cmd_perf_map, &cmd_check, NULL,
};

int usage_error(const struct command *command, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log_print(LOG_ERROR, "%s: %s", command->name, text);
	log_print(LOG_ERROR, "see 'sysprof help %s'", command->name);
	return EXIT_USAGE;
}

int print_ended(int err)
{
	errno = 0;
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = errno ? -errno : -EIO;
	if (err == -EPIPE) { /* its reader has seen enough, as `head` */
		give_up__restore_signals();
		raise(SIGPIPE);
	} else if (err) {
		log_print(LOG_ERROR, "cannot write to standard output: %s", strerror(-err));
	}
	return err;
}

/* ---- options --------------------------------------------------------------------------------- */

struct getopt_table {
	struct option options[OPTIONS_MAX + 1];
	char letters[2 * OPTIONS_MAX + 6];
};

int option_set(const struct given_option *o)
{
	*option_field(o, bool) = true;
	return 0;
}

int option_clear(const struct given_option *o)
{
	*option_field(o, bool) = false;
	return 0;
}

int option_choose(const struct given_option *o)
{
	*option_field(o, unsigned int) = (unsigned int)o->row->min;
	return 0;
}

int option_word(const struct given_option *o)
{
	for (unsigned int i = 0; o->row->words[i]; i++) {
		if (strcmp(o->value, o->row->words[i]))
			continue;
		*option_field(o, unsigned int) = i;
		return 0;
	}
	return -EINVAL;
}

int option_number(const struct given_option *o)
{
	uint64_t number;

	if (parse_u64(o->value, o->row->min, o->row->max, &number))
		return -EINVAL;
	*option_field(o, unsigned int) = (unsigned int)number;
	return 0;
}

int option_text(const struct given_option *o)
{
	*option_field(o, const char *) = o->value;
	return 0;
}

/*
 * "-" in front: words that are no options are returned, too, as OPERAND. ":": a missing value is
 * another error than an unknown option. "@": of "-@5s-", a slice of standard input.
 */
static void make_table(const struct cli_option *rows, bool stops, struct getopt_table *table)
{
	char *letter = stpcpy(table->letters, stops ? "+:" : "-:@::");
	size_t i;

	for (i = 0; rows[i].name; i++) {
		int has_value = rows[i].value_is_optional ? optional_argument : rows[i].has_value;

		table->options[i] = (struct option){rows[i].name, has_value, NULL,
						    rows[i].letter ? rows[i].letter
								   : LONG_ONLY + (int)i};
		if (rows[i].letter)
			*letter++ = rows[i].letter;
		if (rows[i].letter && rows[i].has_value)
			*letter++ = ':';
	}
	*letter = '\0';
	table->options[i] = (struct option){};
}

/* The end of the table: no row has this letter. */
static const struct cli_option *row_of(const struct cli_option *rows, int option)
{
	if (option >= LONG_ONLY)
		return &rows[option - LONG_ONLY];
	while (rows->name && rows->letter != option)
		rows++;
	return rows;
}

/*
 * What getopt_long() has rejected: `optopt` is the letter or the row's value; 0: an unknown long
 * option. Within "-qZ" optind is still that of the word, so argv[optind - 1] is the word before.
 */
static int refuse(const struct cli_option *rows, int verdict, const char *word,
		  struct failure *failure)
{
	if (verdict == ':' && word[1] == '-')
		return fail(failure, -ENODATA, "%s requires a value", word);
	if (verdict == ':')
		return fail(failure, -ENODATA, "-%c requires a value", optopt);
	if (!optopt)
		return fail(failure, -ENOENT, "unknown option '%s'", word);
	if (!row_of(rows, optopt)->name)
		return fail(failure, -ENOENT, "unknown option '-%c'", optopt);
	return fail(failure, -EINVAL, "%s: this option takes no value", word);
}

static int take(const struct given_option *o)
{
	const struct cli_option *row = o->row;
	int err = row->take ? row->take(o) : 0;
	char name[64];

	if (!err || *o->failure->what)
		return err;
	if (row->letter)
		snprintf(name, sizeof(name), "-%c", row->letter);
	else
		snprintf(name, sizeof(name), "--%s", row->name);
	if (row->expected)
		return fail(o->failure, err, "%s %s: expected %s", name, o->value, row->expected);
	return fail(o->failure, err, "%s %s: expected a whole number from %llu to %llu", name,
		    o->value, (unsigned long long)row->min, (unsigned long long)row->max);
}

static bool is_operand(int option, const char *word)
{
	return option == OPERAND || (option == '@' && !strncmp(word, "-@", 2));
}

/* Behind the options, in their order. */
static void put_operands_last(char **argv, char *const *operands, int count)
{
	int made = 1;

	for (int i = 1; i < optind; i++)
		if (argv[i])
			argv[made++] = argv[i];
	memcpy(argv + made, operands, (size_t)count * sizeof(*operands));
	optind = made;
}

int options__take(const struct cli_option *rows, bool stops, void *fields, int argc, char **argv,
		  struct failure *failure)
{
	_cleanup_free_ char **operands = calloc((size_t)argc + 1, sizeof(*operands));
	struct getopt_table table;
	int option, count = 0, err = 0;

	if (!operands)
		return fail(failure, -ENOMEM, "out of memory");
	make_table(rows, stops, &table);
	optind = 0; /* the order may be another one than in the call before */
	while (!err &&
	       (option = getopt_long(argc, argv, table.letters, table.options, NULL)) != -1) {
		if (is_operand(option, argv[optind - 1])) {
			operands[count++] = argv[optind - 1];
			argv[optind - 1] = NULL;
			continue;
		}
		if (option == '@') { /* within "-q@5s" */
			option = '?';
			optopt = '@';
		}
		err = option == ':' || option == '?'
			      ? refuse(rows, option, argv[optind - 1], failure)
			      : take(&(struct given_option){row_of(rows, option), optarg, fields,
							    failure});
	}
	put_operands_last(argv, operands, count);
	return err;
}

/* What an option of other tools is here, or one that has no value there; "": nothing similar. */
static const char *similar(const struct command *command, char **argv)
{
	const char letter[] = {'-', (char)optopt, '\0'};

	return habit__find(command->name, optopt ? letter : argv[optind - 1]) ?: "";
}

int options__parse(const struct command *command, void *fields, int argc, char **argv)
{
	struct failure failure = {};
	int err = options__take(command->options, command->stops, fields, argc, argv, &failure);
	const char *instead = err == -ENOENT || err == -ENODATA ? similar(command, argv) : "";

	return err ? usage_error(command, "%s%s%s", failure.what, *instead ? ": " : "", instead)
		   : 0;
}
