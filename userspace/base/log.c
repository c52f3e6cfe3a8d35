/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences about failures, and the one place that prints them. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/list_column.h"
#include "base/utf8.h"

static enum log_level wanted_level = LOG_INFO;
static uint64_t started; /* CLOCK_MONOTONIC ns; 0: debug lines were never wanted */
bool log_debug_wanted;

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

/* ---- printing -------------------------------------------------------------------------------- */

void log_set_level(enum log_level level)
{
	if (level == LOG_DEBUG && !started)
		started = monotonic_ns();
	wanted_level = level;
	log_debug_wanted = level == LOG_DEBUG;
}

static void write_line(const char *text, size_t size)
{
	(void)write_full(STDERR_FILENO, text, size); /* an error here cannot be reported anywhere */
}

static void write_out_of_memory(void)
{
	static const char text[] = "sysprof: out of memory\n";

	write_line(text, sizeof(text) - 1);
}

/* One write a line: those of other threads, and of children, stay whole. */
__attribute__((format(printf, 2, 0))) static void print_line(const char *prefix, const char *format,
							     va_list args)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *line = NULL;
	size_t prefix_length = strlen(prefix), size;
	int length = vasprintf(&text, format, args);

	if (length < 0) {
		text = NULL;
		write_out_of_memory();
		return;
	}
	size = (size_t)length * 4 + 1; /* every byte may become \xNN */
	line = malloc(prefix_length + size + 1);
	if (!line) {
		write_out_of_memory();
		return;
	}
	memcpy(line, prefix, prefix_length);
	utf8_sanitize(line + prefix_length, size, text);
	size = strlen(line);
	line[size++] = '\n';
	write_line(line, size);
}

void log_print(enum log_level level, const char *format, ...)
{
	int saved = errno;
	va_list args;

	if (level > wanted_level)
		return;
	va_start(args, format);
	print_line("sysprof: ", format, args);
	va_end(args);
	errno = saved;
}

void log_print_debug(enum log_subsystem subsystem, const char *format, ...)
{
	static const char *const NAMES[] = {LOG_SUBSYSTEMS(SECOND_COLUMN)};
	int saved = errno;
	char prefix[64];
	va_list args;

	snprintf(prefix, sizeof(prefix), "sysprof: [%s] %.3f s: ", NAMES[subsystem],
		 (monotonic_ns() - started) / 1e9);
	va_start(args, format);
	print_line(prefix, format, args);
	va_end(args);
	errno = saved;
}
