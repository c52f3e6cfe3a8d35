/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the agent within its budget: a controller that gets measurements and decides what is left
 * out or deferred. It does nothing itself: no clock, no file, no session.
 *
 * Each part of the agent has a share of the budget, and steps that make it cheaper. Over the
 * budget, the part most over its share takes its next step; a part that costs little takes none,
 * because that would save little. The rate is lowered if no other step is left, to 7 Hz only if the
 * samples alone cost half of the budget. Over the limit of memory, steps that save memory are taken
 * in the order of BUDGET_STEPS. Steps are undone in reverse order, the rate's first.
 *
 *   down   two measurements in a row are over the budget, or one is over twice of it; the rate:
 *          three of the last six and their average, because peaks of names and tables pass
 *   back   over a minute CPU time was below half of the budget; a higher rate: what grows with it
 *          would have fitted; memory: below the limit, or three quarters if the step was for memory
 *          (freed memory stays with the allocator in part)
 *
 * After a step the next measurement is not judged: part of it is from before. A step back that does
 * not last ten minutes doubles the time to the next step back, from a minute up to an hour, for a
 * higher rate up to five minutes, because its cost is known; one that lasts undoes that.
 */
#ifndef AGENT_BUDGET_H
#define AGENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* X(ENUM, label, share of the budget in percent, text) */
#define BUDGET_PARTS(X)                                                                            \
	X(SYMBOLS, "symbols", 20, "names and lines, and finishing windows")                        \
	X(TABLES, "tables", 5, "building unwind tables")                                           \
	X(RUNTIMES, "runtimes", 10, "reading mappings, facts, and memory and files of runtimes")   \
	X(COLLECTOR, "collector", 30, "processes that come and go, and reading events")            \
	X(TICKS, "ticks", 30, "samples, in the kernel")                                            \
	X(SINKS, "sinks", 5, "sending, and requests")                                              \
	X(VISITS, "visits", 20, "visits of threads that wait, beside the other parts")

enum budget_part {
#define X(id, label, share, text) BUDGET_PART_##id,
	BUDGET_PARTS(X)
#undef X
		BUDGET_PART_COUNT
};

/*
 * X(ENUM, PART, worth, saves_memory, label, text): of a part, the cheapest loss first. Worth: the
 * percentage of the budget from which on the part's cost justifies the step; large for tables, last
 * for memory, because stacks are cut without them. Only rates below the configured one are used.
 */
#define BUDGET_STEPS(X)                                                                            \
	X(NEW_FILES, SYMBOLS, 20, true, "new_files",                                               \
	  "files without a name so far wait until they have 1 % of a window, or are often met")    \
	X(DEBUG_INFO, SYMBOLS, 20, true, "debug_info",                                             \
	  "symbol tables only: new lines and inlined functions only from what was read before")    \
	X(RARE_NAMES, SYMBOLS, 20, true, "rare_names",                                             \
	  "new names in less than 0.1 % of a window's samples later, many at once")                \
	X(JIT_HISTORIES, RUNTIMES, 20, true, "jit_histories",                                      \
	  "no further contents of perf maps and jitdumps: Java and Node.js by their memory")       \
	X(TABLE_BUILDS, TABLES, 100, true, "table_builds",                                         \
	  "no new unwind tables but those in the cache")                                           \
	X(EARLY_TICKS, COLLECTOR, 20, false, "early_ticks",                                        \
	  "mappings of new processes later, and more stacks from copies")                          \
	X(VISITS_5, VISITS, 5, false, "visits_5", "5 visits of threads a second")                  \
	X(VISITS_1, VISITS, 5, false, "visits_1", "one visit of threads a second")                 \
	X(HZ_97, TICKS, 0, false, "hz_97", "97 samples a second and CPU")                          \
	X(HZ_47, TICKS, 0, false, "hz_47", "47 samples a second and CPU")                          \
	X(HZ_19, TICKS, 0, false, "hz_19", "19 samples a second and CPU")                          \
	X(HZ_7, TICKS, 50, false, "hz_7", "7 samples a second and CPU")

enum budget_step {
#define X(id, ...) BUDGET_STEP_##id,
	BUDGET_STEPS(X)
#undef X
		BUDGET_STEP_COUNT
};

const char *budget_step_label(enum budget_step step);
const char *budget_step_text(enum budget_step step);
const char *budget_part_label(enum budget_part part);

struct budget_options {
	double cpu;	     /* share of one CPU; 0: no limit */
	uint64_t memory;     /* bytes; 0: no limit */
	unsigned int hz;     /* where there is room; > 0 */
	unsigned int visits; /* a second, likewise; 0: none */
};

struct budget_usage {
	uint64_t time; /* CLOCK_MONOTONIC ns, later than that of the measurement before */
	double cpu;    /* share of one CPU since then */
	double cpu_by[BUDGET_PART_COUNT]; /* of it */
	uint64_t memory;
};

/* The work that is allowed now. */
struct budget_state {
	bool allowed[BUDGET_STEP_COUNT]; /* what a step would leave out; unused for rates */
	unsigned int hz;		 /* of the options, 97, 47, 19 or 7 */
	unsigned int visits;		 /* of the options, 5 or 1 */
	unsigned int level, levels;	 /* steps taken, of so many */
	bool over;			 /* the last measurement was, by CPU or memory */
};

enum budget_change { BUDGET_SAME, BUDGET_DOWN, BUDGET_BACK };

struct budget;

struct budget *budget__new(const struct budget_options *options); /* NULL: no memory */
void budget__free(struct budget *b);

/* New limits (the configuration was read again); steps taken stay taken, if they still exist. */
void budget__set(struct budget *b, const struct budget_options *options);

/* *step: the one that was taken or undone; untouched with BUDGET_SAME. */
enum budget_change budget__measure(struct budget *b, const struct budget_usage *usage,
				   enum budget_step *step);
void budget__state(const struct budget *b, struct budget_state *state);

struct budget_stats {
	uint64_t down[BUDGET_STEP_COUNT], back[BUDGET_STEP_COUNT];
	uint64_t measured, over;	  /* measurements, and those over the budget */
	uint64_t over_at_floor;		  /* of these, with no step left that would help */
	double cpu_by[BUDGET_PART_COUNT]; /* shares of one CPU, smoothed over half a minute */
};
void budget__stats(const struct budget *b, struct budget_stats *stats);

#endif
