/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All states of the program at once, character by character (Thompson's construction): a state is in
 * the set once, so a character takes at most as many steps as the program has.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/utf8.h"
#include "filter/pattern_parse.h"

#define NO_RUNE	    UINT32_MAX /* before the text and behind it */
#define REPLACEMENT 0xfffdu

/* Numbers of steps, each once: `dense` has them in order of addition, `sparse` where in it. */
struct state_set {
	uint32_t *dense, *sparse;
	uint32_t count;
};

struct pattern {
	struct pattern_program program;
	struct state_set now, next;
	uint32_t *pending; /* a stack of states whose forks are to be followed */
	uint32_t *memory;
	int first; /* every match begins with this byte; -1: with several */
	uint64_t steps;
};

/* The two characters around a place in the text. */
struct place {
	uint32_t before, after;
};

static bool set_has(const struct state_set *set, uint32_t state)
{
	uint32_t at = set->sparse[state];

	return at < set->count && set->dense[at] == state;
}

static void set_add(struct state_set *set, uint32_t state)
{
	set->sparse[state] = set->count;
	set->dense[set->count++] = state;
}

static bool is_word(uint32_t rune)
{
	return rune == '_' || (rune >= '0' && rune <= '9') || (rune >= 'a' && rune <= 'z') ||
	       (rune >= 'A' && rune <= 'Z');
}

static bool holds(enum pattern_assertion assertion, struct place at)
{
	switch (assertion) {
	case ASSERT_TEXT_BEGIN:
		return at.before == NO_RUNE;
	case ASSERT_TEXT_END:
		return at.after == NO_RUNE;
	case ASSERT_LINE_BEGIN:
		return at.before == NO_RUNE || at.before == '\n';
	case ASSERT_LINE_END:
		return at.after == NO_RUNE || at.after == '\n';
	case ASSERT_WORD_EDGE:
		return is_word(at.before) != is_word(at.after);
	case ASSERT_NO_WORD_EDGE:
		return is_word(at.before) == is_word(at.after);
	}
	return false;
}

/* Adds a state and those that follow it without a character. True: one of them is the end. */
static bool follow(struct pattern *p, struct state_set *set, uint32_t state, struct place at)
{
	uint32_t depth = 0;

	p->pending[depth++] = state;
	while (depth) {
		const struct pattern_step *step;

		state = p->pending[--depth];
		if (set_has(set, state))
			continue;
		set_add(set, state);
		p->steps++;
		step = &p->program.steps.data[state];
		if (step->op == PATTERN_DONE)
			return true;
		if (step->op == PATTERN_FORK)
			p->pending[depth++] = step->other;
		if (step->op == PATTERN_FORK ||
		    (step->op == PATTERN_ASSERT && holds(step->first, at)))
			p->pending[depth++] = step->next;
	}
	return false;
}

static bool takes(const struct pattern_program *program, const struct pattern_step *step,
		  uint32_t rune)
{
	const struct pattern_range *ranges;
	size_t at;

	if (!step->count)
		return false;
	ranges = &program->ranges.data[step->first];
	at = partition_point(ranges, step->count, range, range->high < rune);
	return at < step->count && ranges[at].low <= rune;
}

static bool step_over(struct pattern *p, uint32_t rune, struct place behind)
{
	p->next.count = 0;
	p->steps += p->now.count;
	for (uint32_t i = 0; i < p->now.count; i++) {
		const struct pattern_step *step = &p->program.steps.data[p->now.dense[i]];

		if (step->op == PATTERN_RUNES && takes(&p->program, step, rune) &&
		    follow(p, &p->next, step->next, behind))
			return true;
	}
	return false;
}

/* The character at `at`, and where the next one is. NO_RUNE: the end. */
static uint32_t rune_at(const char *text, size_t size, size_t at, size_t *next)
{
	size_t length;

	*next = at + 1;
	if (at >= size)
		return NO_RUNE;
	if ((unsigned char)text[at] < 0x80)
		return (unsigned char)text[at];
	length = utf8_sequence(text + at, size - at);
	if (!length)
		return REPLACEMENT;
	*next = at + length;
	return utf8_code_point(text + at, length);
}

static void swap_sets(struct pattern *p)
{
	struct state_set swap = p->now;

	p->now = p->next;
	p->next = swap;
}

/* To the first place where a match can begin. */
static size_t skip_to_first(const struct pattern *p, const char *text, size_t size, size_t at)
{
	const char *found = at < size ? memchr(text + at, p->first, size - at) : NULL;

	return found ? (size_t)(found - text) : size;
}

int pattern__matches(struct pattern *p, const char *text, size_t size)
{
	size_t at = 0, next, after_next;
	uint32_t rune;
	struct place place = {NO_RUNE, NO_RUNE};

	p->now.count = 0;
	for (;;) {
		if (!p->now.count && p->first >= 0) /* no assertion looks at `before` then */
			at = skip_to_first(p, text, size, at);
		rune = rune_at(text, size, at, &next);
		place.after = rune;
		if (follow(p, &p->now, p->program.start, place))
			return 1;
		if (rune == NO_RUNE)
			return 0;
		if (p->steps > PATTERN_STEPS_MAX)
			return -E2BIG;
		place = (struct place){rune, rune_at(text, size, next, &after_next)};
		if (step_over(p, rune, place))
			return 1;
		swap_sets(p);
		at = next;
	}
}

void pattern__begin(struct pattern *p)
{
	p->steps = 0;
}

/* -1 if the program begins with anything but one ASCII character. */
static int first_byte(const struct pattern_program *program)
{
	const struct pattern_step *step = &program->steps.data[program->start];
	const struct pattern_range *range;

	if (step->op != PATTERN_RUNES || step->count != 1)
		return -1;
	range = &program->ranges.data[step->first];
	return range->low == range->high && range->low < 0x80 ? (int)range->low : -1;
}

struct pattern *pattern__new(const char *text, struct failure *failure)
{
	struct pattern *p = calloc(1, sizeof(*p));
	size_t count;

	if (!p || pattern_program__parse(&p->program, text, failure)) {
		pattern__free(p);
		return NULL;
	}
	count = p->program.steps.count;
	p->memory = calloc(6 * count + 2, sizeof(*p->memory));
	if (!p->memory) {
		pattern__free(p);
		return NULL;
	}
	p->now = (struct state_set){p->memory, p->memory + count, 0};
	p->next = (struct state_set){p->memory + 2 * count, p->memory + 3 * count, 0};
	p->pending = p->memory + 4 * count; /* each state pushes two at most, once */
	p->first = first_byte(&p->program);
	return p;
}

void pattern__free(struct pattern *p)
{
	if (!p)
		return;
	pattern_program__fini(&p->program);
	free(p->memory);
	free(p);
}
