/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter/slice.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/parse.h"
#include "filter/owners.h"

#define MOMENT_SIZE  64
#define OFFSET_MAX   (UINT64_C(100) * 366 * 86400 * NS_PER_SECOND)
#define DAY	     (UINT64_C(86400) * NS_PER_SECOND)
#define REALTIME_MAX ((uint64_t)INT64_MAX / 2) /* in the year 2116; sums of two fit */

/* "10", "1.5", as ns of a unit. Digits below 1 ns are cut. */
static int parse_decimal(const char *text, size_t size, uint64_t unit, uint64_t *ns)
{
	uint64_t whole = 0, part = 0, place = unit;
	size_t at = 0;

	for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
		whole = whole * 10 + (uint64_t)(text[at] - '0');
		if (whole > OFFSET_MAX / unit)
			return -ERANGE;
	}
	if (!at)
		return -EINVAL;
	if (at < size && text[at] == '.') {
		size_t first = ++at;

		for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
			place /= 10;
			part += place * (uint64_t)(text[at] - '0');
		}
		if (at == first)
			return -EINVAL;
	}
	if (at != size)
		return -EINVAL;
	*ns = whole * unit + part;
	return 0;
}

/* "10s", "500ms"; without a unit seconds */
static int parse_offset(const char *text, size_t size, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"ns", 1},
		{"us", 1000},
		{"ms", 1000000},
		{"s", NS_PER_SECOND},
		{"m", 60 * NS_PER_SECOND},
		{"h", 3600 * NS_PER_SECOND},
		{"d", DAY},
		{"", NS_PER_SECOND},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t length = strlen(units[i].name);

		if (size > length && !memcmp(text + size - length, units[i].name, length))
			return parse_decimal(text, size - length, units[i].ns, ns);
	}
	return -EINVAL;
}

/* The fraction of a second behind a time, and a Z: "", ".25", ".25Z" */
static int parse_ending(const char *text, uint64_t *ns, bool *utc)
{
	size_t size = strlen(text);
	char decimal[MOMENT_SIZE + 1];

	*ns = 0;
	*utc = size && text[size - 1] == 'Z';
	size -= *utc;
	if (!size)
		return 0;
	if (*text != '.' || size >= MOMENT_SIZE)
		return -EINVAL;
	*decimal = '0';
	memcpy(decimal + 1, text, size);
	return parse_decimal(decimal, size + 1, NS_PER_SECOND, ns);
}

static uint64_t ns_of_day(const struct tm *tm)
{
	return (uint64_t)(tm->tm_hour * 3600 + tm->tm_min * 60 + tm->tm_sec) * NS_PER_SECOND;
}

/* "10:00", "10:00:05.5", "2026-11-26T10:00:05Z" */
static int parse_clock(const char *text, struct slice_moment *moment)
{
	static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%H:%M:%S",
					      "%H:%M"};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct tm tm = {.tm_isdst = -1};
		const char *end = strptime(text, formats[i], &tm);
		uint64_t fraction;
		uint64_t seconds;
		bool utc;

		if (!end || parse_ending(end, &fraction, &utc))
			continue;
		if (formats[i][1] == 'H') {
			*moment = (struct slice_moment){utc ? SLICE_CLOCK_UTC : SLICE_CLOCK,
							ns_of_day(&tm) + fraction};
			return 0;
		}
		seconds = date_seconds(&tm, utc);
		if (!seconds || seconds > OFFSET_MAX / NS_PER_SECOND)
			return -EINVAL;
		*moment = (struct slice_moment){SLICE_TIME, seconds * NS_PER_SECOND + fraction};
		return 0;
	}
	return -EINVAL;
}

