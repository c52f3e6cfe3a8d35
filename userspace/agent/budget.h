/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the agent within its budget: a controller that gets measurements and decides what is left out.
 *
 * It stands on one of a row of steps. Each step down leaves out one more thing, in the order of BUDGET_STEPS; each
 * step back takes the last of them up again. It does nothing itself: no clock, no file, no session.
 *
 *   down   two measurements in a row are over the budget, or one is over twice of it
 *   back   for a minute the CPU time was below half of the budget (below less where the step back is one to a higher
 *          rate, by the ratio of the rates) and the memory below three quarters. Memory that was given back stays
 *          with the allocator in part, so half of it would hardly ever come
 *
 * After each step the next measurement is not judged: part of it is of the time before. A step back that does not
 * last ten minutes doubles the calm time that the next one needs, up to an hour; one that lasts undoes that.
 */
#ifndef AGENT_BUDGET_H
#define AGENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* X(ENUM, label, text): what is done without, the cheapest loss first. Rates not below the configured one are left out. */
#define BUDGET_STEPS(X)                                                                            \
	X(DEBUG_INFO, "debug_info", "symbol tables only: no lines, no inlined functions")          \
	X(TABLE_BUILDS, "table_builds", "no new unwind tables but those in the cache")             \
	X(JIT_HISTORIES, "jit_histories",                                                          \
	  "no further contents of perf maps and jitdumps: Java and Node.js by their memory")       \
	X(HZ_97, "hz_97", "97 samples a second and CPU")                                           \
	X(HZ_47, "hz_47", "47 samples a second and CPU")                                           \
	X(HZ_19, "hz_19", "19 samples a second and CPU")                                           \
	X(HZ_7, "hz_7", "7 samples a second and CPU")

enum budget_step {
#define X(id, label, text) BUDGET_STEP_##id,
	BUDGET_STEPS(X)
#undef X
		BUDGET_STEP_COUNT
};

const char *budget_step_label(enum budget_step step);
const char *budget_step_text(enum budget_step step);

#define BUDGET_HZ_LEAST 7

struct budget_options {
	double cpu;	 /* share of one CPU; 0: no limit */
	uint64_t memory; /* bytes; 0: no limit */
	unsigned int hz; /* where there is room; > 0 */
};

struct budget_usage {
	uint64_t time; /* CLOCK_MONOTONIC ns, later than that of the measurement before */
	double cpu;    /* share of one CPU since then */
	uint64_t memory;
};

/* What may be done now. */
struct budget_state {
	bool debug_info, table_builds, jit_histories;
	unsigned int
		hz; /* of the options or one of the primes below; at least 7, unless less was configured */
	unsigned int level, levels; /* steps down, of so many */
	bool over;		    /* the last measurement was, by CPU or memory */
};

enum budget_change { BUDGET_SAME, BUDGET_DOWN, BUDGET_BACK };

struct budget;

struct budget *budget__new(const struct budget_options *options); /* NULL: no memory */
void budget__free(struct budget *b);

/* Other limits from now on (the configuration was read again); where it stands is kept as far as it can be. */
void budget__set(struct budget *b, const struct budget_options *options);

/* *step: the one that was taken or undone; untouched with BUDGET_SAME. */
enum budget_change budget__measure(struct budget *b, const struct budget_usage *usage,
				   enum budget_step *step);
void budget__state(const struct budget *b, struct budget_state *state);

struct budget_stats {
	uint64_t down[BUDGET_STEP_COUNT], back[BUDGET_STEP_COUNT];
	uint64_t measured, over; /* measurements, and those over the budget */
	uint64_t over_at_floor;	 /* of these, with nothing left to do without */
};
void budget__stats(const struct budget *b, struct budget_stats *stats);

#endif
