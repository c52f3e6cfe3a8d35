/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits in formats of CPU samples (docs/WALL.md, Formats): a wait is a stack with one more leaf, and some ticks. */
#ifndef EXPORT_WAITS_H
#define EXPORT_WAITS_H

#include <stdbool.h>

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

/* "[waiting: lock]" */
const char *wait_leaf(enum wall_state state);

/* ns that stand for one tick: the period of the samples, or of the visits if that is no time. At least 1. */
uint64_t wait_period(const struct profile *p);

/*
 * The ticks of a weight. `rest` begins as wait_period() / 2: what is rounded off counts with the next weight, so the sum is
 * rounded only once.
 */
uint64_t wait_ticks(uint64_t weight, uint64_t period, uint64_t *rest);

/* Writes a file that has waits only if they are requested; else it is that of a recording without visits. */
int write_requested_waits(const struct export_request *request,
			  int (*write)(const struct export_request *request));

/* ---- parked threads --------------------------------------------------------------------------- */

/*
 * Parked threads (docs/WALL.md, Parked): their waits are nearly all at one place, and end by a timer or from outside, as those
 * of an event loop or of an idle pool. Such waits are no answer to what a program waits for.
 */

/*
 * The innermost function that a runtime runs, or of the program itself. Those of libraries and of the kernel say how it waits,
 * which is the state: they are the place only if there is no other.
 */
const struct profile_location *waiting_place(const struct profile *p, struct stack_id id);

struct parked {
	const struct profile *p;
	uint64_t *
		of_stack; /* the names of its functions, without those of the kernel, as a number */
	uint64_t *place;  /* by thread: the place where it is parked; 0: it is not */
	uint64_t threads, ns;
};

int parked__init(struct parked *parked, const struct profile *p); /* 0, -ENOMEM */
void parked__fini(struct parked *parked);

/* Is the wait of a thread at the place where it is parked? */
bool parked__has(const struct parked *parked, uint32_t thread, size_t row);

#endif
