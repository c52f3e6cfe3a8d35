/* SPDX-License-Identifier: BSD-2-Clause */
/* One rewritten line on a terminal. */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/io.h"

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

void progress__symbols(void *progress, size_t done, size_t total)
{
	if (!(done & 63) || done == total)
		progress__line(progress, "symbols: %zu of %zu addresses", done, total);
}
