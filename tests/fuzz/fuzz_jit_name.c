/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code: whatever they are, their parts lie in them and do not overlap, the function is not
 * empty and numbers are those of lines. A name is parsed as it stands, and each of its lines.
 */
#include <string.h>

#include "fuzz.h"
#include "jit/jit_name.h"

/* What the grammars look for: one of two mutations puts some of it somewhere. */
static const char *const marks[] = {
	"JS:",
	"Eval:",
	"Script:",
	"LazyCompile:",
	"Function:",
	"Builtin:",
	"RegExp:",
	"LoadIC:",
	"~",
	"^",
	"+",
	"*",
	"o*",
	"'",
	" ",
	" /a.js",
	" node:",
	":1",
	":2147483647",
	":2147483648",
	"-7-liftoff",
	"-turbofan",
	"py::",
	":",
	" [",
	"] ",
	"::",
	"[Tier0]",
	"[PreJIT]",
	"[Unknown]",
	"$",
	"/2",
	"TRACE_1::",
	"wasm[0]",
	"]::function[",
	"]::",
	" (/a.rb:3)",
	" (",
	")",
	"\n",
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	const char *mark = marks[seed / 2 % COUNT(marks)];
	size_t length = strlen(mark), at = seed / 2 / COUNT(marks) % (size + 1);

	if (seed % 2 == 0 || size + length > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	memmove(data + at + length, data + at, size - at);
	memcpy(data + at, mark, length);
	return size + length;
}

static bool is_constant(struct jit_text t)
{
	static const char *const constants[] = {"(no name)", "(anonymous)"};

	for (size_t i = 0; i < COUNT(constants); i++)
		if (t.size == strlen(constants[i]) && !memcmp(t.text, constants[i], t.size))
			return true;
	return false;
}

static bool lies_in(struct jit_text t, const char *bytes, size_t size)
{
	uintptr_t start = (uintptr_t)t.text, from = (uintptr_t)bytes;

	return start >= from && start <= from + size && t.size <= from + size - start;
}

static void check(const struct jit_name *name, const char *bytes, size_t size)
{
	const struct jit_text *function = &name->function, *file = &name->file;

	MUST(function->size > 0);
	fuzz_read(function->text, function->size);
	fuzz_read(file->text, file->size);
	MUST(lies_in(*function, bytes, size) || is_constant(*function));
	MUST(!file->size || lies_in(*file, bytes, size));
	MUST(!file->size || function->text + function->size <= file->text ||
	     file->text + file->size <= function->text || is_constant(*function));
	MUST(name->line <= INT32_MAX && name->column <= INT32_MAX);
	MUST((unsigned int)name->tier < CODE_TIER_COUNT);
}

static bool same_text(struct jit_text a, struct jit_text b)
{
	return a.size == b.size && (!a.size || a.text == b.text);
}

static void parse(const char *bytes, size_t size)
{
	struct jit_name name = jit_name_parse(bytes, size), again = jit_name_parse(bytes, size);

	check(&name, bytes, size);
	MUST(same_text(name.function, again.function) && same_text(name.file, again.file));
	MUST(name.line == again.line && name.column == again.column && name.tier == again.tier);
	jit_name_is_js(bytes, size);
}

/* In memory of its own, so that reads outside of it are seen. */
static void parse_copy(const char *bytes, size_t size)
{
	char *copy = malloc(size + !size);

	MUST(copy);
	if (size)
		memcpy(copy, bytes, size);
	parse(copy, size);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size, *newline;

	parse_copy(at, size);
	for (; size && (newline = memchr(at, '\n', end - at)); at = newline + 1)
		parse_copy(at, newline - at);
	return 0;
}
