/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter/filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "base/parse.h"

#define CPU_MAX	    65535u
#define PRINTED_MAX (1u << 20) /* bytes of profile_filter__parse()'s text */

/* How several clauses of a kind go together. */
enum filter_group { TOGETHER, EACH, IN_ORDER };

static const char *const names[FILTER_KIND_COUNT] = {
#define X(id, name, group, value) [FILTER_##id] = name,
	FILTER_CLAUSES(X)
#undef X
};

static const enum filter_group groups[FILTER_KIND_COUNT] = {
#define X(id, name, group, value) [FILTER_##id] = group,
	FILTER_CLAUSES(X)
#undef X
};

const char *filter_kind_name(enum filter_kind kind)
{
	return names[kind];
}

/* ---- values ---------------------------------------------------------------------------------- */

static int take_name(struct filter_clause *clause, struct failure *failure)
{
	clause->drops = *clause->text == '!';
	return clause->text[clause->drops]
		       ? 0
		       : fail(failure, -EINVAL, "--%s !: no name after the !", names[clause->kind]);
}

static int take_slice(struct filter_clause *clause, struct failure *failure)
{
	(void)failure;
	slice__parse(&clause->slice, clause->text);
	return 0;
}

static int take_cpus(struct filter_clause *clause, struct failure *failure)
{
	int err = parse_cpu_list(clause->text, CPU_MAX, &clause->cpus, &clause->cpu_count);

	return err && err != -ENOMEM ? fail(failure, -EINVAL,
					    "--cpu %s: expected CPUs, as in 0,2-4", clause->text)
				     : err;
}

static int state_by_name(const char *name, size_t size)
{
	for (int state = WALL_NONE + 1; state < WALL_STATE_COUNT; state++) {
		const char *known = wall_state_name((enum wall_state)state);

		if (strlen(known) == size && !memcmp(known, name, size))
			return state;
	}
	return WALL_NONE;
}

#define X(id, name, text) name " "
static const char known_states[] = WALL_STATES(X);
#undef X

static int take_states(struct filter_clause *clause, struct failure *failure)
{
	const char *at = clause->text;

	for (;;) {
		size_t size = strcspn(at, ",");
		int state = state_by_name(at, size);

		if (state == WALL_NONE)
			return fail(failure, -EINVAL,
				    "--state %s: expected states, as in lock,disk, of%s"
				    "(parked is no state, but a kind of thread)",
				    clause->text, known_states);
		clause->states |= 1u << state;
		if (!at[size])
			return 0;
		at += size + 1;
	}
}

static int take_pattern(struct filter_clause *clause, struct failure *failure)
{
	struct failure why = {};

	clause->pattern = pattern__new(clause->text, &why);
	if (clause->pattern)
		return 0;
	if (!*why.what)
		return -ENOMEM;
	return fail(failure, -EINVAL, "--%s %s: %s", names[clause->kind], clause->text, why.what);
}

static int take_collapse(struct filter_clause *clause, struct failure *failure)
{
	return strcmp(clause->text, "dso") ? take_pattern(clause, failure) : 0;
}

typedef int take_fn(struct filter_clause *clause, struct failure *failure);

static take_fn *const takers[FILTER_KIND_COUNT] = {
#define NAME			  take_name
#define SLICE			  take_slice
#define CPUS			  take_cpus
#define STATES			  take_states
#define PATTERN			  take_pattern
#define COLLAPSE		  take_collapse
#define X(id, name, group, value) [FILTER_##id] = value,
	FILTER_CLAUSES(X)
#undef X
};

static void free_clause(struct filter_clause *clause)
{
	free(clause->text);
	pattern__free(clause->pattern);
	free(clause->cpus);
}

static int make_clause(struct filter_clause *clause, enum filter_kind kind, const char *value,
		       struct failure *failure)
{
	int err;

	*clause = (struct filter_clause){.kind = kind};
	if (!*value)
		return fail(failure, -EINVAL, "%s%s: the value is empty",
			    kind == FILTER_SLICE ? "" : "--", names[kind]);
	if (strlen(value) > FILTER_TEXT_MAX)
		return fail(failure, -E2BIG, "--%s: longer than %d bytes", names[kind],
			    FILTER_TEXT_MAX);
	clause->text = strdup(value);
	err = clause->text ? takers[kind](clause, failure) : -ENOMEM;
	if (err)
		free_clause(clause);
	if (err == -ENOMEM)
		fail(failure, err, "out of memory");
	return err;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* The order of a clause and a new one; 0: they are the same. */
static int order_of_clauses(const struct filter_clause *a, enum filter_kind kind, const char *value)
{
	int order = order_of((int)a->kind, (int)kind) ?: strcmp(a->text, value);

	return order && a->kind == kind && groups[kind] == IN_ORDER ? -1 : order;
}

/* Where a new one comes. SIZE_MAX: it is there. */
static size_t place_of(const struct profile_filter *filter, enum filter_kind kind,
		       const char *value)
{
	size_t place = 0;

	for (size_t at = 0; at < filter->count; at++) {
		int order = order_of_clauses(&filter->clauses[at], kind, value);

		if (!order)
			return SIZE_MAX;
		if (order < 0)
			place = at + 1;
	}
	return place;
}

int profile_filter__add(struct profile_filter *filter, enum filter_kind kind, const char *value,
			struct failure *failure)
{
	size_t at = place_of(filter, kind, value);
	struct filter_clause clause;
	int err;

