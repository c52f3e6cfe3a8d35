/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where JSON values end, numbers in place, and cJSON for the rest (json.h).
 *
 * The scanner takes 16 bytes at a time if they have no quote and no bracket: columns of numbers are
 * most of a profile, and are scanned several times before they are parsed. It checks that brackets
 * match and that strings end; the rest is checked when parsed.
 */
#include "formats/in/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "formats/in/import.h"

#define SCALED_MAX (1LL << 62)

int json_fail(const struct json_text *text, const char *at, int error, const char *format, ...)
{
	char what[sizeof(text->failure->what)];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return import_fail(text->failure, (uint64_t)(at - text->start), error, "%s", what);
}

static int fail_cut(const struct json_text *text)
{
	return json_fail(text, text->end, -EBADMSG, "the JSON text is cut off");
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

const char *json_skip_spaces(const struct json_text *text, const char *at)
{
	while (at < text->end && is_space(*at))
		at++;
	return at;
}

enum json_type json_type(struct json_value value)
{
	if (!value.at || value.at >= value.end)
		return JSON_ABSENT;
	switch (*value.at) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
	case 'n':
		return JSON_LITERAL;
	}
	return JSON_NUMBER;
}

bool json_is(struct json_value value, const char *literal)
{
	size_t size = strlen(literal);

	return value.at && (size_t)(value.end - value.at) == size &&
	       !memcmp(value.at, literal, size);
}

/* ---- where values end ------------------------------------------------------------------------ */

/* Behind the closing quote of a string, whose opening quote is at `at`; NULL: it does not end. */
static const char *skip_string(const struct json_text *text, const char *at)
{
	for (at++; at < text->end; at++) {
		const char *quote = memchr(at, '"', (size_t)(text->end - at));
		const char *back = quote;

		if (!quote)
			return NULL;
		while (back > at && back[-1] == '\\')
			back--;
		/* an odd number of backslashes hides the quote */
		if ((quote - back) % 2 == 0)
			return quote + 1;
		at = quote;
	}
	return NULL;
}

typedef unsigned char bytes16 __attribute__((vector_size(16)));
typedef unsigned long long words2 __attribute__((vector_size(16)));

/* To the next quote or bracket, or to the end. '[' and '{', ']' and '}' differ in one bit. */
static const char *skip_plain(const char *at, const char *end)
{
	while (end - at >= 16) {
		bytes16 b;
		words2 found;

		memcpy(&b, at, sizeof(b));
		found = (words2)(((b & 0xdf) == '[') | ((b & 0xdf) == ']') | (b == '"'));
		if (found[0] | found[1])
			break;
		at += 16;
	}
	while (at < end && *at != '"' && (*at & 0xdf) != '[' && (*at & 0xdf) != ']')
		at++;
	return at;
}

static int skip_nested(const struct json_text *text, const char *at, const char **end)
{
	char closing[JSON_DEPTH_MAX];
	unsigned int depth = 0;

	for (;;) {
		const char *here = at = skip_plain(at, text->end);

		if (at == text->end)
			return fail_cut(text);
		if (*at == '"') {
			at = skip_string(text, at);
			if (!at)
				return fail_cut(text);
			continue;
		}
		at++;
		if (*here == '[' || *here == '{') {
			if (depth == JSON_DEPTH_MAX)
				return json_fail(text, here, -E2BIG, "nested deeper than %u",
						 JSON_DEPTH_MAX);
			closing[depth++] = (char)(*here + 2);
			continue;
		}
		if (closing[--depth] != *here)
			return json_fail(text, here, -EBADMSG, "'%c' closes nothing", *here);
		if (!depth)
			break;
	}
	*end = at;
	return 0;
}

static int skip_value(const struct json_text *text, const char *at, const char **end)
{
	static const char of_numbers[] = "+-.0123456789eE";
	static const char *const literals[] = {"true", "false", "null"};
	const char *last = at;

	if (at == text->end)
		return fail_cut(text);
	if (*at == '{' || *at == '[')
		return skip_nested(text, at, end);
	if (*at == '"') {
		*end = skip_string(text, at);
		return *end ? 0 : fail_cut(text);
	}
	for (size_t i = 0; i < sizeof(literals) / sizeof(*literals); i++) {
		size_t size = strlen(literals[i]);

		if ((size_t)(text->end - at) >= size && !memcmp(at, literals[i], size)) {
			*end = at + size;
			return 0;
		}
	}
	while (last < text->end && *last && strchr(of_numbers, *last))
		last++;
	if (last == at)
		return json_fail(text, at, -EBADMSG, "no JSON value");
	*end = last;
	return 0;
}

