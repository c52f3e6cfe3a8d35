/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One grammar a runtime; the first that fits. The file does not name the grammar, so each needs a mark that no other
 * name has.
 */
#include "jit/jit_name.h"

#include "jit/js_name.h"
#include "jit/text.h"

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
 * PHP (php-src, ext/opcache/jit): JIT$FUNCTION, and of a trace TRACE-NUMBER$FUNCTION$LINE, where the
 * line is the trace's, not the function's.
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

/* A function's code has the hash of its source behind the name; another one has none. */
static struct jit_text without_hash(struct jit_text name)
{
	size_t hash = text_find_last(name, '#');

	return hash && hash + 1 + JSC_HASH_SIZE == name.size ? text_up_to(name, hash) : name;
}

/* JavaScriptCore (Bun): JSC-COMPILER: FUNCTION#HASH, and JSC-KIND: NAME of its helpers. */
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
		js_name_parse, parse_python,   parse_dotnet, parse_erlang, parse_luajit,
		parse_php,     parse_wasmtime, parse_ruby,   parse_jsc,
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
