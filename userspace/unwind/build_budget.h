/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The budget for building one unwind table. The input is an untrusted file, and each byte of
 * .eh_frame can become 6 bytes of functions and rows. The budget is checked before each function
 * and row is stored; the first limit that is hit is the reason shown.
 *
 * The limits are several times the needs of large programs: libLLVM 22 (7.4 MB of .eh_frame, 1.2
 * million rows) takes 25 MB and 0.09 s of CPU. The largest found is a Go program of 700 MB: 187 MB
 * of Go's table, 5.9 million rows, 245 MB, 1.7 s. A native image of GraalVM with 21 MB of code
 * takes 20 million steps and 0.7 s.
 */
#ifndef UNWIND_BUILD_BUDGET_H
#define UNWIND_BUILD_BUDGET_H

#include <stdint.h>

/* Why there is no table. X(ENUM, clause) */
#define TABLE_REFUSALS(X)                                                                          \
	X(NONE, "within the limits")                                                               \
	X(INPUT, "too many bytes of unwind information")                                           \
	X(ROWS, "too many rows or rules")                                                          \
	X(SIZE, "the table is too big to load")                                                    \
	X(MEMORY, "building it takes too much memory")                                             \
	X(TIME, "building it takes too much CPU time")                                             \
	X(DIED, "the process that built it ended")                                                 \
	X(HUNG, "the process that built it did not answer")                                        \
	X(FORGED, "the process that built it sent something else")                                 \
	X(BANNED, "processes that built tables of this user's files did not answer")

enum table_refusal {
#define X(id, text) TABLE_REFUSAL_##id,
	TABLE_REFUSALS(X)
#undef X
		TABLE_REFUSAL_COUNT
};

const char *table_refusal_text(enum table_refusal refusal);

struct build_limits {
	uint64_t input;	 /* bytes of a section (.eh_frame, .debug_frame) */
	uint64_t go;	 /* bytes of Go's function table */
	uint64_t rows;	 /* of a table */
	uint64_t memory; /* bytes in use at one time, with the section */
	uint64_t cpu_ns; /* of the thread, from build_budget__start() on */
	/* through code without CFI, in half of the time; the table is made without the rest's rules */
	uint64_t code_steps;
};

extern const struct build_limits BUILD_LIMITS;

struct build_budget {
	struct build_limits limits;
	uint64_t memory;  /* bytes in use */
	uint64_t peak;	  /* the most of them at one time */
	uint64_t cpu_end; /* thread_cpu_ns() */
	uint32_t steps;	  /* until the clock is read */
	enum table_refusal refusal;
};

/* Call on the thread that builds. */
void build_budget__start(struct build_budget *b, const struct build_limits *limits);

/* Stores the first reason. Always -EFBIG. */
int build_budget__refuse(struct build_budget *b, enum table_refusal refusal);

/* These accept NULL (no limit) and return 0 or -EFBIG. */
int build_budget__take(struct build_budget *b, uint64_t bytes);
void build_budget__give_back(struct build_budget *b, uint64_t bytes);
int build_budget__check_clock(struct build_budget *b);

/* Counts work of about `steps` × 10 ns. */
static inline int build_budget__step(struct build_budget *b, uint32_t steps)
{
	if (!b)
		return 0;
	if (b->steps > steps) {
		b->steps -= steps;
		return 0;
	}
	return build_budget__check_clock(b);
}

#endif
