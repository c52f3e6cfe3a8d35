/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by diff and compare: options, files read, the comparison written, the exit code. */
#ifndef CLI_DIFFING_H
#define CLI_DIFFING_H

#include <signal.h>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "compare/compare.h"
#include "compare/time_span.h"

#define DIFFING_RULES_MAX   64
#define DIFFING_SPANS_MAX   50
#define DIFFING_TOP_DEFAULT 20
#define DIFFING_TOP_MAX	    1000000

enum diff_format { DIFF_TEXT, DIFF_JSON, DIFF_MARKDOWN };

/* The first member of the struct that takes a command's options. */
struct diffing {
	struct compare_options compare;
	struct compare_rule rules[DIFFING_RULES_MAX];
	size_t rule_count;
	unsigned int format, top;
	struct input_options in;
	const char *output, *unit;
	char **files[COMPARE_SIDES];
	size_t file_count[COMPARE_SIDES];
	const volatile sig_atomic_t *stopped; /* NULL, or not 0 once files shall not be read */
	/* Of an agent's windows; the directory is the only file of OLD. */
	const char *service;
	struct time_span spans[COMPARE_SIDES][DIFFING_SPANS_MAX];
	size_t span_count[COMPARE_SIDES];
};

#define DIFFING_DEFAULTS                                                                           \
	{                                                                                          \
		.compare = {.run_noise = -1}, .top = DIFFING_TOP_DEFAULT,                          \
		.in = {.replay = {.symbols = {.cache = true}} }                                    \
	}

take_option_fn diffing__take_work, diffing__take_view, diffing__take_run_noise, diffing__take_rule,
	diffing__take_span, diffing__take_output;

/* Rows of an option table. */
/* clang-format off */
#define DIFFING_ROWS                                                                               \
	{"view", .has_value = true, .take = diffing__take_view,                                    \
	 .expected = "auto, share, second or run"},                                                \
	{"per", .has_value = true, .take = diffing__take_work, .min = 3,                             \
	 .expected = "a number of units of work, as in 12000 or '12000 requests'"},                \
	{"per-old", .has_value = true, .take = diffing__take_work, .min = 1u << COMPARE_OLD,         \
	 .expected = "a number of units of work"},                                                 \
	{"per-new", .has_value = true, .take = diffing__take_work, .min = 1u << COMPARE_NEW,         \
	 .expected = "a number of units of work"},                                                 \
	{"run-noise", .has_value = true, .take = diffing__take_run_noise,                          \
	 .expected = "a share, as in 3% or 0.03"},                                                 \
	{"fail-if", .has_value = true, .take = diffing__take_rule,                                 \
	 .expected = "a rule, as in 'total > 2%' or 'function parse_* > 5%'"},                     \
	{"top", .has_value = true, .take = option_number, .field = offsetof(struct diffing, top),  \
	 .min = 1, .max = DIFFING_TOP_MAX, .expected = "a number of rows"},                        \
	{"json", .take = option_choose, .field = offsetof(struct diffing, format),                 \
	 .min = DIFF_JSON},                                                                        \
	{"markdown", .take = option_choose, .field = offsetof(struct diffing, format),             \
	 .min = DIFF_MARKDOWN},                                                                    \
	{"output", 'o', .has_value = true, .take = diffing__take_output,                           \
	 .field = offsetof(struct diffing, output)},                                               \
	INPUT_FILTER_ROWS(offsetof(struct diffing, in))
/* clang-format on */

/* Do the options go together? 0, or EXIT_USAGE after a message. */
int diffing__check(const struct diffing *d, const struct command *command);

/*
 * Reads and compares the files. *answer: the worst of the rules, or without rules COMPARE_WORSE if
 * there is a difference, else COMPARE_CANNOT_TELL. The comparison is written if it is the `last`
 * one or has an answer. 0 or negative errno after a message.
 */
int diffing__run(const struct diffing *d, bool last, enum compare_answer *answer);

/* The exit code by the rules. */
int diffing__exit_code(const struct diffing *d, enum compare_answer answer);

#endif
