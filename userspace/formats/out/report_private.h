/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a report: the same rows and trees as text for people and as JSON for programs. */
#ifndef FORMATS_OUT_REPORT_PRIVATE_H
#define FORMATS_OUT_REPORT_PRIVATE_H

#include <stddef.h>

#include "formats/out/report.h"

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

/* ---- the parts ------------------------------------------------------------------------------- */

/* A table: `rows` are shown; `count` is the number of all that are not below the least share. */
struct report_table {
	const struct report_row *rows;
	size_t shown, count;
};

/* "function", … */
const char *report_by_name(enum report_by by);

/* A report's object up to "min_share"; the caller writes the rest of its members. */

#endif
