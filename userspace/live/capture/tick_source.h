/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event that drives the ticks (-e), by perf's names:
 *
 *   cpu-clock, task-clock                     clocks: a sample is a stretch of time
 *   page-faults, cycles, LLC-load-misses, …   events of the kernel or of the CPU's PMU
 *   cpu/event=0x3c,umask=1/, cpu/NAME/, r13c  events of any PMU in sysfs, and raw ones
 *   cycles:u                                  with modifiers: u and k, where it counts; p, precisely
 */
#ifndef LIVE_CAPTURE_TICK_SOURCE_H
#define LIVE_CAPTURE_TICK_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define TICK_SOURCE_NAME_MAX 128
#define TICK_SOURCE_DEFAULT  "cpu-clock" /* which every machine has */

struct tick_source {
	char name[TICK_SOURCE_NAME_MAX]; /* "cpu-clock", …: the usual one of several */
	uint32_t type;
	uint64_t config[3];
	bool clock; /* periods are ns, so the books have what is due */
	bool exclude_user, exclude_kernel;
	uint8_t precise; /* attr.precise_ip */
};

/* How often it ticks: `hz` times a second, or if `period` is not 0 once in so many events or ns. */
struct tick_rate {
	unsigned int hz; /* > 0 */
	uint64_t period;
};

/* By its name. -ENOENT: there is no such event; -EINVAL: … as it is written. */
int tick_source__find(const char *name, struct tick_source *source, struct failure *failure);

/* ns between two ticks; 0: it is not a clock. */
uint64_t tick_source__period(const struct tick_source *source, const struct tick_rate *rate);

/* A tick event of one CPU, disabled. Returns the fd or negative errno. */
int tick_event_open(const struct tick_source *source, int cpu, const struct tick_rate *rate);

/* Why there is none, by the error: a sentence without a stop. */
const char *tick_source__refusal(int err);

/* ---- what there is --------------------------------------------------------------------------- */

/* An event of this machine. */
struct listed_event {
	const char *kind; /* "software", "hardware", "cache", "pmu" */
	char name[TICK_SOURCE_NAME_MAX];
	bool available;
	char detail[512]; /* why not, or "" */
};

/* Calls `take` for every event, after an attempt to open it. 0 or what `take` returned. */
int tick_sources__list(int (*take)(void *context, const struct listed_event *event), void *context);

#endif
