/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WORLD_RECORDING_FACTS_H
#define WORLD_RECORDING_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct books_event;
struct clock_anchor_event;
struct cpu_times_event;
struct profile_builder;
struct recording_facts;
struct visit_books_event;

/*
 * Facts about the recording: machine and command, clocks, sample accounting. The stream has them
 * once, or as sums since its beginning; this gives each window its own values.
 */

struct recording_facts *recording_facts__new(void); /* NULL: no memory */
void recording_facts__free(struct recording_facts *f);

/* Events as they come. 0 or -ENOMEM. */
int recording_facts__meta(struct recording_facts *f, const char *key, const char *value);
void recording_facts__anchor(struct recording_facts *f, const struct clock_anchor_event *e);
int recording_facts__books(struct recording_facts *f, const struct books_event *e);
int recording_facts__cpu_times(struct recording_facts *f, const struct cpu_times_event *e);

/* When sampling began, CLOCK_MONOTONIC ns; 0: not known yet. */
uint64_t recording_facts__start(const struct recording_facts *f);
/* --interrupts: samples of their work have a root frame that says so. */
bool recording_facts__marks_interrupts(const struct recording_facts *f);
/* ns between two ticks of a CPU; 0 unknown. */
uint64_t recording_facts__period(const struct recording_facts *f);
/* The value of a key of <sysprof/meta_keys.h>; NULL: it was not reported. */
const char *recording_facts__find(const struct recording_facts *f, const char *key);
/* The first anchor of the stream, and the last one so far. False: there was none. */
struct clock_moment {
	uint64_t monotonic, realtime; /* ns */
};
bool recording_facts__anchors(const struct recording_facts *f, struct clock_moment *first,
			      struct clock_moment *last);

/* Begins a window: adds all facts so far to its builder and notes where its accounting starts. */
int recording_facts__begin_window(struct recording_facts *f, struct profile_builder *builder);
/* The books of a CPU in this window. */
struct profile_cpu_books recording_facts__window_books(const struct recording_facts *f,
						       const struct books_event *e);
/* The books of the visitor in this window. The event has sums since the start. */
struct profile_visits recording_facts__visits(struct recording_facts *f,
					      const struct visit_books_event *e);

#endif
