/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as a table: what `sysprof report` prints, and the .txt format. */
#ifndef EXPORT_REPORT_H
#define EXPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <sysprof/profile.h>

enum report_by {
	REPORT_FUNCTION,
	REPORT_THREAD,
	REPORT_PROCESS,
	REPORT_DSO,
	REPORT_LINE, /* executing lines; functions where no line is known */
	REPORT_BY_COUNT
};

#define REPORT_TOP_DEFAULT 40

struct report_options {
	enum report_by by;
	unsigned int top; /* rows, 0: REPORT_TOP_DEFAULT */
	bool json;
};

/* "function", "thread", "process", "dso", "line"; -EINVAL. */
int report_by_parse(const char *text, enum report_by *by);

/* 0 or negative errno; write errors may also show only in ferror(). */
int report_write(const struct profile *p, const struct report_options *options, FILE *out);

#endif
