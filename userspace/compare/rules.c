/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/rules.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "compare/comparison.h"

#define SIZE_MIN   0.01 /* of the whole on either side: rules skip smaller functions */
#define NEEDED_Z   3.24 /* 5 % on both sides, detected in 9 of 10 cases */
#define NEEDED_MAX 1e12
#define NO_TEST	   UINT32_MAX

static const char *skip_blanks(const char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

/* "> 2%" or "> 0.5 %" */
static int parse_tolerance(struct compare_rule *rule, const char *at)
{
	char *end;

	if (*at != '>')
		return -EINVAL;
	at = skip_blanks(at + 1);
	if (!isdigit((unsigned char)*at))
		return -EINVAL;
	rule->tolerance = strtod(at, &end) / 100;
	at = skip_blanks(end);
	if (*at != '%' || *skip_blanks(at + 1) || !(rule->tolerance <= 1e6))
		return -EINVAL;
	return 0;
}

int compare_rule__parse(struct compare_rule *rule, const char *text)
{
	const char *at = skip_blanks(text), *greater = strrchr(text, '>');
	size_t size;

	*rule = (struct compare_rule){.text = text};
	if (!strncmp(at, "total", 5)) {
		rule->is_total = true;
		return parse_tolerance(rule, skip_blanks(at + 5));
	}
	if (!strncmp(at, "waiting", 7)) {
		rule->is_total = rule->is_waiting = true;
		return parse_tolerance(rule, skip_blanks(at + 7));
	}
	rule->is_waiting = !strncmp(at, "state", 5);
	at += rule->is_waiting ? 5 : strncmp(at, "function", 8) ? 0 : 8;
	if (at == skip_blanks(text) || !isspace((unsigned char)*at) || !greater)
		return -EINVAL;
	at = skip_blanks(at);
	if (greater <= at)
		return -EINVAL;
	size = (size_t)(greater - at);
	while (size && isspace((unsigned char)at[size - 1]))
		size--;
	if (!size || size + sizeof("[[]waiting: ]") >= sizeof(rule->pattern))
		return -EINVAL;
	snprintf(rule->pattern, sizeof(rule->pattern),
		 rule->is_waiting ? "[[]waiting: %.*s]" : "%.*s", (int)size, at);
	return parse_tolerance(rule, greater);
}

/* ---- one test -------------------------------------------------------------------------------- */

static const struct compare_row *row_of(const struct compare_result *result, uint32_t test)
{
	return find_first(result->rows, result->row_count, row, row->test == test);
}

/*
 * Share view: how much the whole may have grown undetected, ÷ OLD. There the whole is measured by
 * code that seems unchanged, so without findings it has no error. Returns the largest change of a
 * function's own code that could be missed.
 */
static double unnoticed(const struct compare_result *result)
{
	double most = 0;

	if (result->view != COMPARE_SHARE)
		return 0;
	for (size_t i = 1; i < result->test_count; i++) {
		const struct compare_test *t = &result->tests[i];

		if (t->is_self || t->is_only)
			most = fmax(most, NEEDED_Z * sqrt(t->difference.variance));
	}
	return most / result->tests[0].side[COMPARE_OLD].value;
}

/* The user chose the function in advance, so p counts, not q. */
static bool is_named(const struct compare_rule *rule)
{
	return !rule->is_total && !strpbrk(rule->pattern + (rule->is_waiting ? 3 : 0), "*?[\\");
}

static enum compare_answer judge_test(const struct compare_rule *rule,
				      const struct compare_result *result, uint32_t test)
{
	const struct compare_test *t = &result->tests[test];
	const struct compare_row *row = row_of(result, test);
	bool found = test == 0 || t->found || (is_named(rule) && t->p <= result->level);
	/* the whole is exact, except in the share view */
	bool doubtful = (test || result->view == COMPARE_SHARE) &&
			compare_test__is_doubtful(t, result);

	if (row && row->verdict == COMPARE_IS_MOVED)
		return COMPARE_NOT_WORSE;
	if (!t->has_relative)
		return !found || t->difference.value < 0 ? COMPARE_NOT_WORSE
		       : doubtful			 ? COMPARE_CANNOT_TELL
							 : COMPARE_WORSE;
	if (t->relative_high <= rule->tolerance)
		return test || unnoticed(result) <= rule->tolerance ? COMPARE_NOT_WORSE
								    : COMPARE_CANNOT_TELL;
	return found && !doubtful && t->relative_low > rule->tolerance ? COMPARE_WORSE
								       : COMPARE_CANNOT_TELL;
}

/* Runs or samples until the interval is on one side of the tolerance. */
static void set_needed(struct compare_ruling *ruling, const struct compare_rule *rule,
		       const struct compare_result *result)
{
	const struct compare_test *t = &result->tests[ruling->test];
	double error = NEEDED_Z * t->relative_error, factor;
	double files = (double)min_u64(result->side[COMPARE_OLD].files,
				       result->side[COMPARE_NEW].files);
	double ticks = (double)min_u64(result->side[COMPARE_OLD].ticks,
				       result->side[COMPARE_NEW].ticks);

	if (!ruling->test)
		error = fmax(error, unnoticed(result));
	factor = pow(error / (t->relative - rule->tolerance), 2);
	if (!(ticks * factor < NEEDED_MAX))
		return;
	ruling->runs_needed = (uint64_t)fmax(ceil(files * factor), COMPARE_RUNS_MIN);
	ruling->samples_needed = (uint64_t)ceil(ticks * factor / (double)result->sample_ticks);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static bool is_matched(const struct compare_rule *rule, const struct comparison *c,
		       const struct compare_test *t)
{
	return t->function != COMPARE_WHOLE && !t->is_self &&
	       !fnmatch(rule->pattern, comparison__name(c, t->function), 0);
}

static bool is_large(const struct compare_result *result, const struct compare_test *t)
{
	for (int i = 0; i < COMPARE_SIDES; i++)
		if (t->side[i].value >= SIZE_MIN * result->tests[0].side[i].value)
			return true;
	return false;
}

static bool is_known(const struct compare_rule *rule, const struct comparison *c)
{
	for (uint32_t i = 1; i < strtab__count(c->merged.names); i++)
		if (!fnmatch(rule->pattern, strtab__get(c->merged.names, i), 0))
			return true;
	return false;
}

struct compare_ruling compare_rule__apply(const struct compare_rule *rule,
					  const struct comparison *c,
					  const struct compare_result *result)
{
	struct compare_ruling ruling = {COMPARE_NOT_WORSE, NO_TEST, 0, 0};
	uint32_t count;

	if (rule->is_waiting) {
		c = c->waiting;
		result = result->waiting;
	}
	if (!result)
		return (struct compare_ruling){COMPARE_CANNOT_TELL, NO_TEST, 0, 0};
	count = rule->is_total ? 1 : (uint32_t)result->test_count;
	if (result->refused || (!rule->is_total && !is_known(rule, c)))
		return (struct compare_ruling){COMPARE_CANNOT_TELL, NO_TEST, 0, 0};
	for (uint32_t i = rule->is_total ? 0 : 1; i < count; i++) {
		enum compare_answer answer;

		if (!rule->is_total && (!is_matched(rule, c, &result->tests[i]) ||
					!is_large(result, &result->tests[i])))
			continue;
		answer = judge_test(rule, result, i);
		if (answer > ruling.answer || ruling.test == NO_TEST) {
			ruling.answer = answer;
			ruling.test = i;
		}
	}
	if (ruling.answer == COMPARE_CANNOT_TELL)
		set_needed(&ruling, rule, result);
	return ruling;
}
