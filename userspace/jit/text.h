/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of texts that are not ended by NUL. */
#ifndef JIT_TEXT_H
#define JIT_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "jit/jit_name.h"

static inline bool text_starts_with(struct jit_text t, const char *start)
{
	size_t size = strlen(start);

	return t.size >= size && !memcmp(t.text, start, size);
}

static inline bool text_ends_with(struct jit_text t, const char *end)
{
	size_t size = strlen(end);

	return t.size >= size && !memcmp(t.text + t.size - size, end, size);
}

static inline struct jit_text text_from(struct jit_text t, size_t at)
{
	return (struct jit_text){t.text + at, t.size - at};
}

static inline struct jit_text text_up_to(struct jit_text t, size_t size)
{
	return (struct jit_text){t.text, size};
}

/* Where the first or the last such character is; t.size: nowhere. */
static inline size_t text_find(struct jit_text t, char c)
{
	const char *at = t.size ? memchr(t.text, c, t.size) : NULL;

	return at ? (size_t)(at - t.text) : t.size;
}

static inline size_t text_find_last(struct jit_text t, char c)
{
	for (size_t i = t.size; i-- > 0;)
		if (t.text[i] == c)
			return i;
	return t.size;
}

static inline size_t text_find_string(struct jit_text t, const char *string)
{
	const char *at = t.size ? memmem(t.text, t.size, string, strlen(string)) : NULL;

	return at ? (size_t)(at - t.text) : t.size;
}

/* All of it is a decimal number that fits. */
static inline bool text_number(struct jit_text t, uint32_t *number)
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

/* A number behind the last colon is taken off, with the colon. */
static inline bool text_take_number(struct jit_text *t, uint32_t *number)
{
	size_t colon = text_find_last(*t, ':');

	if (colon == t->size || !text_number(text_from(*t, colon + 1), number))
		return false;
	*t = text_up_to(*t, colon);
	return true;
}

#endif