/* ---- walking --------------------------------------------------------------------------------- */

int json_walk__init(struct json_walk *walk, const struct json_text *text, const char *at,
		    enum json_type type)
{
	char bracket = type == JSON_OBJECT ? '{' : '[';

	at = at ? json_skip_spaces(text, at) : text->end;
	if (at == text->end || *at != bracket)
		return json_fail(text, at, -EBADMSG, "expected %s",
				 type == JSON_OBJECT ? "an object" : "an array");
	*walk = (struct json_walk){
		.text = text,
		.at = at + 1,
		.is_object = type == JSON_OBJECT,
		.first = true,
	};
	return 0;
}

static int walk_key(struct json_walk *walk)
{
	const struct json_text *text = walk->text;

	if (walk->at == text->end || *walk->at != '"')
		return walk->at == text->end
			       ? fail_cut(text)
			       : json_fail(text, walk->at, -EBADMSG, "expected a key");
	walk->key.at = walk->at;
	walk->key.end = skip_string(text, walk->at);
	if (!walk->key.end)
		return fail_cut(text);
	walk->at = json_skip_spaces(text, walk->key.end);
	if (walk->at == text->end || *walk->at != ':')
		return walk->at == text->end
			       ? fail_cut(text)
			       : json_fail(text, walk->at, -EBADMSG, "expected a colon");
	walk->at = json_skip_spaces(text, walk->at + 1);
	return 0;
}

static int fail_long(const struct json_text *text, const char *at)
{
	return json_fail(text, at, -E2BIG, "more than %u elements", JSON_ELEMENTS_MAX);
}

/* Go to the next value without finding its end. 1; 0: no more. */
static int walk_to_value(struct json_walk *walk)
{
	const struct json_text *text = walk->text;
	int err;

	walk->at = json_skip_spaces(text, walk->at);
	if (walk->at == text->end)
		return fail_cut(text);
	if (*walk->at == (walk->is_object ? '}' : ']')) {
		walk->at++;
		return 0;
	}
	if (!walk->first) {
		if (*walk->at != ',')
			return json_fail(text, walk->at, -EBADMSG, "expected a comma");
		walk->at = json_skip_spaces(text, walk->at + 1);
		if (++walk->index == JSON_ELEMENTS_MAX)
			return fail_long(text, walk->at);
		/* programs that append one element at a time end arrays like that */
		if (!walk->is_object && walk->at < text->end && *walk->at == ']') {
			walk->at++;
			return 0;
		}
	}
	walk->first = false;
	err = walk->is_object ? walk_key(walk) : 0;
	walk->value = (struct json_value){.at = walk->at};
	return err ? err : 1;
}

int json_walk__next(struct json_walk *walk)
{
	int more = walk_to_value(walk), err;

	if (more <= 0)
		return more;
	err = skip_value(walk->text, walk->at, &walk->value.end);
	walk->at = walk->value.end;
	return err ? err : 1;
}

int json_each(const struct json_text *text, struct json_value array,
	      int (*take)(void *context, struct json_value value), void *context)
{
	struct json_walk walk;
	int more = json_walk__init(&walk, text, array.at, JSON_ARRAY);

	while (!more && (more = json_walk__next(&walk)) > 0)
		more = take(context, walk.value);
	return more;
}

/* Keys that matter have no escapes. */
bool json_walk__key_is(const struct json_walk *walk, const char *name)
{
	size_t size = strlen(name);

	return (size_t)(walk->key.end - walk->key.at) == size + 2 &&
	       !memcmp(walk->key.at + 1, name, size);
}

int json_first_key(const uint8_t *bytes, size_t size, const char *const *names)
{
	struct import_failure ignored;
	const struct json_text text = {(const char *)bytes, (const char *)bytes + size, &ignored};
	struct json_walk walk;
	int more = json_walk__init(&walk, &text, text.start, JSON_OBJECT);

	while (!more && (more = walk_to_value(&walk)) > 0) {
		for (int i = 0; names[i]; i++)
			if (json_walk__key_is(&walk, names[i]))
				return i;
		more = skip_value(&text, walk.at, &walk.at);
	}
	return -1;
}

