/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/perf_rows.h"

#include <errno.h>
#include <stdio.h>

#include "base/minmax.h"
#include "base/order.h"
#include "base/text_line.h"
#include "formats/in/frames.h"
#include "formats/in/import.h"
#include "formats/in/perf_events.h"

#define EVENT_BEGINS "# event : name = "
#define NS	     1000000000ULL
#define FALLS_MIN    4 /* of times: fewer are of files that were joined */
#define FALLS_OF     8 /* of as many times at least one falls */
#define FREQUENCY_MAX                                                                              \
	15000 /* periods of a frequency of that many Hz are far above the number itself */
#define GAPS_MIN	    10
#define EVENTS_SHOWN	    4 /* of those that are left out */

#define hash_event(e)	    hash_u64((e)->name.v)
#define is_same_event(a, b) ((a)->name.v == (b)->name.v)
MAP_FUNCTIONS_OF(perf_row_events, struct perf_row_event, hash_event, is_same_event);

struct last_time {
	uint32_t tid;
	uint64_t time;
};
DEFINE_MAP_BY(last_times, struct last_time, uint32_t, tid);

/* ---- rows ------------------------------------------------------------------------------------ */

static int find_event(struct perf_rows *s, struct span printed, bool has_period, uint32_t *number)
{
	char name[PERF_EVENT_NAME_SIZE] = "";
	struct perf_row_event wanted = {}, *event;
	bool is_new;

	if (printed.at < printed.end)
		perf_event_name(printed, name);
	wanted.name = profile_builder__string(s->b, name);
	event = perf_row_events__need(&s->events, &wanted, &is_new);
	if (!event)
		return -ENOMEM;
	if (is_new)
		event->rank = perf_event_rank(name);
	event->samples++;
	event->has_periods |= has_period;
	*number = (uint32_t)(event - s->events.data);
	return 0;
}

int perf_rows__add(struct perf_rows *s, struct perf_row *row, struct span event)
{
	row->order = s->samples.count;
	s->is_timed |= row->has_time;
	if (row->has_time) {
		s->falls += s->times++ && row->time < s->last_time;
		s->last_time = row->time;
	}
	return find_event(s, event, row->has_period, &row->event) ?: vec_push(&s->samples, *row);
}

void perf_rows__drop_last(struct perf_rows *s)
{
	s->events.data[s->samples.data[--s->samples.count].event].samples--;
}

/* "# event : name = cpu-clock, , …, { sample_period, sample_freq } = 99, sample_type = IP|TID|TIME, …, freq = 1" */
int perf_rows__set_by(struct perf_rows *s, struct span line)
{
	static const char value[] = "{ sample_period, sample_freq } = ";
	struct perf_setting setting = {};
	struct span name = {line.at + strlen(EVENT_BEGINS), line.end};
	char text[PERF_EVENT_NAME_SIZE];
	const char *at;

	if (!span_begins(line, EVENT_BEGINS) ||
	    !(name.end = memmem(name.at, span_size(name), ", ", 2)))
		return 0;
	at = memmem(line.at, span_size(line), value, strlen(value));
	if (at && memmem(at, (size_t)(line.end - at), ", freq = 1", 10) &&
	    !memmem(at, (size_t)(line.end - at), "|PERIOD", 7))
		for (at += strlen(value); is_digit(*at) && setting.frequency < NS; at++)
			setting.frequency = setting.frequency * 10 + (uint64_t)(*at - '0');
	perf_event_name(name, text);
	setting.event = profile_builder__string(s->b, text);
	return vec_push(&s->settings, setting);
}

/* ---- which samples --------------------------------------------------------------------------- */

static bool is_clock(const struct perf_rows *s)
{
	return s->event->rank == PERF_EVENT_CLOCK;
}

static void list_other_events(struct perf_rows *s)
{
	struct text_line list = {s->other_events, sizeof(s->other_events), 0};
	unsigned int shown = 0;

	for (size_t i = 0; i < s->events.count && shown <= EVENTS_SHOWN; i++) {
		const struct perf_row_event *event = &s->events.data[i];
		const char *name = profile_builder__get_string(s->b, event->name);

		if (event == s->event || !event->samples)
			continue;
		add_text(&list, "%s%s", shown ? ", " : " (",
			 shown == EVENTS_SHOWN ? "…"
			 : name && *name       ? name
					       : "without a name");
		shown++;
	}
	add_text(&list, "%s", shown ? ")" : "");
	s->frames->details[LEFT_OUT_OTHER_EVENTS] = s->other_events;
}

