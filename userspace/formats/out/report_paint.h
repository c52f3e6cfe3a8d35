/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FORMATS_OUT_REPORT_PAINT_H
#define FORMATS_OUT_REPORT_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <sysprof/profile.h>

#include "base/text_line.h"

/* A new copy that is safe on a terminal; never empty. NULL: no memory. */
char *printable_copy(const char *text);

/* Columns on a terminal: one for each character. */
size_t text_columns(const char *text);

/*
 * Cuts the text in place to so many columns (at least 3) if it is longer, with "…" (or "..") for
 * the missing part: its end, or with `keep_end` its beginning.
 */
void shorten_text(char *text, size_t columns, bool keep_end, bool utf8);

enum paint { PAINT_NONE, PAINT_HOT, PAINT_WARM, PAINT_DIM, PAINT_KERNEL, PAINT_LIBRARY, PAINT_JIT };

enum paint paint_of_category(enum profile_category category);

/* Nothing without `color`. Each begin has its end. */
void paint_begin(FILE *out, bool color, enum paint paint);
void paint_end(FILE *out, bool color, enum paint paint);
void paint_text(FILE *out, bool color, enum paint paint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* " 12.34%" */
void paint_share(FILE *out, bool color, double share);

#endif
