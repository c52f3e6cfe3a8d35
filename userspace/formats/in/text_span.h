/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of a text that is read in place: neither copied nor ended by a zero. */
#ifndef FORMATS_IN_TEXT_SPAN_H
#define FORMATS_IN_TEXT_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/parse.h"

struct span {
	const char *at, *end;
};

static inline size_t span_size(struct span s)
{
	return (size_t)(s.end - s.at);
}

static inline bool is_same_span(struct span a, struct span b)
{
	return span_size(a) == span_size(b) && (a.at == a.end || !memcmp(a.at, b.at, span_size(a)));
}

static inline bool span_is(struct span s, const char *text)
{
	return is_same_span(s, (struct span){text, text + strlen(text)});
}

static inline bool span_begins(struct span s, const char *text)
{
	return span_size(s) >= strlen(text) && !memcmp(s.at, text, strlen(text));
}

static inline bool span_ends(struct span s, const char *text)
{
	return span_size(s) >= strlen(text) && !memcmp(s.end - strlen(text), text, strlen(text));
}

/* The newline of the line at `at`, or the end of the text. */
static inline const char *line_end(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline : end;
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static inline struct span trim_left(struct span s)
{
	while (s.at < s.end && is_space(*s.at))
		s.at++;
	return s;
}

/* The end of a line of a file of Windows, too. */
static inline struct span trim_right(struct span s)
{
	while (s.end > s.at && (is_space(s.end[-1]) || s.end[-1] == '\r'))
		s.end--;
	return s;
}

/* "+0x12" at the end. */
static inline void drop_offset(struct span *s)
{
	const char *at = s->end;

	while (at > s->at && hex_digit(at[-1]) >= 0)
		at--;
	if (at < s->end && at - s->at > 3 && !memcmp(at - 3, "+0x", 3))
		s->end = at - 3;
}

#endif