const char *json_member_at(const struct json_text *text, const char *object, const char *name)
{
	struct json_walk walk;
	int more = object ? json_walk__init(&walk, text, object, JSON_OBJECT) : -ENOENT;

	while (!more && (more = walk_to_value(&walk)) > 0) {
		if (json_walk__key_is(&walk, name))
			return walk.at;
		more = skip_value(text, walk.at, &walk.at);
	}
	return NULL;
}

int json_expect_end(const struct json_text *text, const char *at)
{
	at = json_skip_spaces(text, at);
	return at == text->end ? 0
			       : json_fail(text, at, -EBADMSG, "something follows the JSON text");
}

static int find_members(struct json_walk *walk, const struct json_text *text, const char *at,
			const struct json_member *wanted)
{
	int more = json_walk__init(walk, text, at, JSON_OBJECT);

	for (const struct json_member *m = wanted; m->name; m++)
		*m->value = (struct json_value){0};
	while (!more && (more = json_walk__next(walk)) > 0) {
		more = 0;
		for (const struct json_member *m = wanted; m->name; m++) {
			if (!json_walk__key_is(walk, m->name))
				continue;
			if (m->value->at)
				return json_fail(text, walk->key.at, -EBADMSG,
						 "\"%s\" is there twice", m->name);
			*m->value = walk->value;
		}
	}
	return more;
}

int json_find_members(const struct json_text *text, struct json_value object,
		      const struct json_member *wanted)
{
	struct json_walk walk;

	return find_members(&walk, text, object.at, wanted);
}

int json_find_document(const struct json_text *text, const struct json_member *wanted)
{
	struct json_walk walk;

	return find_members(&walk, text, text->start, wanted) ?: json_expect_end(text, walk.at);
}

/* ---- numbers --------------------------------------------------------------------------------- */

#define MANTISSA_MAX   (UINT64_MAX / 10 - 1)
#define EXPONENT_LIMIT 100000

/* Digits beyond the mantissa change only the exponent, which is bounded; what is below it is 0. */
static const char *parse_digits(const char *at, const char *end, struct json_number *n, int place)
{
	uint64_t mantissa = n->mantissa;
	const char *first = at;

	for (; at < end && *at >= '0' && *at <= '9' && mantissa <= MANTISSA_MAX; at++)
		mantissa = mantissa * 10 + (uint64_t)(*at - '0');
	n->mantissa = mantissa;
	n->exponent -= place * (int32_t)min_u64((uint64_t)(at - first), EXPONENT_LIMIT);
	for (; at < end && *at >= '0' && *at <= '9'; at++)
		n->exponent += !place && n->exponent < EXPONENT_LIMIT;
	return at;
}

static const char *parse_exponent(const char *at, const char *end, struct json_number *n)
{
	bool negative = at < end && *at == '-';
	int32_t value = 0;
	const char *first;

	if (at < end && (*at == '-' || *at == '+'))
		at++;
	for (first = at; at < end && *at >= '0' && *at <= '9'; at++)
		if (value < EXPONENT_LIMIT)
			value = value * 10 + (*at - '0');
	n->exponent += negative ? -value : value;
	return at == first ? NULL : at;
}

/* Behind the number at `at`, or NULL: there is none. */
static const char *parse_number(const char *at, const char *end, struct json_number *n)
{
	const char *first;

	*n = (struct json_number){.at = at};
	if (end - at >= 4 && !memcmp(at, "null", 4)) {
		n->is_null = true;
		return at + 4;
	}
	if (at < end && *at == '-') {
		n->negative = true;
		at++;
	}
	first = at;
	at = parse_digits(at, end, n, 0);
	if (at == first)
		return NULL;
	if (at < end && *at == '.') {
		first = ++at;
		at = parse_digits(at, end, n, 1);
		if (at == first)
			return NULL;
	}
	if (at < end && (*at == 'e' || *at == 'E'))
		at = parse_exponent(at + 1, end, n);
	return at;
}

int json_scaled(const struct json_number *n, int scale, int64_t *value)
{
	int64_t exponent = (int64_t)n->exponent + scale;
	uint64_t result = n->mantissa;
	bool up = false;

	for (; exponent < 0 && result; exponent++) {
		up = result % 10 >= 5;
		result /= 10;
	}
	result += up && !exponent; /* what is left over is less than a half */
	for (; exponent > 0 && result; exponent--) {
		if (result > (uint64_t)SCALED_MAX / 10)
			return -ERANGE;
		result *= 10;
	}
	if (result > (uint64_t)SCALED_MAX)
		return -ERANGE;
	*value = n->negative ? -(int64_t)result : (int64_t)result;
	return 0;
}

