/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SUFFIX_H
#define BASE_SUFFIX_H

#include <stdbool.h>
#include <string.h>

static inline bool has_suffix(const char *text, const char *suffix)
{
	size_t length = strlen(text), wanted = strlen(suffix);

	return length >= wanted && !strcmp(text + length - wanted, suffix);
}

#endif
