/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to a tree, tree to a program. Errors are those of Go's regexp/syntax, with fewer limits and
 * the place. Depth: a parenthesis is at most PATTERN_DEPTH_MAX deep; a tree is as deep as its text
 * is long, which is bounded.
 */
#include "filter/pattern_parse.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/minmax.h"
#include "base/utf8.h"
#include "filter/pattern_set.h"

#define PATTERN_DEPTH_MAX 100
#define REPEAT_MAX	  1000
#define NO_LIMIT	  UINT32_MAX
#define NO_NODE		  UINT32_MAX
#define EMITTED_MAX	  (16 * PATTERN_NODES_MAX) /* nodes: "(){1000}" has no instructions */

enum node_kind {
	NODE_EMPTY,
	NODE_RUNES,
	NODE_ASSERT,
	NODE_THEN,   /* left, right */
	NODE_OR,     /* left, right */
	NODE_REPEAT, /* left, `least` to `most` times */
};

struct node {
	enum node_kind kind;
	uint32_t first, count; /* of NODE_RUNES: ranges; of NODE_ASSERT: which */
	uint32_t left, right;
	uint32_t least, most;
};

struct flags {
	bool fold, lines, dot_all; /* i, m, s */
};

struct parser {
	struct pattern_program *program;
	const char *text, *at;
	VEC(struct node) nodes;
	struct pattern_set set; /* the class in hand */
	struct flags flags;
	unsigned int depth;
	bool literal; /* within \Q … \E */
	unsigned int emitted;
	int error;
	struct failure *failure;
};

static uint32_t complain(struct parser *p, const char *what)
{
	if (!p->error)
		p->error = fail(p->failure, -EINVAL, "invalid regular expression: byte %zu: %s",
				(size_t)(p->at - p->text), what);
	return NO_NODE;
}

static uint32_t add_node(struct parser *p, struct node node)
{
	if (p->error)
		return NO_NODE;
	if (vec_push(&p->nodes, node)) {
		p->error = -ENOMEM;
		return NO_NODE;
	}
	return (uint32_t)p->nodes.count - 1;
}

static uint32_t join(struct parser *p, enum node_kind kind, uint32_t left, uint32_t right)
{
	if (left == NO_NODE)
		return right;
	return add_node(p, (struct node){.kind = kind, .left = left, .right = right});
}

/* The set in hand as a node. */
static uint32_t take_set(struct parser *p)
{
	struct node node = {.kind = NODE_RUNES, .first = (uint32_t)p->program->ranges.count};

	pattern_set__settle(&p->set);
	p->error = p->error ?: p->set.error;
	node.count = (uint32_t)p->set.ranges.count;
	if (vec_append(&p->program->ranges, p->set.ranges.data, p->set.ranges.count))
		p->error = p->error ?: -ENOMEM;
	p->set.ranges.count = 0;
	return add_node(p, node);
}

/* ---- escapes --------------------------------------------------------------------------------- */

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "41", "{10FFFF}" behind \x */
static uint32_t take_hex(struct parser *p)
{
	bool braces = *p->at == '{';
	uint32_t rune = 0;
	int digits = 0;

	p->at += braces;
	while (hex_value(*p->at) >= 0 && (braces || digits < 2) && rune <= PATTERN_RUNE_MAX) {
		rune = rune * 16 + (uint32_t)hex_value(*p->at++);
		digits++;
	}
	if (!digits || (!braces && digits < 2) || (braces && *p->at != '}') ||
	    rune > PATTERN_RUNE_MAX) {
		complain(p, "\\x needs two hexadecimal digits, or {…}");
		return 0;
	}
	p->at += braces;
	return rune;
}