int json_split(const struct json_number *n, int scale, int64_t *value, uint32_t *rest)
{
	struct json_number whole = *n;
	int64_t exponent = (int64_t)n->exponent + scale;
	uint64_t billionths = 0;

	if (n->negative && n->mantissa)
		return -ERANGE;
	for (; exponent < 0 && (whole.mantissa || billionths); exponent++) {
		billionths = billionths / 10 + whole.mantissa % 10 * 100000000;
		whole.mantissa /= 10;
		whole.exponent++;
	}
	*rest = (uint32_t)billionths;
	return json_scaled(&whole, scale, value);
}

int json_column__init(struct json_column *column, const struct json_text *text,
		      struct json_value array)
{
	if (json_type(array) != JSON_ARRAY)
		return json_fail(text, array.at ? array.at : text->start, -EBADMSG,
				 "expected an array of numbers");
	*column = (struct json_column){.text = text, .at = array.at + 1, .first = true};
	return 0;
}

int json_column__next(struct json_column *c, struct json_number *number)
{
	const struct json_text *text = c->text;
	const char *at = json_skip_spaces(text, c->at), *end;
	int err = 0;

	if (at == text->end)
		return fail_cut(text);
	if (*at == ']') {
		c->at = at; /* stays at the end */
		return 0;
	}
	if (!c->first) {
		if (*at != ',')
			return json_fail(text, at, -EBADMSG, "expected a comma");
		at = json_skip_spaces(text, at + 1);
	}
	c->first = false;
	if (c->index == JSON_ELEMENTS_MAX)
		return fail_long(text, at);
	end = parse_number(at, text->end, number);
	if (!end) { /* of another type */
		*number = (struct json_number){.mantissa = 1, .exponent = EXPONENT_LIMIT, .at = at};
		err = skip_value(text, at, &end);
	}
	if (err)
		return err;
	c->at = end;
	c->index++;
	return 1;
}

int json_column__integer(struct json_column *c, int64_t min, int64_t max, int64_t or_null,
			 int64_t *value)
{
	struct json_number number;
	int more = json_column__next(c, &number);

	if (more < 0)
		return more;
	if (!more)
		return json_fail(c->text, c->at, -EBADMSG, "the array has only %zu elements",
				 c->index);
	if (number.is_null) {
		*value = or_null;
		return 0;
	}
	if (json_scaled(&number, 0, value) || *value < min || *value > max)
		return json_fail(c->text, number.at, -EBADMSG, "element %zu is out of range",
				 c->index - 1);
	return 0;
}

int json_column__next_or_null(struct json_column *column, struct json_number *number)
{
	int more = column->text ? json_column__next(column, number) : 0;

	if (!more)
		*number = (struct json_number){.is_null = true};
	return more < 0 ? more : 0;
}

int json_parse_number(const struct json_text *text, struct json_value value,
		      struct json_number *number)
{
	if (!value.at || parse_number(value.at, value.end, number) != value.end || number->is_null)
		return json_fail(text, value.at ? value.at : text->start, -EBADMSG,
				 "expected a number");
	return 0;
}

int json_time(const struct json_text *text, struct json_value value, int scale, int64_t min,
	      int64_t max, int64_t *ns)
{
	struct json_number number;

	if (json_parse_number(text, value, &number))
		return -EBADMSG;
	if (json_scaled(&number, scale, ns) || *ns < min || *ns > max)
		return json_fail(text, value.at, -EBADMSG, "the time is out of range");
	return 0;
}

int json_integer(const struct json_text *text, struct json_value value, const char *what,
		 int64_t min, int64_t max, int64_t *integer)
{
	struct json_number number;
	const char *at = value.at ? value.at : text->start;

	if (!value.at)
		return json_fail(text, at, -EBADMSG, "no %s", what);
	if (parse_number(value.at, value.end, &number) != value.end || number.is_null ||
	    json_scaled(&number, 0, integer))
		return json_fail(text, at, -EBADMSG, "%s is no number", what);
	if (*integer < min || *integer > max)
		return json_fail(text, at, -EBADMSG, "%s is out of range: %lld", what,
				 (long long)*integer);
	return 0;
}

