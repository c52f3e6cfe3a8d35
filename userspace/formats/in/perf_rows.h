/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of a text of perf script before their stacks are read: which of them are the profile's,
 * and what their periods and times mean.
 *
 * A profile has one event. Of several in a file it is a clock, else cycles, else what hardware
 * counts; of two of one kind the one with more samples. The others are left out. A clock's periods
 * are CPU time; if they differ, samples weigh by them. Those of another event are its counts: then there
 * is no CPU time. Without periods a sample counts 1. Samples of the idle task by a clock are no CPU
 * time, and left out.
 *
 * Numbers need not be what they stand for. Times that fall at many lines are differences (--deltatime),
 * and no times. If perf did not record periods (--no-period), it prints what was requested, which may
 * be a frequency: a header says so. Without one, a clock's period far below the time between samples
 * of a thread is none.
 */
#ifndef FORMATS_IN_PERF_ROWS_H
#define FORMATS_IN_PERF_ROWS_H

#include <sysprof/profile_builder.h>

#include "base/map.h"
#include "base/vec.h"
#include "formats/in/perf_events.h"
#include "formats/in/text_span.h"

struct frames;

struct perf_row {
	uint64_t time, period;
	size_t order;	  /* in the file */
	struct span body; /* its frames, with the source lines below them */
	const char *root; /* the last frame; NULL: there is none */
	struct string_id comm;
	uint32_t pid, tid, event, life;
	uint16_t cpu;
	bool has_pid, has_tid, has_time, has_period;
	bool in_line; /* the frame, if there is one, is at the end of the line */
};

struct perf_row_event {
	struct string_id name; /* 0: not printed */
	enum perf_event_rank rank;
	uint64_t samples;
	bool has_periods;
};
MAP_TYPE(perf_row_events, struct perf_row_event);

/* How an event was sampled, by the header. */
struct perf_setting {
	struct string_id event;
	uint64_t frequency; /* Hz, which perf prints as the period; 0: it prints periods */
};

/* Begins with the first two, and zeros. */
struct perf_rows {
	struct profile_builder *b;
	struct frames *frames; /* what is left out */
	VEC(struct perf_row) samples;
	struct perf_row_events events;
	VEC(struct perf_setting) settings;
	uint64_t times, falls, last_time;   /* times, how many are before the last one, and that */
	char other_events[256];		    /* names of those that are left out */
	const struct perf_row_event *event; /* the profile's */
	bool is_timed;
	bool has_deltas; /* for times */
	bool is_counted; /* a sample is one event */
	bool by_cpu;	 /* samples of a clock weigh their periods, which differ */
};

void perf_rows__fini(struct perf_rows *s);

/* In the order of the file; `event`: as printed. 0, -ENOMEM */
int perf_rows__add(struct perf_rows *s, struct perf_row *row, struct span event);
void perf_rows__drop_last(struct perf_rows *s);

/* A line of the header that may be about an event. 0, -ENOMEM */
int perf_rows__set_by(struct perf_rows *s, struct span line);

/* All were added: keeps those of the profile's event, in order of time. 0; -ENODATA: none; -ENOMEM. */
int perf_rows__settle(struct perf_rows *s);

/* Event, period and start of the session. */
void perf_rows__describe(struct perf_rows *s);

/* What a sample weighs. */
void perf_rows__weigh(const struct perf_rows *s, const struct perf_row *row,
		      struct profile_sample *sample);

#endif
