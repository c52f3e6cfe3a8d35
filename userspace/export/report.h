/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as a table: what `sysprof report` prints, and the .txt format. */
#ifndef EXPORT_REPORT_H
#define EXPORT_REPORT_H

#include <stdbool.h>

#include <sysprof/exporter.h>

enum report_by {
	REPORT_FUNCTION,
	REPORT_THREAD,
	REPORT_PROCESS,
	REPORT_DSO,
	REPORT_LINE, /* executing lines; functions if the line is unknown */
	REPORT_BY_COUNT
};

#define REPORT_TOP_DEFAULT 40 /* rows */

struct report_options {
	enum report_by by;
	bool json;
};

/* "function", "thread", "process", "dso", "line"; -EINVAL. */
int report_by_parse(const char *text, enum report_by *by);

/* 0 or negative errno; a write error may be visible in ferror() only. Of the request: profile, out, top. */
int report_write(const struct export_request *request, const struct report_options *options);

/* The "summary" of the report's JSON: an object. */
struct json_writer;
void report_write_summary(const struct profile *p, struct json_writer *w);

#endif
