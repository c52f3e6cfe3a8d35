/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of an EVENT_FACTS as it is put together: "key\0value\0" again and again, in a space that has an end. */
#ifndef PROCFS_FACT_TEXT_H
#define PROCFS_FACT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define FACT_VALUE_MAX                                                                             \
	3072u /* bytes: a longer one is left out, since a part of it would be wrong */

struct fact_text {
	char *text;
	size_t room, size;
	unsigned int count, most;
};

/*
 * `prefix` and `key` are texts; the value is so many bytes, up to its first NUL. False: no room, too long, or its key
 * is there already, as the first one counts.
 */
static inline bool fact_text__add(struct fact_text *t, const char *prefix, const char *key,
				  const char *value, size_t value_size)
{
	size_t first = strlen(prefix), second = strlen(key);
	char *at = t->text + t->size;

	value_size = strnlen(value, value_size);
	if (value_size > FACT_VALUE_MAX || t->count == t->most || first + second == 0 ||
	    first + second + value_size + 2 > t->room - t->size)
		return false;
	memcpy(at, prefix, first);
	memcpy(at + first, key, second + 1);
	for (const char *known = t->text; known < at; known += strlen(known) + 1) {
		if (!strcmp(known, at))
			return false;
		known += strlen(known) + 1;
	}
	memcpy(at + first + second + 1, value, value_size);
	at[first + second + 1 + value_size] = '\0';
	t->size += first + second + value_size + 2;
	t->count++;
	return true;
}

#endif
