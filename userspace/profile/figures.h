/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of a whole profile, in one table, from which formats, report and summary are written.
 *
 * A figure is a number with a unit, a key for programs and a text for people. Most count something
 * missing: ticks by result, stacks by end, lost records, names beyond a limit. Formats loop over
 * these groups, so every format has a new row of a group. The other figures are listed by each
 * format that shows them, in its own order.
 */
#ifndef PROFILE_FIGURES_H
#define PROFILE_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile.h>

enum figure_unit {
	FIGURE_IN_COUNT,
	FIGURE_IN_NS,
	FIGURE_IN_SHARE, /* 0..1 */
	FIGURE_IN_FLAG,
	FIGURE_IN_CLOCK, /* true: the TSC; false: CLOCK_MONOTONIC */
	FIGURE_IN_DUE,	 /* ticks, signed */
};

/*
 * X(ENUM, unit, key, value, label). `value` is an expression of p, the profile, and s, its sums
 * (struct sums). `label` is for a list of labels and values; "": the figure is in none.
 */
#define SINGLE_FIGURES(X)                                                                          \
	X(START, NS, "start_monotonic_ns", p->start, "")                                           \
	X(START_REALTIME, NS, "start_realtime_ns", p->start_realtime, "")                          \
	X(DURATION, NS, "duration_ns", p->end > p->start ? p->end - p->start : 0, "")              \
	X(PERIOD, NS, "period_ns", p->period, "Period")                                            \
	X(SAMPLES, COUNT, "samples", p->sample_count, "Samples")                                   \
	X(EVENTS, COUNT, "events", p->event_count, "Events") /* of an event that is no clock */    \
	X(THREADS, COUNT, "threads", s->threads, "")	     /* with a sample */                   \
	X(SILENT_THREADS, COUNT, "silent_threads", s->silent_threads,                              \
	  "Threads without a sample, not shown")                                                   \
	X(CPU, NS, "cpu_ns", s->cpu, "CPU time of all threads")                                    \
	X(SILENT_CPU, NS, "silent_cpu_ns", s->silent_cpu, "CPU time of those")                     \
	X(CUT_SHORT, FLAG, "cut_short", p->cut_short, "")                                          \
	X(COMPLETE_SHARE, SHARE, "complete_share", profile__complete_share(p), "Complete")         \
	X(NAMED_SHARE, SHARE, "named_share", profile__named_share(p), "Code with a symbol")        \
	X(UNMAPPED, COUNT, "unmapped_frames", p->unmapped_frames, "Frames outside every mapping")  \
	X(CLOCK, CLOCK, "clock", p->tsc_khz > 0, "")                                               \
	X(TSC_KHZ, COUNT, "tsc_khz", p->tsc_khz, "")                                               \
	X(CLOCK_ERROR, NS, "clock_error_ns", p->clock_error_ns, "Largest error")                   \
	X(CLOCK_EPOCHS, COUNT, "clock_epochs", p->clock_epochs, "Epochs")                          \
	X(DUE, DUE, "due", s->due, "Due")                                                          \
	X(RECEIVED, COUNT, "received", s->received, "received by the collector")                   \
	X(UNEXPLAINED, DUE, "unexplained", profile__unexplained_ticks(p), "Unexplained")           \
	X(STOLEN_TICKS, COUNT, "stolen_ticks", s->stolen,                                          \
	  "Not run, while the hypervisor had the CPU")                                             \
	X(LOST_TICKS, COUNT, "lost_ticks", s->lost, "") /* of the target, or of unknown tasks */   \
	/* of a filter's clauses: with SAMPLES, EVENTS, CPU and LIVED the whole */                 \
	X(DROPPED_SAMPLES, COUNT, "dropped_samples", s->dropped.samples, "Samples dropped")        \
	X(DROPPED_EVENTS, COUNT, "dropped_events", s->dropped.events, "Events dropped")            \
	X(DROPPED_CPU, NS, "dropped_cpu_ns", s->dropped.cpu, "CPU time dropped")                   \
	X(DROPPED_WALL, NS, "dropped_wall_ns", s->dropped.wall, "Lifetime dropped")                \
	X(VISITED, COUNT, "visited_threads", s->visited, "Threads visited")                        \
	X(LIVED, NS, "lived_ns", s->lived, "Lifetime of these")                                    \
	X(UNVISITED, NS, "unvisited_ns", s->unvisited, "Unvisited, at the end of threads")         \
	X(VISITS_HZ, COUNT, "hz", p->visits.hz, "Visits a second, requested")                      \
	X(VISITS_CPU, NS, "cpu_ns", p->visits.cpu, "CPU time of the visitor")