static void choose_event(struct perf_rows *s)
{
	const struct perf_row_event *best = NULL;

	for (size_t i = 0; i < s->events.count; i++) {
		const struct perf_row_event *event = &s->events.data[i];

		if (event->samples &&
		    (!best || event->rank > best->rank ||
		     (event->rank == best->rank && event->samples > best->samples)))
			best = event;
	}
	s->event = best;
	list_other_events(s);
}

static bool is_idle(const struct perf_rows *s, const struct perf_row *b)
{
	const char *comm = profile_builder__get_string(s->b, b->comm);

	return is_clock(s) && !b->tid && comm && !strncmp(comm, "swapper", 7);
}

/* Why a sample is left out; LEFT_OUT_COUNT: it is not. */
static enum import_left_out reason_of(const struct perf_rows *s, const struct perf_row *b)
{
	if (&s->events.data[b->event] != s->event)
		return LEFT_OUT_OTHER_EVENTS;
	if (s->is_timed && !b->has_time)
		return LEFT_OUT_NO_TIME;
	if (is_idle(s, b))
		return LEFT_OUT_IDLE;
	if (s->event->has_periods && !b->period)
		return LEFT_OUT_NO_PERIOD;
	return LEFT_OUT_COUNT;
}

static void leave_out(struct perf_rows *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->samples.count; i++) {
		enum import_left_out reason = reason_of(s, &s->samples.data[i]);

		if (reason == LEFT_OUT_COUNT)
			s->samples.data[kept++] = s->samples.data[i];
		else
			s->frames->left_out[reason]++;
	}
	s->samples.count = kept;
}

DEFINE_ORDER(compare_rows, struct perf_row, ASCENDING(time) ?: ASCENDING(order));

static void sort_rows(struct perf_rows *s)
{
	bool sorted = true;

	for (size_t i = 1; i < s->samples.count && sorted; i++)
		sorted = s->samples.data[i - 1].time <= s->samples.data[i].time;
	if (!sorted)
		vec_sort(&s->samples, compare_rows);
}

/* ---- what the numbers are -------------------------------------------------------------------- */

/* Times are needed once more, for the gaps between samples: there the sums of differences do. */
static void find_deltas(struct perf_rows *s)
{
	uint64_t sum = 0;

	s->has_deltas = s->falls >= FALLS_MIN && s->falls >= s->times / FALLS_OF;
	for (size_t i = 0; i < s->samples.count && s->has_deltas; i++)
		if (s->samples.data[i].has_time)
			s->samples.data[i].time = sum = saturating_add_u64(sum,
									   s->samples.data[i].time);
}

static void drop_deltas(struct perf_rows *s)
{
	if (!s->has_deltas)
		return;
	for (size_t i = 0; i < s->samples.count; i++)
		s->samples.data[i].time = 0;
	s->is_timed = false;
	s->frames->left_out[LEFT_OUT_DELTAS] = s->times;
}

/* 0: they differ. */
static uint64_t equal_period(const struct perf_rows *s)
{
	uint64_t period = s->samples.count ? s->samples.data[0].period : 0;

	for (size_t i = 1; i < s->samples.count; i++)
		if (s->samples.data[i].period != period)
			return 0;
	return period;
}

static void set_period(struct perf_rows *s, uint64_t period)
{
	for (size_t i = 0; i < s->samples.count; i++)
		s->samples.data[i].period = period;
	s->events.data[s->event - s->events.data].has_periods = period > 0;
}

static const struct perf_setting *find_setting(const struct perf_rows *s)
{
	for (size_t i = 0; i < s->settings.count; i++)
		if (s->settings.data[i].event.v == s->event->name.v)
			return &s->settings.data[i];
	return NULL;
}

/*
 * Are nearly all gaps between samples of a thread those of a frequency of `hz`, or longer? A CPU that
 * a thread leaves, and another one that it comes to, have clocks of their own. Without numbers of
 * threads it is not known, and no period is believed.
 */