/* The character behind a backslash that stands for one. */
static uint32_t take_escape(struct parser *p)
{
	static const char letters[] = "aftnrv", values[] = "\a\f\t\n\r\v";
	char c = *p->at;
	const char *known = c ? strchr(letters, c) : NULL;
	uint32_t rune = 0;

	if (c == 'x') {
		p->at++;
		return take_hex(p);
	}
	/* a single digit from 1 on would be a backreference */
	if (c == '0' || (is_octal(c) && is_octal(p->at[1]))) {
		for (int i = 0; i < 3 && is_octal(*p->at); i++)
			rune = rune * 8 + (uint32_t)(*p->at++ - '0');
		return rune;
	}
	if (known) {
		p->at++;
		return (unsigned char)values[known - letters];
	}
	if (!c) {
		complain(p, "a backslash at the end");
		return 0;
	}
	if ((unsigned char)c >= 0x80 || (c >= '0' && c <= '9') ||
	    (pattern_fold((unsigned char)c) != (unsigned char)c)) {
		complain(p, c == 'p' || c == 'P' ? "\\p is not supported"
						 : "an escape sequence that is not known");
		return 0;
	}
	p->at++;
	return (unsigned char)c;
}

/* \d, \D, … behind a backslash. */
static bool take_perl_class(struct parser *p)
{
	char name = *p->at | 0x20;

	if (!*p->at || !strchr("dswDSW", *p->at))
		return false;
	pattern_set__add_class(&p->set, pattern_class(&name, 1), *p->at != name);
	p->at++;
	return true;
}

/* A character of the expression. Bytes that are not UTF-8 have no character. */
static uint32_t take_rune(struct parser *p)
{
	size_t size = utf8_sequence(p->at, strlen(p->at));
	uint32_t rune;

	if (!size) {
		complain(p, "not UTF-8");
		return 0;
	}
	rune = utf8_code_point(p->at, size);
	p->at += size;
	return rune;
}

/* ---- brackets -------------------------------------------------------------------------------- */

/* "[:alpha:]", "[:^alpha:]" */
static bool take_named_class(struct parser *p)
{
	const char *end = strncmp(p->at, "[:", 2) ? NULL : strstr(p->at + 2, ":]");
	const char *name = p->at + 2, *ranges;
	bool negated;

	if (!end)
		return false;
	negated = *name == '^';
	name += negated;
	ranges = end - name > 1 ? pattern_class(name, (size_t)(end - name)) : NULL;
	if (!ranges) {
		complain(p, "a class of characters that is not known");
		return true;
	}
	pattern_set__add_class(&p->set, ranges, negated);
	p->at = end + 2;
	return true;
}

static uint32_t take_class_rune(struct parser *p)
{
	if (*p->at != '\\')
		return take_rune(p);
	p->at++;
	return take_escape(p);
}

static void take_class_item(struct parser *p)
{
	uint32_t low, high;

	if (take_named_class(p))
		return;
	if (*p->at == '\\') {
		p->at++;
		if (take_perl_class(p))
			return;
		p->at--;
	}
	low = high = take_class_rune(p);
	if (*p->at == '-' && p->at[1] && p->at[1] != ']') {
		p->at++;
		high = take_class_rune(p);
	}
	if (high < low)
		complain(p, "a range of characters that ends before it begins");
	else
		pattern_set__add_folded(&p->set, low, high);
}

/* Behind "[". */
static uint32_t take_class(struct parser *p)
{
	bool negated = *p->at == '^', first = true;

	p->at += negated;
	while (!p->error && (first || *p->at != ']')) {
		if (!*p->at)
			return complain(p, "missing ]");
		first = false;
		take_class_item(p);
	}
	if (p->error)
		return NO_NODE;
	p->at++;
	if (negated)
		pattern_set__negate(&p->set, 0);
	return take_set(p);
}

/* ---- repetition ------------------------------------------------------------------------------ */

/* Digits without leading zeros; false: none. */
static bool take_count(const char **at, uint32_t *count)
{
	const char *begin = *at;

	*count = 0;
	for (; **at >= '0' && **at <= '9'; ++*at)
		*count = (uint32_t)min_u64(*count * UINT64_C(10) + (uint64_t)(**at - '0'),
					   REPEAT_MAX + 1);
	return *at != begin && (*begin != '0' || *at == begin + 1);
}