	if (at == SIZE_MAX)
		return 0;
	if (filter->count == FILTER_CLAUSES_MAX)
		return fail(failure, -E2BIG, "more than %d filters", FILTER_CLAUSES_MAX);
	err = make_clause(&clause, kind, value, failure);
	if (err)
		return err;
	memmove(&filter->clauses[at + 1], &filter->clauses[at],
		(filter->count - at) * sizeof(clause));
	filter->clauses[at] = clause;
	filter->count++;
	return 0;
}

int profile_filter__add_all(struct profile_filter *filter, const struct profile_filter *other,
			    struct failure *failure)
{
	int err = 0;

	for (size_t i = 0; i < other->count && !err; i++)
		err = profile_filter__add(filter, other->clauses[i].kind, other->clauses[i].text,
					  failure);
	return err;
}

void profile_filter__fini(struct profile_filter *filter)
{
	for (size_t i = 0; i < filter->count; i++)
		free_clause(&filter->clauses[i]);
	filter->count = 0;
}

size_t profile_filter__group(const struct profile_filter *filter, size_t first)
{
	size_t end = first + 1;

	if (groups[filter->clauses[first].kind] != TOGETHER)
		return 1;
	while (end < filter->count && filter->clauses[end].kind == filter->clauses[first].kind)
		end++;
	return end - first;
}

/* ---- as text --------------------------------------------------------------------------------- */

static bool is_plain(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80 ||
	       (c && strchr("_-.,:/@%+=", c));
}

/* A word that a shell reads back. */
static void print_word(FILE *out, const char *prefix, const char *name, const char *text)
{
	bool plain = true;

	for (const char *c = text; *c; c++)
		plain &= is_plain(*c);
	fprintf(out, "%s%s%s%s", plain ? "" : "'", prefix, name, *name == '@' ? "" : "=");
	for (const char *c = text; *c; c++)
		if (*c == '\'')
			fputs("'\\''", out);
		else
			fputc(*c, out);
	fputs(plain ? "" : "'", out);
}

char *profile_filter__print_clauses(const struct profile_filter *filter, size_t first, size_t count)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = first; out && i < first + count; i++) {
		const struct filter_clause *clause = &filter->clauses[i];

		fputs(i == first ? "" : " ", out);
		print_word(out, clause->kind == FILTER_SLICE ? "" : "--", names[clause->kind],
			   clause->text);
	}
	if (!out || fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

char *profile_filter__print(const struct profile_filter *filter)
{
	return profile_filter__print_clauses(filter, 0, filter->count);
}

/* The next word at *text, without its quotes, into `word`. False: there is none. */
static bool take_word(const char **text, char *word)
{
	bool quoted = false;

	while (**text == ' ')
		++*text;
	if (!**text)
		return false;
	for (; **text && (quoted || **text != ' '); ++*text) {
		if (**text == '\'')
			quoted = !quoted;
		else if (**text == '\\' && !quoted && (*text)[1])
			*word++ = *++*text;
		else
			*word++ = **text;
	}
	*word = '\0';
	return true;
}

static int parse_word(struct profile_filter *filter, const char *word, struct failure *failure)
{
	if (*word == '@')
		return profile_filter__add(filter, FILTER_SLICE, word + 1, failure);
	for (int kind = 0; kind < FILTER_KIND_COUNT; kind++) {
		size_t size = strlen(names[kind]);

		if (!strncmp(word, "--", 2) && !strncmp(word + 2, names[kind], size) &&
		    word[2 + size] == '=')
			return profile_filter__add(filter, (enum filter_kind)kind, word + 3 + size,
						   failure);
	}
	return fail(failure, -EINVAL, "not a filter: %s", word);
}

int profile_filter__parse(struct profile_filter *filter, const char *text, struct failure *failure)
{
	_cleanup_free_ char *word = NULL;
	int err = 0;

	if (strlen(text) > PRINTED_MAX)
		return fail(failure, -E2BIG, "not a filter: too long");
	word = malloc(strlen(text) + 1);
	if (!word)
		return fail(failure, -ENOMEM, "out of memory");
	while (!err && take_word(&text, word))
		err = parse_word(filter, word, failure);
	return err;
}