/* What a limit left out, shown with "left out" unless 0. X(ENUM, unit, key, value, text) */
#define LEFT_OUT_FIGURES(X)                                                                        \
	X(INLINED, COUNT, "inlined_left_out", p->inlined_left_out, "inlined functions")            \
	/* of processes that ended before, or had no turn: named by program or group alone */      \
	X(UNREAD, COUNT, "facts_left_out", s->unread,                                              \
	  "samples' command lines and environments (services by program alone)")

#define FIGURE_LEFT_OUT 0

/*
 * The last groups: VISIT_LINES (the books of the visitor begin with VISITS_HZ), WALL_STATES (in ns,
 * of all visited threads; with UNVISITED they add up to LIVED), BOOK_LINES (of all CPUs),
 * STACK_ENDS, FRAME_KINDS, LOST_SOURCES and CPU_TIMES (of all CPUs, in ns).
 */
enum figure_id {
#define X(id, ...) FIGURE_##id,
	LEFT_OUT_FIGURES(X) FIGURE_LEFT_OUT_END, /* no figure */
	SINGLE_FIGURES(X) FIGURE_VISITS,
#undef X
	FIGURE_VISITS_END = FIGURE_VISITS + VISIT_LINE_COUNT,
	FIGURE_STATES = FIGURE_VISITS_END,
	FIGURE_BOOKS = FIGURE_STATES + WALL_STATE_COUNT,
	FIGURE_BOOKS_END = FIGURE_BOOKS + BOOK_COUNT,
	FIGURE_ENDS = FIGURE_BOOKS_END,
	FIGURE_ENDS_END = FIGURE_ENDS + STACK_END_COUNT,
	FIGURE_FRAMES = FIGURE_ENDS_END,
	FIGURE_FRAMES_END = FIGURE_FRAMES + FRAME_KIND_COUNT,
	FIGURE_LOST = FIGURE_FRAMES_END,
	FIGURE_LOST_END = FIGURE_LOST + LOST_SOURCE_COUNT,
	FIGURE_TIMES = FIGURE_LOST_END,
	FIGURE_TIMES_END = FIGURE_TIMES + CPU_TIME_COUNT,
	FIGURE_COUNT = FIGURE_TIMES_END,
};

struct figure {
	enum figure_unit unit;
	bool is_loss;	  /* counts something that is missing, or incomplete */
	const char *key;  /* of JSON and of dumps; of a book line, a stack end, …: its name */
	const char *text; /* of a single figure: its label */
};

extern const struct figure figure_table[FIGURE_COUNT];

struct figures {
	uint64_t value[FIGURE_COUNT]; /* of a share: 0 */
	double share[FIGURE_COUNT];   /* of a share */
	bool due_known;		      /* for at least one CPU; FIGURE_DUE is the sum of those */
	/* of a file that is no recording: see META_FORMAT */
	bool losses_known, ends_known, clock_known;
	bool times_known, start_known; /* the start on CLOCK_MONOTONIC */
	bool names_known; /* else a file says what code is called, not whether that is its symbol */
};

void figures__init(struct figures *f, const struct profile *p);

/* Of a single figure. */
bool figures__is_known(const struct figures *f, unsigned int id);

/* Does it count something that is missing, and is there any? */
static inline bool figures__is_loss(const struct figures *f, unsigned int id)
{
	return figure_table[id].is_loss && f->value[id];
}

static inline int64_t figures__unexplained(const struct figures *f)
{
	return (int64_t)f->value[FIGURE_UNEXPLAINED];
}

#endif
