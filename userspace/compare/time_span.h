/* SPDX-License-Identifier: BSD-2-Clause */
/* Spans of time of day, as a user gives them. */
#ifndef COMPARE_TIME_SPAN_H
#define COMPARE_TIME_SPAN_H

#include <stdint.h>

/* ns since the epoch: [from, until) */
struct time_span {
	uint64_t from, until;
};

/*
 * "-1h": the last hour; "1 day ago+1h": an hour from then; "2026-11-26 10:00+30m": local time, or
 * UTC with "Z"; "2026-11-26+1d": from midnight. Units: s, m, h, d, w or names. 0 or -EINVAL.
 */
int parse_time_span(const char *text, uint64_t now, struct time_span *span);

#endif
