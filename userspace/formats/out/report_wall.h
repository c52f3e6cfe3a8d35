/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the time of threads went, by visits: by state, waiting function, thread, or holder of the
 * lock. Shares are of the lifetime of all visited threads, so rows by state add up to 100 %.
 */
#ifndef FORMATS_OUT_REPORT_WALL_H
#define FORMATS_OUT_REPORT_WALL_H

#include "formats/out/report.h"

struct export_request;

/* "state", "function", "thread", "holder"; -EINVAL. */
int report_wall_by_parse(const char *text, enum report_wall_by *by);

int report_wall(const struct export_request *request, const struct report_options *options);

#endif
