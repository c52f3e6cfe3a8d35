/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of a report as text. Columns have fixed widths, names are cut where a terminal ends. */
#ifndef FORMATS_OUT_REPORT_TEXT_H
#define FORMATS_OUT_REPORT_TEXT_H

#include <stdio.h>

struct profile;
struct report_options;
struct report_table;

int report_table_text(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out);

#endif