static int parse_moment(const char *text, size_t size, struct slice_moment *moment)
{
	char copy[MOMENT_SIZE];
	uint64_t ns;

	if (!size || size >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (parse_offset(copy, size, &ns))
		return parse_clock(copy, moment);
	*moment = (struct slice_moment){SLICE_OFFSET, ns};
	return 0;
}

/* Dates have hyphens, too: the one in between is that with a moment on each side. */
static int parse_times(struct slice *slice, const char *text)
{
	*slice = (struct slice){};
	if (*text == '-') {
		slice->from.kind = SLICE_BACK;
		return parse_offset(text + 1, strlen(text + 1), &slice->from.ns);
	}
	for (const char *at = text; *at; at++) {
		if (*at == '+' && !parse_moment(text, (size_t)(at - text), &slice->from) &&
		    !parse_offset(at + 1, strlen(at + 1), &slice->length)) {
			slice->has_length = true;
			return 0;
		}
		if (*at != '-' || parse_moment(text, (size_t)(at - text), &slice->from))
			continue;
		if (!at[1] || !parse_moment(at + 1, strlen(at + 1), &slice->until))
			return 0;
	}
	return -EINVAL;
}

void slice__parse(struct slice *slice, const char *text)
{
	if (parse_times(slice, text))
		*slice = (struct slice){.is_of_markers = true};
}

/*
 * When the clock shows that time so many days after the day of the start; ns since the epoch. A day
 * on which summer time begins or ends does not have 24 hours.
 */
static int64_t time_of_clock(const struct slice_moment *moment, uint64_t start, int days)
{
	time_t seconds = (time_t)(start / NS_PER_SECOND);
	int of_day = (int)(moment->ns / NS_PER_SECOND);
	struct tm tm = {};

	if (moment->kind == SLICE_CLOCK_UTC)
		gmtime_r(&seconds, &tm);
	else
		localtime_r(&seconds, &tm);
	tm.tm_mday += days;
	tm.tm_hour = of_day / 3600;
	tm.tm_min = of_day / 60 % 60;
	tm.tm_sec = of_day % 60;
	tm.tm_isdst = -1;
	seconds = moment->kind == SLICE_CLOCK_UTC ? timegm(&tm) : mktime(&tm);
	return (int64_t)seconds * NS_PER_SECOND + (int64_t)(moment->ns % NS_PER_SECOND);
}

/* ns from the profile's start. Of a recording over midnight, the time that is in it. */
static int64_t offset_of_time(const struct slice_moment *moment, const struct profile *p)
{
	int64_t start = (int64_t)p->start_realtime, length = (int64_t)(p->end - p->start);
	int64_t offset, next;

	if (moment->kind == SLICE_TIME)
		return (int64_t)moment->ns - start;
	offset = time_of_clock(moment, p->start_realtime, 0) - start;
	next = time_of_clock(moment, p->start_realtime, 1) - start;
	return offset < 0 && next <= length ? next : offset;
}

static int64_t resolve(const struct slice_moment *moment, const struct profile *p)
{
	switch (moment->kind) {
	case SLICE_OPEN:
		return INT64_MAX;
	case SLICE_OFFSET:
		return (int64_t)moment->ns;
	case SLICE_BACK:
		return (int64_t)(p->end - p->start) - (int64_t)moment->ns;
	case SLICE_TIME:
	case SLICE_CLOCK:
	case SLICE_CLOCK_UTC:
		break;
	}
	return offset_of_time(moment, p);
}

static bool needs_realtime(const struct slice_moment *moment)
{
	return moment->kind >= SLICE_TIME;
}

static int resolve_times(const struct slice *slice, const struct profile *p,
			 struct slice_range *range, struct failure *failure)
{
	int64_t from, until, length = (int64_t)(p->end - p->start);

	if ((needs_realtime(&slice->from) || needs_realtime(&slice->until)) &&
	    (p->start_realtime < PROFILE_YEAR_2000 || p->start_realtime > REALTIME_MAX))
		return fail(failure, -ENODATA, "its time of day is not known");
	from = resolve(&slice->from, p);
	until = slice->has_length ? from + (int64_t)slice->length : resolve(&slice->until, p);
	if (until < from)
		return fail(failure, -EINVAL, "the slice ends before it begins");
	if (until == from || (slice->from.kind == SLICE_BACK && !slice->from.ns))
		return fail(failure, -EINVAL, "the slice is empty: it ends where it begins");
	range->from = from <= 0 ? p->start
				: p->start + min_u64((uint64_t)from, (uint64_t)length + 1);
	/* the end itself is in a slice that reaches it */
	range->until = until >= length ? UINT64_MAX : p->start + (uint64_t)(until > 0 ? until : 0);
	return 0;
}

/* Markers are in order of their starts. */
static int add_marker(slice_ranges *ranges, const struct profile *p,
		      const struct profile_marker *marker)
{
	struct slice_range *last = ranges->count ? &ranges->data[ranges->count - 1] : NULL;
	uint64_t until = marker->end == p->end ? UINT64_MAX : marker->end;

	if (marker->start == marker->end)
		return 0;
	if (last && marker->start <= last->until) {
		last->until = max_u64(last->until, until);
		return 0;
	}
	return vec_push(ranges, (struct slice_range){marker->start, until});
}

static int resolve_markers(const char *name, const struct profile *p, slice_ranges *ranges,
			   struct failure *failure)
{
	bool is_found = false;
	int err = 0;

	if (!p->marker_count)
		return fail(
			failure, -ENODATA,
			"it has no markers, and %s is no time, as in @10s-20s, @-5s or @10:00:05+30s",
			name);
	for (size_t i = 0; i < p->marker_count && !err; i++) {
		const struct profile_marker *marker = &p->markers[i];

		if (!is_name(name, profile__string(p, marker->name)))
			continue;
		is_found = true;
		err = add_marker(ranges, p, marker);
	}
	if (!err && is_found && !ranges->count)
		return fail(failure, -ENODATA, "the markers %s are instants, without an extent",
			    name);
	return err;
}

int slice__resolve(const struct slice *slice, const char *text, const struct profile *p,
		   slice_ranges *ranges, struct failure *failure)
{
	struct slice_range range;
	int err;

	if (p->untimed)
		return fail(failure, -ENODATA, "its samples have no times");
	if (slice->is_of_markers)
		return resolve_markers(text, p, ranges, failure);
	err = resolve_times(slice, p, &range, failure);
	return err ? err : vec_push(ranges, range);
}

int slice_ranges__intersect(slice_ranges *ranges, const slice_ranges *other)
{
	slice_ranges both = {};
	int err = 0;

	for (size_t i = 0, k = 0; i < ranges->count && k < other->count && !err;) {
		const struct slice_range *a = &ranges->data[i], *b = &other->data[k];
		const struct slice_range part = {max_u64(a->from, b->from),
						 min_u64(a->until, b->until)};

		if (part.from < part.until)
			err = vec_push(&both, part);
		if (a->until <= b->until)
			i++;
		else
			k++;
	}
	vec_free(ranges);
	ranges->data = both.data;
	ranges->count = both.count;
	ranges->capacity = both.capacity;
	return err;
}
