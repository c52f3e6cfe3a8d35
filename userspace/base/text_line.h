/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of text that grows until its room is full. */
#ifndef BASE_TEXT_LINE_H
#define BASE_TEXT_LINE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/minmax.h"

struct text_line {
	char *text;
	size_t size, used;
};

static inline void __attribute__((format(printf, 2, 3)))
add_text(struct text_line *line, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->text + line->used, line->size - line->used, format, args);
	va_end(args);
	if (length > 0)
		line->used += min_u64((size_t)length, line->size - line->used - 1);
}

#endif
