/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/kernel_code.h"

#include <string.h>

#include <sysprof/event.h>

#include "base/parse.h"

#define EXTENT_MAX    (64u << 20)
#define NAME_MAX_SIZE 512

/* From `at` to the next blank or `end`. */
static size_t word_size(const char *at, const char *end)
{
	size_t size = 0;

	while (at + size < end && (unsigned char)at[size] > ' ' && at[size] != 0x7f)
		size++;
	return size;
}

/* "ADDRESS TYPE NAME [MODULE]", without its newline. */
static bool parse_line(const char *at, const char *end, uint64_t *address, char *type,
		       struct kernel_code *code)
{
	if (parse_hex(&at, address) || end - at < 4 || at[0] != ' ' || at[2] != ' ')
		return false;
	*type = at[1];
	code->name = at + 3;
	code->name_size = word_size(code->name, end);
	at = code->name + code->name_size;
	at += at < end;
	code->tag = at;
	code->tag_size = word_size(at, end);
	return code->name_size && code->name_size <= NAME_MAX_SIZE &&
	       code->tag_size <= NAME_MAX_SIZE && at + code->tag_size == end;
}

bool kernel_code__parse(const char *text, size_t size, struct kernel_code *code)
{
	const char *newline = memchr(text, '\n', size);
	struct kernel_code found, last;
	uint64_t end;
	char type;

	if (!newline || !parse_line(text, newline, &found.start, &type, &found))
		return false;
	found.name_size = type == 'a' ? 0 : found.name_size;
	found.end = found.start + KERNEL_EXTENT_UNKNOWN;
	size -= (size_t)(newline + 1 - text);
	text = newline + 1;
	newline = memchr(text, '\n', size);
	if (newline && parse_line(text, newline, &end, &type, &last) && type == 'a' &&
	    last.name_size == strlen(KALLSYMS_END) &&
	    !memcmp(last.name, KALLSYMS_END, last.name_size))
		found.end = end;
	if (!found.start || found.end <= found.start || found.end - found.start > EXTENT_MAX)
		return false;
	*code = found;
	return true;
}