/* "{2}", "{2,}", "{2,5}"; anything else is text. */
static bool take_braces(struct parser *p, uint32_t *least, uint32_t *most)
{
	const char *at = p->at + 1;

	if (*p->at != '{' || !take_count(&at, least))
		return false;
	*most = *least;
	if (*at == ',') {
		at++;
		if (*at == '}')
			*most = NO_LIMIT;
		else if (!take_count(&at, most))
			return false;
	}
	if (*at != '}')
		return false;
	p->at = at + 1;
	if (*least > REPEAT_MAX || (*most != NO_LIMIT && (*most > REPEAT_MAX || *least > *most)))
		complain(p, "invalid number of repetitions");
	return true;
}

static bool take_repeat(struct parser *p, uint32_t *least, uint32_t *most)
{
	char c = *p->at;

	if (c == '{')
		return take_braces(p, least, most);
	if (c != '*' && c != '+' && c != '?')
		return false;
	*least = c == '+';
	*most = c == '?' ? 1 : NO_LIMIT;
	p->at++;
	return true;
}

/* An atom may be repeated once: "a**" is an error, "a*?" the same as "a*". */
static uint32_t take_repeats(struct parser *p, uint32_t atom)
{
	uint32_t least, most;

	if (!take_repeat(p, &least, &most))
		return atom;
	p->at += *p->at == '?';
	atom = add_node(
		p, (struct node){.kind = NODE_REPEAT, .left = atom, .least = least, .most = most});
	if (take_repeat(p, &least, &most))
		return complain(p, "a repetition of a repetition");
	return atom;
}

/* ---- atoms ----------------------------------------------------------------------------------- */

static uint32_t take_alternatives(struct parser *p);

static uint32_t assertion(struct parser *p, enum pattern_assertion which)
{
	return add_node(p, (struct node){.kind = NODE_ASSERT, .first = which});
}

/* "i", "-s", "im-s" behind "(?", up to ")" or ":". */
static void take_flags(struct parser *p)
{
	bool on = true, any = false;

	for (; *p->at && *p->at != ')' && *p->at != ':'; p->at++) {
		switch (*p->at) {
		case 'i':
			p->flags.fold = on;
			break;
		case 'm':
			p->flags.lines = on;
			break;
		case 's':
			p->flags.dot_all = on;
			break;
		case 'U': /* which of several matches: no matter */
			break;
		case '-':
			if (!on) {
				complain(p, "invalid flags");
				return;
			}
			on = false;
			any = false;
			continue;
		default:
			complain(p, "invalid flags");
			return;
		}
		any = true;
	}
	if ((!on && !any) || !*p->at)
		complain(p, *p->at ? "invalid flags" : "missing )");
}

/* "P<name>", "<name>" behind "(?" */
static void take_group_name(struct parser *p)
{
	const char *begin;

	p->at += *p->at == 'P';
	if (*p->at != '<') {
		complain(p, "invalid name of a group");
		return;
	}
	begin = ++p->at;
	while (*p->at == '_' || (*p->at >= '0' && *p->at <= '9') ||
	       pattern_fold((unsigned char)*p->at) != (unsigned char)*p->at)
		p->at++;
	if (*p->at != '>' || p->at == begin)
		complain(p, "invalid name of a group");
	else
		p->at++;
}

/* Behind "(". *is_atom is false of flags alone. */
static uint32_t take_group(struct parser *p, bool *is_atom)
{
	struct flags outer = p->flags;
	uint32_t inner;

	if (++p->depth > PATTERN_DEPTH_MAX)
		return complain(p, "too many parentheses within each other");
	if (*p->at == '?') {
		p->at++;
		if (*p->at == 'P' || *p->at == '<')
			take_group_name(p);
		else if (*p->at == ':')
			p->at++;
		else
			take_flags(p);
		if (p->error)
			return NO_NODE;
		if (*p->at == ')' && p->at[-1] != ':' && p->at[-1] != '>') {
			p->at++;
			p->depth--;
			*is_atom = false;
			return NO_NODE;
		}
		p->at += *p->at == ':' && p->at[-1] != ':' && p->at[-1] != '>';
	}
	inner = take_alternatives(p);
	if (p->error)
		return NO_NODE;
	if (*p->at != ')')
		return complain(p, "missing )");
	p->at++;
	p->depth--;
	p->flags = outer;
	return inner;
}