/* ---- cJSON ----------------------------------------------------------------------------------- */

static const cJSON *of_tree(const struct json_tree *tree)
{
	return (const void *)tree;
}

/* "d83d" of "\\ud83d": half of a character beyond 16 bits; `first`: the half that comes first. */
static bool is_surrogate(const char *at, const char *end, bool first)
{
	return end - at >= 6 && at[0] == '\\' && at[1] == 'u' && (at[2] | 0x20) == 'd' &&
	       strchr(first ? "89abAB" : "cdefCDEF", at[3]) && at[3];
}

/*
 * A copy in which halves of characters without the other half are the replacement character, as in
 * browsers; cJSON refuses them. NULL: there are none, or no memory.
 */
static char *mend_surrogates(struct json_value value)
{
	size_t size = (size_t)(value.end - value.at);
	char *copy = memmem(value.at, size, "\\u", 2) ? malloc(size + 1) : NULL;
	const char *end;
	bool mended = false;

	if (!copy)
		return NULL;
	end = copy + size;
	memcpy(copy, value.at, size);
	for (char *at = copy; at < end; at++) {
		if (*at != '\\')
			continue;
		if (is_surrogate(at, end, true) && is_surrogate(at + 6, end, false)) {
			at += 11;
		} else if (is_surrogate(at, end, true) || is_surrogate(at, end, false)) {
			memcpy(at + 2, "fffd", 4);
			mended = true;
			at += 5;
		} else {
			at++; /* an escaped backslash begins no escape */
		}
	}
	if (!mended)
		free(copy);
	return mended ? copy : NULL;
}

/* cJSON does not report if memory ran out, so large values are rejected. */
static int parse_tree(const struct json_text *text, struct json_value value, cJSON **json)
{
	_cleanup_free_ char *mended = NULL;
	const char *stopped = NULL;
	size_t size = (size_t)(value.end - value.at);

	if (size > JSON_TREE_MAX)
		return json_fail(text, value.at, -E2BIG, "an element of %zu bytes", size);
	*json = cJSON_ParseWithLengthOpts(value.at, size, &stopped, false);
	if (!*json)
		mended = mend_surrogates(value);
	if (mended)
		*json = cJSON_ParseWithLengthOpts(mended, size, NULL, false);
	if (!*json)
		return json_fail(text, stopped && stopped >= value.at ? stopped : value.at,
				 -EBADMSG, "no valid JSON");
	return 0;
}

int json_tree__parse(const struct json_text *text, struct json_value value, struct json_tree **tree)
{
	cJSON *json;
	int err;

	if (!value.at)
		return json_fail(text, text->start, -EBADMSG, "a value is missing");
	err = parse_tree(text, value, &json);
	if (!err)
		*tree = (struct json_tree *)json;
	return err;
}

int json_string_copy(const struct json_text *text, struct json_value value, char **copy)
{
	cJSON *json;
	int err;

	if (json_type(value) != JSON_STRING)
		return json_fail(text, value.at ? value.at : text->start, -EBADMSG,
				 "expected a string");
	if (!memchr(value.at, '\\', (size_t)(value.end - value.at))) {
		*copy = strndup(value.at + 1, (size_t)(value.end - value.at) - 2);
		return *copy ? 0 : -ENOMEM;
	}
	err = parse_tree(text, value, &json);
	if (err)
		return err;
	*copy = strdup(cJSON_GetStringValue(json));
	cJSON_Delete(json);
	return *copy ? 0 : -ENOMEM;
}

void json_tree__free(struct json_tree *tree)
{
	cJSON_Delete((cJSON *)tree);
}

static const cJSON *member(const struct json_tree *tree, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(of_tree(tree), name);
}

const char *json_tree__string(const struct json_tree *tree, const char *name, const char *otherwise)
{
	const char *text = cJSON_GetStringValue(member(tree, name));

	return text ? text : otherwise;
}

int64_t json_tree__integer(const struct json_tree *tree, const char *name, int64_t min, int64_t max,
			   int64_t otherwise)
{
	const cJSON *number = member(tree, name);

	if (!cJSON_IsNumber(number) || !(number->valuedouble >= (double)min) ||
	    !(number->valuedouble <= (double)max))
		return otherwise;
	/* the double next to INT64_MAX is beyond it */
	return number->valuedouble >= 9.2e18 ? max : (int64_t)number->valuedouble;
}
