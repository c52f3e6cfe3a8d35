/* SPDX-License-Identifier: BSD-2-Clause */
/* The .txt format: the report by function. */
#include "export/exporters.h"
#include "export/report.h"

static int write_text(const struct profile *profile, const struct export_options *options,
		      FILE *out)
{
	const struct report_options report = {.by = REPORT_FUNCTION, .top = options->top};

	return report_write(profile, &report, out);
}

static const char *const suffixes[] = {".txt", NULL};

const struct exporter text_exporter = {
	.name = "text",
	.suffixes = suffixes,
	.description = "the functions with the most samples, as text",
	.how_to_open = "read %s",
	.write = write_text,
};
