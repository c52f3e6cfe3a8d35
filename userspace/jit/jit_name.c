/* SPDX-License-Identifier: BSD-2-Clause */
/* One grammar per runtime; the first match counts, so each needs a mark that no other name has. */
#include "jit/jit_name.h"

#include <string.h>

#include "base/order.h"

/* ---- parts of texts -------------------------------------------------------------------------- */

static bool text_starts_with(struct jit_text t, const char *start)
{
	size_t size = strlen(start);

	return t.size >= size && !memcmp(t.text, start, size);
}

static bool text_ends_with(struct jit_text t, const char *end)
{
	size_t size = strlen(end);

	return t.size >= size && !memcmp(t.text + t.size - size, end, size);
}

static struct jit_text text_from(struct jit_text t, size_t at)
{
	return (struct jit_text){t.text + at, t.size - at};
}

static struct jit_text text_up_to(struct jit_text t, size_t size)
{
	return (struct jit_text){t.text, size};
}

/* The position of the first (last) such character; t.size: none. */
static size_t text_find(struct jit_text t, char c)
{
	const char *at = t.size ? memchr(t.text, c, t.size) : NULL;

	return at ? (size_t)(at - t.text) : t.size;
}

static size_t text_find_last(struct jit_text t, char c)
{
	for (size_t i = t.size; i-- > 0;)
		if (t.text[i] == c)
			return i;
	return t.size;
}

static size_t text_find_string(struct jit_text t, const char *string)
{
	const char *at = t.size ? memmem(t.text, t.size, string, strlen(string)) : NULL;

	return at ? (size_t)(at - t.text) : t.size;
}

