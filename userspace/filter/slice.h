/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slice of a profile's time, as in FILE@10s-20s. Moments are offsets from the profile's start
 * ("10s", "1.5", "200ms", "2m", "1h"), or times of the clock on the wall: "10:00:05" of the day of
 * the recording, "2026-11-26T10:00:05", local time, or UTC with a Z. Offsets begin at 0.
 *
 *	10s-20s   10s-   from the one, up to the other, which is not in it
 *	-5s              the last 5 seconds
 *	10:00:05+30s     as long as that
 *
 * Anything else is the name of markers, and the slice is the time of all of them, in all threads.
 */
#ifndef FILTER_SLICE_H
#define FILTER_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/log.h"
#include "base/vec.h"

enum slice_moment_kind {
	SLICE_OPEN,   /* the profile's end */
	SLICE_OFFSET, /* ns from its start */
	SLICE_BACK,   /* ns before its end */
	SLICE_TIME,   /* ns since the epoch */
	SLICE_CLOCK,  /* ns of a day, local time */
	SLICE_CLOCK_UTC,
};

struct slice_moment {
	enum slice_moment_kind kind;
	uint64_t ns;
};

struct slice {
	struct slice_moment from, until;
	uint64_t length; /* instead of `until`, if has_length */
	bool has_length;
	bool is_of_markers;
};

/* CLOCK_MONOTONIC ns: [from, until) */
struct slice_range {
	uint64_t from, until;
};

/* In order, apart from each other. */
typedef VEC(struct slice_range) slice_ranges;

void slice__parse(struct slice *slice, const char *text);

/*
 * Adds its ranges of this profile: within its start and its end, where one is empty if it lies
 * outside; none if no marker has the name. `text` is that of slice__parse(). -ENODATA: the profile
 * has no times, not the time of the day, no markers, or only instants; -EINVAL: it ends before it
 * begins; -ENOMEM.
 */
int slice__resolve(const struct slice *slice, const char *text, const struct profile *p,
		   slice_ranges *ranges, struct failure *failure);

/* Leaves what is in both. 0 or -ENOMEM. */
int slice_ranges__intersect(slice_ranges *ranges, const slice_ranges *other);

#endif