static int count_gaps(const struct perf_rows *s, uint64_t hz, bool *are_long)
{
	struct last_times last = {};
	uint64_t gaps = 0, longer = 0;
	bool lacks_tids = false;
	int err = 0;

	for (size_t i = 0; i < s->samples.count && !err; i++) {
		const struct perf_row *b = &s->samples.data[i];
		bool is_new;
		struct last_time wanted = {.tid = b->tid},
				 *at = last_times__need(&last, &wanted, &is_new);

		err = at ? 0 : -ENOMEM;
		lacks_tids |= !b->has_tid;
		if (!err && !is_new) {
			gaps++;
			longer += b->time - at->time >= NS / hz / 2;
		}
		if (!err)
			at->time = b->time;
	}
	last_times__fini(&last);
	*are_long = lacks_tids || (gaps >= GAPS_MIN && longer * 10 >= gaps * 9);
	return err;
}

/* What perf prints as the period of each sample may be what was requested, a frequency. */
static int settle_periods(struct perf_rows *s)
{
	const struct perf_setting *setting = find_setting(s);
	uint64_t period = equal_period(s);
	bool are_long = false;
	int err;

	if (!period || (setting && setting->frequency != period))
		return 0;
	if (setting) {
		set_period(s, is_clock(s) ? NS / period : 0);
		return 0;
	}
	if (!is_clock(s) || !s->is_timed || period > FREQUENCY_MAX)
		return 0;
	err = count_gaps(s, period, &are_long);
	if (!err && are_long) {
		s->frames->left_out[LEFT_OUT_FREQUENCY] = s->samples.count;
		set_period(s, 0);
	}
	return err;
}

int perf_rows__settle(struct perf_rows *s)
{
	int err;

	find_deltas(s);
	choose_event(s);
	if (!s->event)
		return -ENODATA;
	leave_out(s);
	sort_rows(s);
	err = settle_periods(s);
	if (err)
		return err;
	drop_deltas(s);
	s->by_cpu = is_clock(s) && s->event->has_periods && !equal_period(s);
	return 0;
}

/* ---- the session ----------------------------------------------------------------------------- */

/* A sample by a clock stands for the time before it. */
static uint64_t first_time(const struct perf_rows *s)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < s->samples.count; i++) {
		const struct perf_row *b = &s->samples.data[i];
		uint64_t before = is_clock(s) && b->period ? b->period : 1;

		first = min_u64(first, b->time - min_u64(b->time, before));
	}
	return s->samples.count ? first : 0;
}

static uint64_t mean_period(const struct perf_rows *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->samples.count; i++)
		sum += min_u64(s->samples.data[i].period, UINT64_MAX - sum);
	return s->samples.count ? sum / s->samples.count : 0;
}

static void set_event(struct perf_rows *s)
{
	struct profile *session = profile_builder__session(s->b);
	const char *name = profile_builder__get_string(s->b, s->event->name);
	bool has_name = name && *name, has_periods = s->event->has_periods;

	if (has_name)
		profile_builder__meta(s->b, META_EVENT, name);
	if (is_clock(s)) {
		session->period = s->is_timed ? mean_period(s) : 0;
		if (s->by_cpu)
			import_weigh_by_cpu(s->b);
	} else if (has_name || has_periods) {
		bool is_time = has_name && has_periods && !strcmp(name, META_EVENT_OFF_CPU);

		s->is_counted = !has_periods;
		if (s->is_counted && !perf_event_is_tracepoint(name))
			s->frames->left_out[LEFT_OUT_ONE_EVENT] = s->samples.count;
		session->event = profile_builder__string(s->b, has_name ? name : "events");
		session->event_unit = profile_builder__string(s->b,
							      is_time ? "nanoseconds" : "count");
		session->event_period = equal_period(s);
	}
}

void perf_rows__describe(struct perf_rows *s)
{
	struct profile *session = profile_builder__session(s->b);

	set_event(s);
	session->start = s->is_timed ? first_time(s) : PROFILE_MADE_UP_START;
	session->untimed = !s->is_timed;
	session->finished_symbols = true;
}

void perf_rows__weigh(const struct perf_rows *s, const struct perf_row *r,
		      struct profile_sample *sample)
{
	*(is_clock(s) ? &sample->weight : &sample->events) = s->is_counted ? 1 : r->period;
	if (s->by_cpu)
		sample->events = r->period;
}

void perf_rows__fini(struct perf_rows *s)
{
	vec_free(&s->samples);
	perf_row_events__fini(&s->events);
	vec_free(&s->settings);
}
