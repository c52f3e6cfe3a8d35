/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The activity of a thread between two of its CPU samples: decided here, once, for every exporter.
 *
 * A thread is observed at its CPU samples only; each has the exact CPU time since the one before.
 * An interval (t1, t2] of length L and CPU time D holds an off-CPU gap when it is longer than 1.5
 * periods (a tick missed the thread) and D < L - period / 2 (it was not just a lost sample). Where
 * the period is unknown (0; a nonsensical 1 counts as that) no gap is ever found.
 *
 * Two views of a gap, for the two kinds of viewers there are:
 *
 * 1. struct timeline, for viewers that draw a CPU rate per interval (Firefox). The CPU of a gap is
 *    laid at 100 % beside the samples that it must belong to: a = min(D / 2, period) right after t1
 *    and b = min(D - a, period) right before t2; what these cannot explain (a thread that runs
 *    between the ticks) is shown between them:
 *
 *       t1 ----a---- A .......... D - a - b .......... B ----b---- t2
 *       SAMPLE       IDLE_BEGIN                        IDLE_END    SAMPLE
 *
 *    Before the first sample there is nothing that CPU could belong to, so a = 0, and START takes
 *    the place of IDLE_BEGIN; after the last one b = 0, and END takes that of IDLE_END.
 *
 * 2. timeline_idle_before(), for viewers in which a sample lasts until the next one or stands for
 *    one period (.cpuprofile): one idle sample for each tick that missed the thread. A thread whose
 *    CPU time in the gap is TIMELINE_LOST_PERIODS or more was not missed by chance: samples of it
 *    were lost, and there are no more idle samples than its idle time has periods (rounded up).
 *
 * Profiles of formats that report when threads were idle (profile.idle_known) have IDLE samples:
 * the idle samples of the second view. The first view uses them only where weights are of the time
 * after a sample (weight_ahead): IDLE_BEGIN is the first one between two CPU samples, IDLE_END lies
 * 1 ns before the next CPU sample, and an entry's cpu_delta is the weight of the sample before it.
 */
#ifndef PROFILE_TIMELINE_H
#define PROFILE_TIMELINE_H

#include <stdbool.h>

#include <sysprof/profile.h>

/* By chance ticks miss that much CPU time once in e^8 times. */
#define TIMELINE_LOST_PERIODS 8

enum timeline_kind {
	TIMELINE_START,	 /* the first entry, at thread.start; cpu_delta 0, so it may be ignored */
	TIMELINE_SAMPLE, /* a CPU sample of the thread */
	TIMELINE_IDLE_BEGIN, /* from here it is off CPU (but for what the next entry says) */
	TIMELINE_IDLE_END,   /* the thread is back on CPU */
	TIMELINE_END,	     /* the last entry, at the end of the thread or of the profile */
};

struct timeline_entry {
	uint64_t time; /* CLOCK_MONOTONIC ns */
	enum timeline_kind kind;
	bool idle_after;       /* off CPU from here to the next entry: IDLE_BEGIN, perhaps START */
	struct stack_id stack; /* SAMPLE: never 0; all others: 0 */
	struct string_id comm; /* the thread's name at that time */
	uint64_t cpu_delta;    /* CPU ns used since the entry before */
	size_t sample;	       /* SAMPLE: its number in the thread; else that of the next one */
};

/*
 * The entries of one thread, in time order. Times are strictly increasing. The sum of all cpu_delta
 * is profile_thread__cpu() exactly. cpu_delta <= time since the entry before, unless the thread's
 * own figures say otherwise (clock error).
 *
 * There is always a START. END is left out only when the thread ends with its last sample and its
 * cpu_tail is 0; it lies 1 ns after the last sample where just the tail is not 0.
 */
struct timeline {
	const struct profile *profile;
	const struct profile_thread *thread;
	size_t next; /* the next interval to push */
	struct timeline_entry pending[3];
	unsigned int pending_count, pending_next;
	bool started;
};

void timeline__init(struct timeline *t, const struct profile *p,
		    const struct profile_thread *thread);
bool timeline__next(struct timeline *t, struct timeline_entry *entry); /* false: no more */

/*
 * When a thread's time is over: its end, else that of the profile, never before its last sample.
 * Where times are made up (profile.untimed): its last sample.
 */
uint64_t timeline_end(const struct profile *p, const struct profile_thread *thread);

/* Idle samples: `count` of them, at first, first + period, …; all before the next sample. */
struct timeline_idle {
	uint64_t first, count;
};

/*
 * The idle samples between CPU samples i - 1 and i of a thread. i = 0: those from its start to its
 * first sample; i = their count: those from its last one to its end. first is later than sample
 * i - 1 (for i = 0: not before thread.start).
 */
struct timeline_idle timeline_idle_before(const struct profile *p,
					  const struct profile_thread *thread, size_t i);

#endif
