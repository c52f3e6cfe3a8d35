/* SPDX-License-Identifier: BSD-2-Clause */
/* One rewritten line on a terminal. */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/utf8.h"

#define INTERVAL 100000000ull /* ns */

void progress__init(struct progress *p, bool quiet)
{
	*p = (struct progress){.wanted = !quiet && isatty(STDERR_FILENO)};
}

void progress__line(struct progress *p, const char *format, ...)
{
	va_list arguments;
	unsigned long long now;

	if (!p->wanted)
		return;
	now = monotonic_ns();
	if (p->shown && now - p->last < INTERVAL)
		return;
	p->last = now;
	p->shown = true;
	fputs("\r\033[K", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fflush(stderr);
}

void progress__clear(struct progress *p)
{
	if (!p->shown)
		return;
	p->shown = false;
	fputs("\r\033[K", stderr);
	fflush(stderr);
}

void progress__symbols(struct progress *p, const struct symbolizer_progress *symbols)
{
	char name[256];

	if (!symbols->file)
		progress__line(p, "symbols: %zu of %zu addresses · Ctrl-C skips the rest",
			       symbols->done, symbols->total);
	else if (symbols->of_bytes)
		progress__line(p, "debug file of %s: %.1f of %.1f MB",
			       utf8_sanitize(name, sizeof(name), symbols->file),
			       symbols->bytes / 1048576.0, symbols->of_bytes / 1048576.0);
	else
		progress__line(p, "debug file of %s: %.1f MB",
			       utf8_sanitize(name, sizeof(name), symbols->file),
			       symbols->bytes / 1048576.0);
}