static uint32_t take_dot(struct parser *p)
{
	if (p->flags.dot_all) {
		pattern_set__add(&p->set, 0, PATTERN_RUNE_MAX);
	} else {
		pattern_set__add(&p->set, 0, '\n' - 1);
		pattern_set__add(&p->set, '\n' + 1, PATTERN_RUNE_MAX);
	}
	return take_set(p);
}

static uint32_t single(struct parser *p, uint32_t rune)
{
	pattern_set__add_folded(&p->set, rune, rune);
	return p->error ? NO_NODE : take_set(p);
}

/* Behind a backslash. */
static uint32_t take_backslash(struct parser *p, bool *is_atom)
{
	static const char letters[] = "AzbB";
	static const enum pattern_assertion assertions[] = {ASSERT_TEXT_BEGIN, ASSERT_TEXT_END,
							    ASSERT_WORD_EDGE, ASSERT_NO_WORD_EDGE};
	const char *known = *p->at ? strchr(letters, *p->at) : NULL;

	if (known) {
		p->at++;
		return assertion(p, assertions[known - letters]);
	}
	if (*p->at == 'Q') {
		p->at++;
		p->literal = true;
		*is_atom = false;
		return NO_NODE;
	}
	if (take_perl_class(p))
		return take_set(p);
	return single(p, take_escape(p));
}

/* The next part that can be repeated. *is_atom is false if there was none. */
static uint32_t take_atom(struct parser *p, bool *is_atom)
{
	char c = *p->at;

	*is_atom = true;
	p->set.fold = p->flags.fold;
	if (p->literal) {
		if (strncmp(p->at, "\\E", 2))
			return single(p, take_rune(p));
		p->at += 2;
		p->literal = *is_atom = false;
		return NO_NODE;
	}
	if (c == '*' || c == '+' || c == '?')
		return complain(p, "nothing to repeat");
	if (c == '{') {
		const char *begin = p->at;
		uint32_t least, most;

		if (take_braces(p, &least, &most)) {
			p->at = begin;
			return complain(p, "nothing to repeat");
		}
		return single(p, take_rune(p));
	}
	if (!strchr("([.^$\\", c))
		return single(p, take_rune(p));
	p->at++;
	switch (c) {
	case '(':
		return take_group(p, is_atom);
	case '[':
		return take_class(p);
	case '.':
		return take_dot(p);
	case '^':
		return assertion(p, p->flags.lines ? ASSERT_LINE_BEGIN : ASSERT_TEXT_BEGIN);
	case '$':
		return assertion(p, p->flags.lines ? ASSERT_LINE_END : ASSERT_TEXT_END);
	default:
		return take_backslash(p, is_atom);
	}
}

static uint32_t take_sequence(struct parser *p)
{
	uint32_t all = NO_NODE, last = NO_NODE;

	while (!p->error && *p->at && (p->literal || (*p->at != '|' && *p->at != ')'))) {
		const char *begin = p->at;
		bool is_atom;
		uint32_t atom;

		if (last != NO_NODE && !p->literal)
			last = take_repeats(p, last);
		if (p->at != begin)
			continue;
		atom = take_atom(p, &is_atom);
		if (!is_atom || p->error)
			continue;
		if (last != NO_NODE)
			all = join(p, NODE_THEN, all, last);
		last = atom;
	}
	if (last == NO_NODE)
		return add_node(p, (struct node){.kind = NODE_EMPTY});
	return join(p, NODE_THEN, all, last);
}

