/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thompson's construction: each part of the pattern becomes a few states with open ends, which are
 * connected as parts are joined. Brackets are on a stack of their own, so nothing recurs.
 */
#include "formats/in/name_pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define DEPTH_MAX 64
#define NONE	  UINT32_MAX

enum state_kind { STATE_BYTES, STATE_SPLIT, STATE_MATCH };

/* Bytes that lead on to `next`; or a split into `next` and `other`, without a byte. */
struct state {
	enum state_kind kind;
	uint32_t next,
		other;	   /* NONE: there is none; open ones are linked until they are connected */
	uint64_t bytes[4]; /* a bit for each */
};

/* A part of the pattern: where it begins, and its open ends, as 2 × state + (1 for `other`). */
struct part {
	uint32_t begin, open;
};

struct level {
	uint32_t parts, choices; /* on the stack: to be joined, to be chosen from */
};

struct name_pattern {
	VEC(struct state) states;
	VEC(struct part) stack;
	struct level levels[DEPTH_MAX];
	uint32_t depth, begin;
	/* of a match: states in turn, and the turn in which each was added */
	struct numbers_of_states {
		uint32_t *data;
		size_t count, capacity;
	} now, then, todo;
	VEC(uint64_t) added;
	uint64_t turn;
};

/* ---- states ---------------------------------------------------------------------------------- */

static uint32_t *end_of(struct name_pattern *p, uint32_t open)
{
	struct state *state = &p->states.data[open / 2];

	return open & 1 ? &state->other : &state->next;
}

static void connect(struct name_pattern *p, uint32_t open, uint32_t to)
{
	while (open != NONE) {
		uint32_t *end = end_of(p, open);

		open = *end;
		*end = to;
	}
}

static uint32_t join_ends(struct name_pattern *p, uint32_t open, uint32_t more)
{
	uint32_t at = open;

	if (open == NONE)
		return more;
	while (*end_of(p, at) != NONE)
		at = *end_of(p, at);
	*end_of(p, at) = more;
	return open;
}

