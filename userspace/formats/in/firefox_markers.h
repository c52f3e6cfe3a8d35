/* SPDX-License-Identifier: BSD-2-Clause */
/* Markers of a thread of a Firefox profile (firefox_file.h): their names and times, not their data. */
#ifndef FORMATS_IN_FIREFOX_MARKERS_H
#define FORMATS_IN_FIREFOX_MARKERS_H

#include "formats/in/firefox_file.h"

/* In our own files: the type of the data of those that were read. All others are made of the profile. */
#define FIREFOX_OWN_MARKER "\"Marker\""

/* A marker that has begun. */
struct firefox_open_marker {
	struct string_id name;
	int64_t start;
};

/* Zeroed for each thread. */
struct firefox_markers {
	VEC(struct firefox_open_marker) open;
};

/* A row; `end` and `phase` may be null. Rows without a name or a time are skipped. */
struct firefox_marker_row {
	struct json_number name, start, end, phase;
};

int firefox_markers__add(struct firefox_markers *markers, struct firefox_file *r,
			 struct firefox_in *in, const struct firefox_rows *rows,
			 const struct firefox_marker_row *row);
/* Those that have begun and not ended last until the end of the profile. */
int firefox_markers__end(struct firefox_markers *markers, struct firefox_file *r,
			 const struct firefox_rows *rows);

/* All of a thread in the processed format. */
int firefox_markers__read(struct firefox_file *r, struct firefox_in *in, struct json_value table,
			  const struct firefox_rows *rows);

#endif