static uint32_t take_alternatives(struct parser *p)
{
	uint32_t all = take_sequence(p);

	while (!p->error && *p->at == '|') {
		p->at++;
		all = join(p, NODE_OR, all, take_sequence(p));
	}
	return all;
}

/* ---- the program: from its end to its start, so that each step has its next ------------------- */

static void too_large(struct parser *p)
{
	if (!p->error)
		p->error = fail(p->failure, -E2BIG,
				"invalid regular expression: too many repetitions or characters");
}

static uint32_t emit(struct parser *p, struct pattern_step step)
{
	struct pattern_program *program = p->program;

	if (p->error)
		return 0;
	if (program->steps.count >= PATTERN_NODES_MAX)
		too_large(p);
	else if (vec_push(&program->steps, step))
		p->error = -ENOMEM;
	return p->error ? 0 : (uint32_t)program->steps.count - 1;
}

static uint32_t fork_to(struct parser *p, uint32_t next, uint32_t other)
{
	return emit(p, (struct pattern_step){.op = PATTERN_FORK, .next = next, .other = other});
}

static uint32_t emit_node(struct parser *p, uint32_t number, uint32_t next);

static uint32_t emit_repeat(struct parser *p, const struct node *node, uint32_t next)
{
	uint32_t end = next, least = node->least;

	if (node->most == NO_LIMIT) {
		uint32_t loop = fork_to(p, 0, next);
		uint32_t body = emit_node(p, node->left, loop);

		if (!p->error)
			p->program->steps.data[loop].next = body;
		next = loop;
	}
	for (uint32_t i = least; node->most != NO_LIMIT && i < node->most && !p->error; i++)
		next = fork_to(p, emit_node(p, node->left, next), end);
	for (uint32_t i = 0; i < least && !p->error; i++)
		next = emit_node(p, node->left, next);
	return next;
}

static uint32_t emit_node(struct parser *p, uint32_t number, uint32_t next)
{
	struct node node;

	if (++p->emitted > EMITTED_MAX)
		too_large(p);
	if (p->error)
		return 0;
	node = p->nodes.data[number];
	switch (node.kind) {
	case NODE_EMPTY:
		return next;
	case NODE_RUNES:
		return emit(p, (struct pattern_step){.op = PATTERN_RUNES,
						     .first = node.first,
						     .count = node.count,
						     .next = next});
	case NODE_ASSERT:
		return emit(p, (struct pattern_step){
				       .op = PATTERN_ASSERT, .first = node.first, .next = next});
	case NODE_THEN:
		return emit_node(p, node.left, emit_node(p, node.right, next));
	case NODE_OR:
		return fork_to(p, emit_node(p, node.left, next), emit_node(p, node.right, next));
	case NODE_REPEAT:
		return emit_repeat(p, &node, next);
	}
	return 0;
}

int pattern_program__parse(struct pattern_program *program, const char *text,
			   struct failure *failure)
{
	struct parser p = {.program = program, .text = text, .at = text, .failure = failure};
	uint32_t root;

	if (!*text)
		return fail(failure, -EINVAL, "invalid regular expression: it is empty");
	if (strlen(text) > PATTERN_TEXT_MAX)
		return fail(failure, -E2BIG, "invalid regular expression: longer than %d bytes",
			    PATTERN_TEXT_MAX);
	root = take_alternatives(&p);
	if (!p.error && *p.at == ')')
		complain(&p, "unexpected )");
	if (!p.error)
		program->start = emit_node(&p, root,
					   emit(&p, (struct pattern_step){.op = PATTERN_DONE}));
	vec_free(&p.nodes);
	vec_free(&p.set.ranges);
	if (p.error == -ENOMEM)
		fail(failure, -ENOMEM, "out of memory");
	return p.error;
}

void pattern_program__fini(struct pattern_program *program)
{
	vec_free(&program->steps);
	vec_free(&program->ranges);
}