static int add_state(struct name_pattern *p, const struct state *state, uint32_t *number)
{
	*number = (uint32_t)p->states.count;
	return vec_push(&p->states, *state);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static struct level *level_of(struct name_pattern *p)
{
	return &p->levels[p->depth];
}

static void join_two(struct name_pattern *p)
{
	struct part second = p->stack.data[--p->stack.count];
	struct part *first = &p->stack.data[p->stack.count - 1];

	connect(p, first->open, second.begin);
	first->open = second.open;
}

static int push_part(struct name_pattern *p, struct part part)
{
	if (level_of(p)->parts > 1) {
		join_two(p);
		level_of(p)->parts--;
	}
	level_of(p)->parts++;
	return vec_push(&p->stack, part);
}

static int push_bytes(struct name_pattern *p, const uint64_t bytes[4])
{
	struct state state = {.kind = STATE_BYTES, .next = NONE, .other = NONE};
	uint32_t number;
	int err;

	memcpy(state.bytes, bytes, sizeof(state.bytes));
	err = add_state(p, &state, &number);
	return err ?: push_part(p, (struct part){number, 2 * number});
}

static int push_nothing(struct name_pattern *p)
{
	const struct state state = {.kind = STATE_SPLIT, .next = NONE, .other = NONE};
	uint32_t number;
	int err = add_state(p, &state, &number);

	return err ?: push_part(p, (struct part){number, 2 * number});
}

/* What lies between brackets or bars is one part. */
static int close_choice(struct name_pattern *p)
{
	int err = level_of(p)->parts ? 0 : push_nothing(p);

	while (!err && level_of(p)->parts > 1) {
		join_two(p);
		level_of(p)->parts--;
	}
	return err;
}

static int choose(struct name_pattern *p)
{
	struct part second = p->stack.data[--p->stack.count];
	struct part *first = &p->stack.data[p->stack.count - 1];
	const struct state split = {
		.kind = STATE_SPLIT, .next = first->begin, .other = second.begin};
	uint32_t number;
	int err = add_state(p, &split, &number);

	first->begin = number;
	first->open = join_ends(p, first->open, second.open);
	return err;
}

static int close_level(struct name_pattern *p)
{
	int err = close_choice(p);

	for (; !err && level_of(p)->choices; level_of(p)->choices--)
		err = choose(p);
	return err;
}

static int repeat(struct name_pattern *p, char how)
{
	struct part *part = level_of(p)->parts ? &p->stack.data[p->stack.count - 1] : NULL;
	const struct state split = {
		.kind = STATE_SPLIT, .next = part ? part->begin : NONE, .other = NONE};
	uint32_t number;
	int err;

	if (!part)
		return -EINVAL;
	err = add_state(p, &split, &number);
	if (err)
		return err;
	if (how != '?')
		connect(p, part->open, number);
	part->open = how == '?' ? join_ends(p, part->open, 2 * number + 1) : 2 * number + 1;
	part->begin = how == '+' ? part->begin : number;
	return 0;
}

/* ---- the text -------------------------------------------------------------------------------- */

static void add_range(uint64_t bytes[4], unsigned int first, unsigned int last)
{
	for (unsigned int c = first; c <= last; c++)
		bytes[c / 64] |= 1ULL << (c % 64);
}

static void invert(uint64_t bytes[4])
{
	for (int i = 0; i < 4; i++)
		bytes[i] = ~bytes[i];
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_alphanumeric(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9');
}

/* What follows a backslash; of letters only the classes. */
static int take_escape(char c, uint64_t bytes[4])
{
	uint64_t class[4] = {};

	switch (c | 0x20) {
	case 'd':
		add_range(class, '0', '9');
		break;
	case 'w':
		add_range(class, '0', '9');
		add_range(class, 'a', 'z');
		add_range(class, 'A', 'Z');
		add_range(class, '_', '_');
		break;
	case 's':
		add_range(class, '\t', '\n');
		add_range(class, '\f', '\r');
		add_range(class, ' ', ' ');
		break;
	default:
		if (is_alphanumeric(c))
			return -EINVAL;
		add_range(class, (uint8_t)c, (uint8_t)c);
	}
	if (is_letter(c) && !(c & 0x20))
		invert(class);
	for (int i = 0; i < 4; i++)
		bytes[i] |= class[i];
	return 0;
}

/* [a-z_\d] or [^…], from behind the bracket on. */
static int take_class(const char **at, const char *end, uint64_t bytes[4])
{
	const char *c = *at;
	bool inverted = c < end && *c == '^', first = true;

	for (c += inverted; c < end && (*c != ']' || first); first = false) {
		unsigned int low = (uint8_t)*c;
		bool escaped = *c == '\\';

		if (low >= 0x80 || (*c == '[' && c + 1 < end && c[1] == ':'))
			return -EINVAL;
		if (escaped && (++c == end || take_escape(*c, bytes)))
			return -EINVAL;
		c++;
		if (!escaped && c + 1 < end && *c == '-' && c[1] != ']') {
			if (c[1] == '\\' || (uint8_t)c[1] < low || (uint8_t)c[1] >= 0x80)
				return -EINVAL;
			add_range(bytes, low, (uint8_t)c[1]);
			c += 2;
		} else if (!escaped) {
			add_range(bytes, low, low);
		}
	}
	if (c == end)
		return -EINVAL;
	if (inverted)
		invert(bytes);
	*at = c + 1;
	return 0;
}

static int open_bracket(struct name_pattern *p, const char **at, const char *end)
{
	if (*at < end && **at == '?') {
		if (*at + 1 == end || (*at)[1] != ':')
			return -EINVAL;
		*at += 2;
	}
	if (level_of(p)->parts > 1) {
		join_two(p);
		level_of(p)->parts--;
	}
	if (++p->depth == DEPTH_MAX)
		return -EINVAL;
	p->levels[p->depth] = (struct level){};
	return 0;
}

static int close_bracket(struct name_pattern *p)
{
	int err = p->depth ? close_level(p) : -EINVAL;

	if (err)
		return err;
	p->depth--;
	level_of(p)->parts++;
	return 0;
}

/* One character of the pattern, or what belongs together. */
static int take(struct name_pattern *p, const char **at, const char *end, bool is_first)
{
	char c = *(*at)++;
	uint64_t bytes[4] = {};
	int err = 0;

	switch (c) {
	case '(':
		return open_bracket(p, at, end);
	case ')':
		return close_bracket(p);
	case '|':
		err = close_choice(p);
		level_of(p)->parts = 0;
		level_of(p)->choices++;
		return err;
	case '*':
	case '+':
	case '?':
		if (*at < end && **at == '?') /* lazy: whole names are compared */
			++*at;
		return repeat(p, c);
	case '^':
		return is_first ? 0 : -EINVAL;
	case '$':
		return *at == end ? 0 : -EINVAL;
	case '{':
		return -EINVAL;
	case '.':
		invert(bytes);
		break;
	case '[':
		err = take_class(at, end, bytes);
		break;
	case '\\':
		err = *at == end ? -EINVAL : take_escape(*(*at)++, bytes);
		break;
	default:
		add_range(bytes, (uint8_t)c, (uint8_t)c);
	}
	return err ?: push_bytes(p, bytes);
}

static int compile(struct name_pattern *p, const char *text, size_t size)
{
	const struct state match = {.kind = STATE_MATCH, .next = NONE, .other = NONE};
	const char *at = text, *end = text + size;
	uint32_t number;
	int err = size > NAME_PATTERN_MAX ? -EINVAL : 0;

	while (at < end && !err)
		err = take(p, &at, end, at == text);
	if (!err)
		err = p->depth ? -EINVAL : close_level(p);
	err = err ?: add_state(p, &match, &number);
	if (err)
		return err;
	connect(p, p->stack.data[0].open, number);
	p->begin = p->stack.data[0].begin;
	return vec_at(&p->added, p->states.count) ? 0 : -ENOMEM;
}

int name_pattern__new(const char *text, size_t size, struct name_pattern **pattern)
{
	struct name_pattern *p = calloc(1, sizeof(*p));
	int err = p ? compile(p, text, size) : -ENOMEM;

	if (err)
		name_pattern__free(p);
	else
		*pattern = p;
	return err;
}

void name_pattern__free(struct name_pattern *p)
{
	if (!p)
		return;
	vec_free(&p->states);
	vec_free(&p->stack);
	vec_free(&p->now);
	vec_free(&p->then);
	vec_free(&p->todo);
	vec_free(&p->added);
	free(p);
}

/* ---- a match --------------------------------------------------------------------------------- */

/* A state of the next turn, with all that it leads to without a byte. Without memory: no match. */
static void add_all(struct name_pattern *p, uint32_t number, uint64_t *steps)
{
	p->todo.count = 0;
	if (vec_push(&p->todo, number))
		return;
	while (p->todo.count) {
		const struct state *state;

		number = p->todo.data[--p->todo.count];
		if (number == NONE || p->added.data[number] == p->turn)
			continue;
		p->added.data[number] = p->turn;
		++*steps;
		state = &p->states.data[number];
		if (state->kind != STATE_SPLIT) {
			if (vec_push(&p->then, number))
				return;
		} else if (vec_push(&p->todo, state->other) || vec_push(&p->todo, state->next)) {
			return;
		}
	}
}

static void begin_turn(struct name_pattern *p)
{
	p->turn++;
	p->then.count = 0;
}

static void swap_turns(struct name_pattern *p)
{
	struct numbers_of_states now = p->now;

	p->now = p->then;
	p->then = now;
}

bool name_pattern__matches(struct name_pattern *p, const char *name, size_t size, uint64_t *steps)
{
	begin_turn(p);
	add_all(p, p->begin, steps);
	swap_turns(p);
	for (size_t i = 0; i < size && p->now.count; i++) {
		uint8_t c = (uint8_t)name[i];

		if (*steps >= NAME_PATTERN_STEPS_MAX)
			return false;
		begin_turn(p);
		for (size_t k = 0; k < p->now.count; k++) {
			const struct state *state = &p->states.data[p->now.data[k]];

			if (state->kind == STATE_BYTES && state->bytes[c / 64] >> (c % 64) & 1)
				add_all(p, state->next, steps);
		}
		*steps += p->now.count;
		swap_turns(p);
	}
	for (size_t k = 0; k < p->now.count; k++)
		if (p->states.data[p->now.data[k]].kind == STATE_MATCH)
			return true;
	return false;
}
