/* SPDX-License-Identifier: BSD-2-Clause */
/* What a terminal shows while we work: one line on stderr, rewritten in place. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>

#include <sysprof/symbolizer.h>

struct progress {
	bool wanted;		 /* stderr is a terminal and the user did not say -q */
	bool shown;		 /* a line is on the screen */
	unsigned long long last; /* CLOCK_MONOTONIC ns of the last line */
};

void progress__init(struct progress *p, bool quiet);
/* Show this line instead of the last one, at most ten times a second. */
void progress__line(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Take the line away before something else is printed. */
void progress__clear(struct progress *p);

/* What is being done about symbols. */
void progress__symbols(struct progress *p, const struct symbolizer_progress *symbols);

#endif
