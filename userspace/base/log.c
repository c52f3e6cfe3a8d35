/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences about failures, and the one place that prints them. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static enum log_level wanted_level = LOG_INFO;

/* By way of a copy: the arguments may be texts of the same struct failure. */
__attribute__((format(printf, 3, 0))) static void format_text(char *buffer, size_t size,
							      const char *format, va_list args)
{
	char text[sizeof(((struct failure *)0)->what)];

	vsnprintf(text, sizeof(text), format, args);
	snprintf(buffer, size, "%s", text);
}

int fail(struct failure *f, int error, const char *format, ...)
{
	va_list args;

	if (!f)
		return error;
	va_start(args, format);
	format_text(f->what, sizeof(f->what), format, args);
	va_end(args);
	f->remedy[0] = '\0'; /* one for an earlier failure would mislead */
	return error;
}

int fail_remedy(struct failure *f, int error, const char *format, ...)
{
	va_list args;

	if (!f)
		return error;
	va_start(args, format);
	format_text(f->remedy, sizeof(f->remedy), format, args);
	va_end(args);
	return error;
}

void log_set_level(enum log_level level)
{
	wanted_level = level;
}

void log_print(enum log_level level, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *shown = NULL;
	int saved = errno, length;
	size_t size;
	va_list args;

	if (level > wanted_level)
		return;
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0) {
		text = NULL;
		fputs("sysprof: out of memory\n", stderr);
		return;
	}
	size = (size_t)length * 4 + 1; /* every byte may become \xNN */
	shown = malloc(size);
	if (shown)
		fprintf(stderr, "sysprof: %s\n", utf8_sanitize(shown, size, text));
	else
		fputs("sysprof: out of memory\n", stderr);
	errno = saved;
}
