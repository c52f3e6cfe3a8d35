/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/report_paint.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* The shares from which perf paints numbers, too. */
#define HOT_SHARE  0.05
#define WARM_SHARE 0.005

char *printable_copy(const char *text)
{
	size_t size = 4 * strlen(text) + sizeof("[unknown]");
	char *copy = malloc(size);

	if (!copy)
		return NULL;
	utf8_sanitize(copy, size, text);
	if (!copy[strspn(copy, " ")])
		snprintf(copy, size, "[unknown]");
	return copy;
}

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

size_t text_columns(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += begins_character(*text);
	return columns;
}

/* Where the character of this column begins. */
static char *character(char *text, size_t column)
{
	for (; *text; text++)
		if (begins_character(*text) && !column--)
			break;
	return text;
}

void shorten_text(char *text, size_t columns, bool keep_end, bool utf8)
{
	const char *mark = utf8 ? "…" : "..";
	size_t have = text_columns(text), mark_columns = utf8 ? 1 : 2, size = strlen(mark);
	char *cut;

	if (have <= columns || columns < 3)
		return;
	/* characters that are cut may take less bytes than the mark: then one or two more are */
	if (!keep_end) {
		cut = character(text, columns - mark_columns);
		while (cut > text && (strlen(cut) < size || !begins_character(*cut)))
			cut--;
		memcpy(cut, mark, size + 1);
		return;
	}
	cut = character(text, have - (columns - mark_columns));
	while (*cut && ((size_t)(cut - text) < size || !begins_character(*cut)))
		cut++;
	memmove(text + size, cut, strlen(cut) + 1);
	memcpy(text, mark, size);
}

static enum paint paint_of_share(double share)
{
	if (share >= HOT_SHARE)
		return PAINT_HOT;
	return share >= WARM_SHARE ? PAINT_WARM : PAINT_NONE;
}

enum paint paint_of_category(enum profile_category category)
{
	switch (category) {
	case CATEGORY_KERNEL:
		return PAINT_KERNEL;
	case CATEGORY_LIBRARY:
		return PAINT_LIBRARY;
	case CATEGORY_JIT:
		return PAINT_JIT;
	default:
		return PAINT_NONE;
	}
}

void paint_begin(FILE *out, bool color, enum paint paint)
{
	static const char *const codes[] = {
		[PAINT_HOT] = "31",    [PAINT_WARM] = "32",    [PAINT_DIM] = "2",
		[PAINT_KERNEL] = "33", [PAINT_LIBRARY] = "36", [PAINT_JIT] = "35",
	};

	if (color && paint != PAINT_NONE)
		fprintf(out, "\033[%sm", codes[paint]);
}

void paint_end(FILE *out, bool color, enum paint paint)
{
	if (color && paint != PAINT_NONE)
		fputs("\033[0m", out);
}

void paint_text(FILE *out, bool color, enum paint paint, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	paint_begin(out, color, paint);
	vfprintf(out, format, args);
	paint_end(out, color, paint);
	va_end(args);
}

void paint_share(FILE *out, bool color, double share)
{
	paint_text(out, color, paint_of_share(share), "%6.2f%%", 100 * share);
}
