/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/perf_map.h"

#include <string.h>

#include "base/parse.h"

#define USER_ADDRESS_END (UINT64_C(1) << 56) /* with 5 page-table levels */

/* Reads a hexadecimal number, and moves *at behind it and the required space. */
static bool take_number(const char **at, const char *end, uint64_t *number)
{
	const char *c = *at;
	unsigned int digits = 0;

	if (end - c > 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	for (*number = 0; c < end && hex_digit(*c) >= 0; c++, digits++) {
		if (*number >> 60)
			return false;
		*number = *number << 4 | (uint64_t)hex_digit(*c);
	}
	if (!digits || c == end || *c != ' ')
		return false;
	*at = c + 1;
	return true;
}

bool perf_map_parse_line(const char *line, size_t size, struct perf_map_entry *entry)
{
	const char *at = line, *end = line + size;
	uint64_t length;

	if (size && end[-1] == '\r')
		end--;
	if (!take_number(&at, end, &entry->start) || !take_number(&at, end, &length) || at == end)
		return false;
	if (__builtin_add_overflow(entry->start, length, &entry->end) ||
	    entry->end > USER_ADDRESS_END)
		return false;
	entry->name = at;
	entry->name_size = end - at;
	return true;
}

static int take_line(struct perf_map_reader *r, const char *line, size_t size,
		     perf_map_entry_fn visit, void *context)
{
	struct perf_map_entry entry;

	if (!size || (size == 1 && *line == '\r'))
		return 0;
	if (size > PERF_MAP_LINE_MAX || !perf_map_parse_line(line, size, &entry)) {
		r->bad_lines++;
		return 0;
	}
	r->entries++;
	return visit(context, &entry);
}

/* Keeps an incomplete line. */
static int keep_rest(struct perf_map_reader *r, const char *bytes, size_t size)
{
	if (r->skipping || !size)
		return 0;
	if (r->rest.count + size > PERF_MAP_LINE_MAX) {
		r->skipping = true;
		r->bad_lines++;
		r->rest.count = 0;
		return 0;
	}
	return vec_append(&r->rest, bytes, size);
}

static int end_line(struct perf_map_reader *r, const char *bytes, size_t size,
		    perf_map_entry_fn visit, void *context)
{
	int err;

	if (!r->rest.count && !r->skipping)
		return take_line(r, bytes, size, visit, context);
	err = keep_rest(r, bytes, size);
	if (!err && !r->skipping)
		err = take_line(r, r->rest.data, r->rest.count, visit, context);
	r->rest.count = 0;
	r->skipping = false;
	return err;
}

int perf_map_reader__feed(struct perf_map_reader *r, const char *bytes, size_t size,
			  perf_map_entry_fn visit, void *context)
{
	const char *end = bytes + size, *newline;

	for (; (newline = memchr(bytes, '\n', end - bytes)); bytes = newline + 1) {
		int err = end_line(r, bytes, newline - bytes, visit, context);

		if (err)
			return err;
	}
	return keep_rest(r, bytes, end - bytes);
}

int perf_map_reader__finish(struct perf_map_reader *r, perf_map_entry_fn visit, void *context)
{
	return end_line(r, "", 0, visit, context);
}

void perf_map_reader__fini(struct perf_map_reader *r)
{
	vec_free(&r->rest);
	*r = (struct perf_map_reader){};
}
