/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/folded_lines.h"

#include <errno.h>
#include <string.h>

#include "formats/in/import.h"

#define COUNT_MAX	 (1ULL << 62)
#define RECOGNIZED_LINES 3
#define TABLE_LINES	 64
#define SKIPPED_LINES	 2 /* before the first stack, besides comments */
#define PYTHON_PROCESS	 "process "

/* ---- lines ----------------------------------------------------------------------------------- */

/* "12" or "12.5", which flamegraph.pl takes. */
bool folded_parse_count(struct span text, struct folded_line *line)
{
	uint64_t value = 0;
	uint32_t fraction = 0, digits = 0;
	const char *at = text.at;

	for (; at < text.end && is_digit(*at); at++) {
		if (value > COUNT_MAX / 10)
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	if (at == text.at)
		return false;
	if (at < text.end && *at == '.')
		at++;
	for (; at < text.end && is_digit(*at); at++)
		if (digits < FOLDED_FRACTION_DIGITS) {
			fraction = fraction * 10 + (uint32_t)(*at - '0');
			digits++;
		}
	line->digits = digits;
	for (; digits < FOLDED_FRACTION_DIGITS; digits++)
		fraction *= 10;
	line->count = value;
	line->billionths = fraction;
	return at == text.end;
}

int folded_split_line(struct span line, struct folded_line *out)
{
	const char *space;

	while (line.end > line.at && strchr(" \t\r", line.end[-1]) && line.end[-1])
		line.end--;
	if (line.at == line.end || *line.at == '#')
		return -EAGAIN;
	for (space = line.end; space > line.at && !is_space(space[-1]);)
		space--;
	if (space-- == line.at || !folded_parse_count((struct span){space + 1, line.end}, out))
		return -EBADMSG;
	out->stack = (struct span){line.at, space};
	while (out->stack.end > out->stack.at && is_space(out->stack.end[-1]))
		out->stack.end--;
	if (out->stack.at == out->stack.end)
		return -ENODATA;
	/* of strace, or of settings: "read(3, …) = 5" */
	return span_ends(out->stack, " =") ? -EBADMSG : 0;
}

bool folded_next_stack(struct span *rest, struct folded_line *line)
{
	while (rest->at < rest->end) {
		struct span text = {rest->at, line_end(rest->at, rest->end)};

		rest->at = text.end + (text.end < rest->end);
		if (!folded_split_line(text, line))
			return true;
	}
	return false;
}

struct span folded_next_field(struct span *rest)
{
	const char *semicolon = memchr(rest->at, ';', span_size(*rest));
	struct span field = {rest->at, semicolon ? semicolon : rest->end};

	rest->at = semicolon ? semicolon + 1 : rest->end;
	return field;
}

bool folded_has_callers(const struct folded_line *line)
{
	return memchr(line->stack.at, ';', span_size(line->stack));
}

/* Of our own files, which may have nothing else. */
static bool is_own_comment(struct span line)
{
	return span_begins(line, FOLDED_WEIGHTS) || span_begins(line, FOLDED_SAMPLES) ||
	       span_begins(line, FOLDED_FILTER);
}

/* "Node 0, zone DMA 1 0" */
static bool ends_in_numbers(struct span stack, unsigned int count)
{
	struct folded_line ignored;

	for (; count; count--) {
		const char *space = memrchr(stack.at, ' ', span_size(stack));

		if (!space || !folded_parse_count((struct span){space + 1, stack.end}, &ignored))
			return false;
		for (stack.end = space; stack.end > stack.at && is_space(stack.end[-1]);)
			stack.end--;
	}
	return true;
}

/* Columns of numbers, as in /proc: no stack has a caller, and half of them end in three numbers. */
static bool is_table(struct span text)
{
	unsigned int stacks = 0, rows = 0;
	struct folded_line line;

	while (stacks < TABLE_LINES && folded_next_stack(&text, &line)) {
		if (folded_has_callers(&line))
			return false;
		stacks++;
		rows += ends_in_numbers(line.stack, 2);
	}
	return rows && 2 * rows >= stacks;
}

/* Any text may have a line that ends in a number, so behind lines that are none there have to be several stacks. */
bool folded_recognizes(const uint8_t *bytes, size_t size)
{
	const char *at = (const char *)bytes, *end = at + size;
	unsigned int lines = 0, skipped = 0;
	bool is_own = false;

	if (memchr(bytes, 0, size < 4096 ? size : 4096))
		return false;
	for (const char *newline; at < end && lines < RECOGNIZED_LINES; at = newline + 1) {
		struct folded_line line;
		int err;

		newline = line_end(at, end);
		err = folded_split_line((struct span){at, newline}, &line);
		if (err == -EBADMSG && lines)
			return !skipped; /* what follows may be damaged */
		skipped += err == -EBADMSG;
		if (skipped > SKIPPED_LINES || (skipped && !err && !folded_has_callers(&line)))
			return false;
		lines += !err;
		is_own |= is_own_comment((struct span){at, newline});
	}
	return is_own || (lines >= (skipped ? RECOGNIZED_LINES : 1) &&
			  !is_table((struct span){(const char *)bytes, end}));
}

/* ---- the first field ------------------------------------------------------------------------- */

/* The letter of "_[k]" at the end, 0: none. */
char folded_annotation(struct span field)
{
	size_t size = (size_t)(field.end - field.at);

	if (size <= 4 || memcmp(field.end - 4, "_[", 2) || field.end[-1] != ']')
		return 0;
	return strchr("kji01?", field.end[-2]) ? field.end[-2] : 0;
}

bool folded_is_async_thread(struct span field)
{
	return field.at < field.end && *field.at == '[' && field.end[-1] == ']' &&
	       memmem(field.at, (size_t)(field.end - field.at), " tid=", 5);
}

/* "thread (12): name", "thread (0x7f00)" */
bool folded_is_python_thread(struct span field)
{
	const char *close = memchr(field.at, ')', span_size(field));
	struct span id = {field.at + strlen(FOLDED_PYTHON_THREAD), close};

	if (!span_begins(field, FOLDED_PYTHON_THREAD) || !close || id.at == id.end)
		return false;
	for (id.at += span_begins(id, "0x") ? 2 : 0; id.at < id.end; id.at++)
		if (hex_digit(*id.at) < 0)
			return false;
	return close + 1 == field.end || close[1] == ':';
}

bool folded_is_marked_thread(struct span field)
{
	return folded_is_async_thread(field) || folded_is_python_thread(field);
}

/*
 * The command line in `process 12:"python3 a.py"`, which may have semicolons, too, and is taken from the
 * fields. 0: they do not begin with a process.
 */
static uint32_t take_process(struct span *fields, struct span *command)
{
	struct span rest = *fields;
	const char *end;
	uint64_t pid = 0;

	if (!span_begins(rest, PYTHON_PROCESS))
		return 0;
	for (rest.at += strlen(PYTHON_PROCESS);
	     rest.at < rest.end && is_digit(*rest.at) && pid < UINT32_MAX; rest.at++)
		pid = pid * 10 + (uint64_t)(*rest.at - '0');
	if (!span_begins(rest, ":\"") || pid >= UINT32_MAX)
		return 0;
	rest.at += 2;
	end = memmem(rest.at, span_size(rest), "\";", 2);
	if (!end && !span_ends(rest, "\""))
		return 0;
	*command = (struct span){rest.at, end ? end : rest.end - 1};
	fields->at = end ? end + 2 : rest.end;
	return (uint32_t)pid;
}

/* Those that it was started by come first. */
uint32_t folded_take_processes(struct span *fields, struct span *command)
{
	uint32_t pid, last = 0;

	while ((pid = take_process(fields, command)))
		last = pid;
	return last;
}

/* The first functions of threads and programs, which no thread is called by. */
static bool is_entry(struct span field)
{
	static const char *const entries[] = {
		"start_thread",
		"_start",
		"clone",
		"__clone",
		"clone3",
		"__clone3",
		"thread_start",
		"_pthread_start",
		"__libc_start_main",
		"__libc_start_main_impl",
		"__libc_start_call_main",
		"runtime.main",
		"runtime.mcall",
		"runtime.goexit",
		"std::rt::lang_start",
		"<main>",
		"block in <main>",
		"{main}",
		"<module>",
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		if ((size_t)(field.end - field.at) == strlen(entries[i]) &&
		    !memcmp(field.at, entries[i], strlen(entries[i])))
			return true;
	return false;
}

/* "java/lang/Thread.run", but neither "kworker/0:1" nor "/app/server.js" */
static bool is_java_method(struct span field)
{
	const char *slash = memchr(field.at, '/', (size_t)(field.end - field.at));
	const char *dot = slash ? memrchr(slash, '.', (size_t)(field.end - slash)) : NULL;

	return dot && slash > field.at && dot + 1 < field.end &&
	       !memchr(field.at, ' ', (size_t)(field.end - field.at));
}

/* DTrace's "libc.so.1`_lwp_start" */
bool folded_has_module(struct span field)
{
	return memchr(field.at, '`', (size_t)(field.end - field.at));
}

/* rbspy's "block in run - /app/thread.rb:10" */
static bool has_place(struct span field)
{
	const char *end = field.end;

	while (end > field.at && is_digit(end[-1]))
		end--;
	return end < field.end && end > field.at && end[-1] == ':' &&
	       memmem(field.at, (size_t)(end - field.at), " - ", 3);
}

/* "<module> (app.py)" */
static bool is_of_python(struct span field)
{
	return field.end - field.at > 5 && !memcmp(field.end - 4, ".py)", 4) &&
	       memmem(field.at, (size_t)(field.end - field.at), " (", 2);
}

static bool looks_like_frame(struct span field)
{
	if (folded_is_marked_thread(field))
		return false;
	return folded_annotation(field) || is_entry(field) || is_java_method(field) ||
	       folded_has_module(field) || has_place(field) || is_of_python(field) ||
	       (field.end - field.at > 4 && field.end[-1] == ')' && is_digit(field.end[-2]) &&
		memchr(field.at, ':', (size_t)(field.end - field.at)));
}

/* "libc.so.1`read+0x12": the function with the address in it. */
static bool has_offset(struct span field)
{
	struct span name = field;

	drop_offset(&name);
	return folded_has_module(field) && name.end < field.end;
}

/* In most lines with modules, as ustack() prints them; else "+0x12" is a part of a name. */
bool folded_have_offsets(struct span text)
{
	uint64_t modules = 0, offsets = 0;
	struct folded_line line;

	while (folded_next_stack(&text, &line)) {
		bool any = false;

		if (!folded_has_module(line.stack))
			continue;
		while (line.stack.at < line.stack.end && !any)
			any = has_offset(folded_next_field(&line.stack));
		modules++;
		offsets += any;
	}
	return 2 * offsets > modules;
}

bool folded_have_threads(struct span text)
{
	bool any = false, is_named = false;
	struct folded_line line;

	while (folded_next_stack(&text, &line)) {
		struct span field;
		bool has_process = folded_take_processes(&line.stack, &field);

		any |= has_process;
		is_named |= has_process;
		if (has_process)
			continue;
		field = folded_next_field(&line.stack);
		any |= folded_is_marked_thread(field);
		is_named |= field.at < field.end;
		if (line.stack.at == line.stack.end && !folded_is_marked_thread(field))
			return any;
		if (looks_like_frame(field))
			return any;
	}
	return is_named;
}
