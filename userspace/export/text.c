/* SPDX-License-Identifier: BSD-2-Clause */
/* The .txt format: the report by function. */
#include "export/exporters.h"
#include "export/report.h"

static int write_text(const struct export_request *request)
{
	const struct report_options options = {.by = REPORT_FUNCTION};

	return report_write(request, &options);
}

const struct exporter text_exporter = {
	.name = "text",
	.suffixes = (const char *const[]){".txt", NULL},
	.description = "the functions with the most samples, as text",
	.how_to_open = "read %s",
	.write = write_text,
};
