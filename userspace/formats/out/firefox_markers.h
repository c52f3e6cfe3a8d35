/* SPDX-License-Identifier: BSD-2-Clause */
/* Markers of a Firefox profile: what happened at a time. */
#ifndef FORMATS_OUT_FIREFOX_MARKERS_H
#define FORMATS_OUT_FIREFOX_MARKERS_H

#include <stdbool.h>
#include <stddef.h>

struct firefox;
struct json_writer;
struct profile;

bool firefox_has_gil(const struct profile *p);

void firefox_write_marker_schema(const struct profile *p, struct json_writer *w);
/* Finds all markers. Call it before the tables are written: they get the names. 0, -ENOMEM. */
int firefox_collect_markers(struct firefox *f);
void firefox_write_markers(const struct firefox *f, size_t track);
/* Does the viewer show any of them above the thread's graph? */
bool firefox_has_overview_markers(const struct firefox *f, size_t track);

#endif