/* Is the text a decimal number up to INT32_MAX? */
static bool text_number(struct jit_text t, uint32_t *number)
{
	uint64_t value = 0;

	for (size_t i = 0; i < t.size; i++) {
		if (t.text[i] < '0' || t.text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(t.text[i] - '0');
		if (value > INT32_MAX)
			return false;
	}
	*number = (uint32_t)value;
	return t.size > 0;
}

/* Removes the last colon and the number after it. False: there is none. */
static bool text_take_number(struct jit_text *t, uint32_t *number)
{
	size_t colon = text_find_last(*t, ':');

	if (colon == t->size || !text_number(text_from(*t, colon + 1), number))
		return false;
	*t = text_up_to(*t, colon);
	return true;
}

/* ---- V8: node, deno, Chrome ------------------------------------------------------------------ */

/*
 * TAG:MARKER NAME SPACE SCRIPT:LINE:COLUMN. Tags are those of V8's src/logging/code-events.h, and
 * of older versions. The marker is the compiler: "o" before it is for a loop entered in the middle
 * (OSR), "'" after it for one context only. Line and column are of the definition, from 1 on; older
 * versions have no column.
 */
struct tag {
	const char *text;
	enum code_tier tier; /* of its code; NONE: see the marker */
};

static const struct tag tags[] = {
	{"JS:", CODE_TIER_NONE},
	{"Eval:", CODE_TIER_NONE},
	{"Script:", CODE_TIER_NONE},
	{"LazyCompile:", CODE_TIER_NONE},
	{"Function:", CODE_TIER_NONE},
	{"Builtin:", CODE_TIER_BUILTIN},
	{"BytecodeHandler:", CODE_TIER_BUILTIN},
	{"Handler:", CODE_TIER_STUB},
	{"Callback:", CODE_TIER_STUB},
	{"Stub:", CODE_TIER_STUB},
	{"RegExp:", CODE_TIER_REGEXP},
	{"LoadIC:", CODE_TIER_STUB},
	{"StoreIC:", CODE_TIER_STUB},
	{"KeyedLoadIC:", CODE_TIER_STUB},
	{"KeyedStoreIC:", CODE_TIER_STUB},
	{"CallIC:", CODE_TIER_STUB},
};

static enum code_tier tier_of_marker(char marker)
{
	switch (marker) {
	case '~':
		return CODE_TIER_INTERPRETED;
	case '^':
		return CODE_TIER_BASELINE;
	case '+':
		return CODE_TIER_MIDDLE;
	case '*':
		return CODE_TIER_OPTIMIZED;
	default:
		return CODE_TIER_NONE;
	}
}

static struct jit_text take_marker(struct jit_text name, enum code_tier *tier)
{
	size_t at = name.size > 1 && name.text[0] == 'o' &&
				    tier_of_marker(name.text[1]) != CODE_TIER_NONE
			    ? 1
			    : 0;

	*tier = at < name.size ? tier_of_marker(name.text[at]) : CODE_TIER_NONE;
	if (*tier == CODE_TIER_NONE)
		return name;
	at++;
	if (at < name.size && name.text[at] == '\'')
		at++;
	return text_from(name, at);
}

/* NAME-INDEX-COMPILER. False: not a WebAssembly function. */
static bool parse_wasm(struct jit_text name, struct jit_name *result)
{
	struct jit_text rest = name;
	uint32_t index;
	size_t dash;

	if (text_ends_with(name, "-liftoff"))
		result->tier = CODE_TIER_BASELINE;
	else if (text_ends_with(name, "-turbofan"))
		result->tier = CODE_TIER_OPTIMIZED;
	else
		return false;
	rest = text_up_to(rest, text_find_last(rest, '-'));
	dash = text_find_last(rest, '-');
	if (dash == rest.size || !text_number(text_from(rest, dash + 1), &index))
		return false;
	result->function = dash ? text_up_to(rest, dash) : rest;
	return true;
}

static bool looks_like_script(struct jit_text t)
{
	static const char *const starts[] = {"/",	"file:",  "node:",	  "internal/",
					     "http://", "https:", "evalmachine.", "webpack"};

	return any_of(starts, sizeof(starts) / sizeof(starts[0]), start,
		      text_starts_with(t, *start));
}

/* The space before the script: the second of "get size /a b.js". No script found: the first. */
static size_t end_of_name(struct jit_text t)
{
	for (size_t i = 0; i < t.size; i++)
		if (t.text[i] == ' ' && looks_like_script(text_from(t, i + 1)))
			return i;
	return text_find(t, ' ');
}

/* NAME SCRIPT:LINE:COLUMN; all but the name may be missing. */
static void parse_function(struct jit_text name, struct jit_name *result)
{
	struct jit_text script;
	size_t space = end_of_name(name);
	uint32_t last, before;

	result->function = text_up_to(name, space);
	if (space == name.size)
		return;
	script = text_from(name, space + 1);
	if (text_take_number(&script, &last)) {
		bool two = text_take_number(&script, &before);

		result->line = two ? before : last;
		result->column = two ? last : 0;
	}
	result->file = script;
}

static bool parse_js(struct jit_text name, struct jit_name *result)
{
	static const struct jit_text ANONYMOUS = {"(anonymous)", sizeof("(anonymous)") - 1};
	const struct tag *tag = tags, *end = tags + sizeof(tags) / sizeof(tags[0]);
	struct jit_text rest;

	while (tag < end && !text_starts_with(name, tag->text))
		tag++;
	if (tag == end)
		return false;
	*result = (struct jit_name){.function = name, .tier = tag->tier};
	if (tag->tier != CODE_TIER_NONE)
		return true;
	rest = take_marker(text_from(name, strlen(tag->text)), &result->tier);
	if (result->tier != CODE_TIER_NONE || !parse_wasm(rest, result))
		parse_function(rest, result);
	if (!result->function.size)
		result->function = ANONYMOUS;
	return true;
}

/* ---- other runtimes -------------------------------------------------------------------------- */

/* CPython: py::QUALIFIED_NAME:FILE */
static bool parse_python(struct jit_text name, struct jit_name *result)
{
	struct jit_text rest = text_from(name, text_starts_with(name, "py::") ? 4 : 0);
	size_t colon = text_find_last(rest, ':');

	if (rest.size == name.size || colon == rest.size || !colon)
		return false;
	result->function = text_up_to(rest, colon);
	result->file = text_from(rest, colon + 1);
	return true;
}

static enum code_tier tier_of_dotnet(struct jit_text tier)
{
	if (text_starts_with(tier, "Tier0") || text_starts_with(tier, "QuickJitted"))
		return CODE_TIER_BASELINE;
	if (text_starts_with(tier, "OptimizedTier1") || text_starts_with(tier, "Optimized") ||
	    text_starts_with(tier, "Tier1") || text_starts_with(tier, "PreJIT") ||
	    text_starts_with(tier, "ReadyToRun"))
		return CODE_TIER_OPTIMIZED;
	return CODE_TIER_NONE;
}

/* .NET: RETURN_TYPE [ASSEMBLY] TYPE::METHOD(SIGNATURE)[TIER] */
static bool parse_dotnet(struct jit_text name, struct jit_name *result)
{
	size_t open = text_find_string(name, " ["), close;
	struct jit_text rest;

	if (open == name.size)
		return false;
	rest = text_from(name, open + 2);
	close = text_find_string(rest, "] ");
	if (close == rest.size ||
	    text_find_string(text_from(rest, close), "::") + close == rest.size)
		return false;
	rest = text_from(rest, close + 2);
	if (text_ends_with(rest, "]")) {
		size_t tier = text_find_last(rest, '[');

		if (tier < rest.size && tier) {
			result->tier = tier_of_dotnet(text_from(rest, tier + 1));
			if (result->tier != CODE_TIER_NONE || text_ends_with(rest, "[Unknown]"))
				rest = text_up_to(rest, tier);
		}
	}
	if (!rest.size)
		return false;
	result->function = rest;
	return true;
}

/* Erlang: $MODULE:FUNCTION/ARITY */
static bool parse_erlang(struct jit_text name, struct jit_name *result)
{
	size_t slash = text_find_last(name, '/');
	uint32_t arity;

	if (!text_starts_with(name, "$") || slash == name.size || text_find(name, ':') >= slash ||
	    !text_number(text_from(name, slash + 1), &arity))
		return false;
	result->function = text_from(name, 1);
	return true;
}

/* LuaJIT: TRACE_NUMBER::CHUNK:LINE */
static bool parse_luajit(struct jit_text name, struct jit_name *result)
{
	size_t end = text_find_string(name, "::");
	struct jit_text chunk;
	uint32_t number, line;

	if (!text_starts_with(name, "TRACE_") || end == name.size ||
	    !text_number(text_from(text_up_to(name, end), strlen("TRACE_")), &number))
		return false;
	chunk = text_from(name, end + 2);
	result->function = text_up_to(name, end);
	if (text_take_number(&chunk, &line))
		result->line = line;
	result->file = chunk;
	result->tier = CODE_TIER_OPTIMIZED;
	return true;
}

/*
 * PHP (php-src, ext/opcache/jit): JIT$FUNCTION; of a trace TRACE-NUMBER$FUNCTION$LINE, with the
 * line of the trace, not of the function.
 */
static bool parse_php(struct jit_text name, struct jit_name *result)
{
	size_t start = text_find(name, '$'), end = text_find_last(name, '$');
	uint32_t number, line;

	if (start == name.size || start + 1 == name.size)
		return false;
	if (text_starts_with(name, "JIT$")) {
		result->function = text_from(name, start + 1);
		return true;
	}
	if (!text_starts_with(name, "TRACE-") || end < start + 2 ||
	    !text_number(text_from(text_up_to(name, start), strlen("TRACE-")), &number) ||
	    !text_number(text_from(name, end + 1), &line))
		return false;
	result->function = text_from(text_up_to(name, end), start + 1);
	result->tier = CODE_TIER_OPTIMIZED;
	return true;
}

/* Wasmtime: wasm[NUMBER]::function[NUMBER]::NAME */
static bool parse_wasmtime(struct jit_text name, struct jit_name *result)
{
	static const char FUNCTION[] = "]::function[";
	size_t function = text_find_string(name, FUNCTION), end;
	struct jit_text rest;

	if (!text_starts_with(name, "wasm[") || function == name.size)
		return false;
	rest = text_from(name, function + strlen(FUNCTION));
	end = text_find_string(rest, "]::");
	result->function = end + 3 < rest.size ? text_from(rest, end + 3) : name;
	return true;
}

/* Ruby: CLASS#METHOD (FILE:LINE) */
static bool parse_ruby(struct jit_text name, struct jit_name *result)
{
	struct jit_text place;
	size_t open = name.size;
	uint32_t line;

	for (size_t i = 0; i + 1 < name.size; i++)
		if (name.text[i] == ' ' && name.text[i + 1] == '(')
			open = i;
	if (!open || open == name.size || !text_ends_with(name, ")"))
		return false;
	place = text_up_to(text_from(name, open + 2), name.size - open - 3);
	if (!text_take_number(&place, &line) || !place.size)
		return false;
	result->function = text_up_to(name, open);
	result->file = place;
	result->line = line;
	return true;
}

#define JSC_HASH_SIZE 6

/* A function's code has the hash of its source after the name; helpers have none. */
static struct jit_text without_hash(struct jit_text name)
{
	size_t hash = text_find_last(name, '#');

	return hash && hash + 1 + JSC_HASH_SIZE == name.size ? text_up_to(name, hash) : name;
}

/* JavaScriptCore (Bun): JSC-COMPILER: FUNCTION#HASH; of helpers JSC-KIND: NAME. */
static bool parse_jsc(struct jit_text name, struct jit_name *result)
{
	static const struct {
		const char *start;
		enum code_tier tier;
	} compilers[] = {
		{"JSC-Baseline: ", CODE_TIER_BASELINE},
		{"JSC-DFG: ", CODE_TIER_OPTIMIZED},
		{"JSC-FTL: ", CODE_TIER_OPTIMIZED},
	};
	size_t colon = text_find_string(name, ": ");

	if (!text_starts_with(name, "JSC-") || colon + 2 >= name.size)
		return false;
	for (size_t i = 0; i < sizeof(compilers) / sizeof(compilers[0]); i++) {
		if (!text_starts_with(name, compilers[i].start))
			continue;
		result->function = without_hash(text_from(name, strlen(compilers[i].start)));
		result->tier = compilers[i].tier;
		return true;
	}
	result->function = text_from(name, strlen("JSC-"));
	result->tier = CODE_TIER_STUB;
	return true;
}

struct jit_name jit_name_parse(const char *name, size_t size)
{
	static bool (*const grammars[])(struct jit_text, struct jit_name *) = {
		parse_js,  parse_python,   parse_dotnet, parse_erlang, parse_luajit,
		parse_php, parse_wasmtime, parse_ruby,	 parse_jsc,
	};
	static const struct jit_text NAMELESS = {"(no name)", sizeof("(no name)") - 1};
	const struct jit_text whole = {name, size};

	for (size_t i = 0; i < sizeof(grammars) / sizeof(grammars[0]); i++) {
		struct jit_name result = {};

		if (grammars[i](whole, &result))
			return result;
	}
	return (struct jit_name){.function = size ? whole : NAMELESS};
}

bool jit_name_is_js(const char *name, size_t size)
{
	struct jit_name parsed;

	return parse_js((struct jit_text){name, size}, &parsed);
}
