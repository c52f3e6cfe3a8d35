/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TAG:MARKER NAME SPACE SCRIPT:LINE:COLUMN. The tags are those of V8's src/logging/code-events.h,
 * with those that older versions had; the marker says which compiler, with "o" before it for a loop
 * that was entered in the middle (OSR) and "'" behind it for one context only. Line and column are
 * those of the definition, from 1 on; older versions have no column.
 */
#include "jit/js_name.h"

#include "jit/text.h"

struct tag {
	const char *text;
	enum code_tier tier; /* of its code; NONE: a marker has it */
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

/* NAME-INDEX-COMPILER. False: it is no function of WebAssembly. */
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

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (text_starts_with(t, starts[i]))
			return true;
	return false;
}

/* The space between name and script: of "get size /a b.js" the second. If nothing looks like a script: the first. */
static size_t end_of_name(struct jit_text t)
{
	for (size_t i = 0; i < t.size; i++)
		if (t.text[i] == ' ' && looks_like_script(text_from(t, i + 1)))
			return i;
	return text_find(t, ' ');
}

/* NAME SCRIPT:LINE:COLUMN, where all but the name may be missing. */
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

bool js_name_parse(struct jit_text name, struct jit_name *result)
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
