/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits in formats of CPU samples (docs/WALL.md, Formats): stacks with a leaf more, and ticks. */
#ifndef FORMATS_OUT_WAITS_H
#define FORMATS_OUT_WAITS_H

#include <stdbool.h>

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

/* "[waiting: lock]" */
const char *wait_leaf(enum wall_state state);

/* ns of one tick: the period of the samples, or of the visits if that is no time. At least 1. */
uint64_t wait_period(const struct profile *p);

/*
 * The ticks of a weight. `rest` begins as wait_period() / 2: a remainder counts with the next
 * weight, so the sum is rounded only once.
 */
uint64_t wait_ticks(uint64_t weight, uint64_t period, uint64_t *rest);

/* Are waits among the stacks? Not beside events that are no time, which they cannot be added to. */
static inline bool shows_waits(const struct export_request *request)
{
	return request->waits && !request->profile->event.v;
}

/* Writes a file with waits only if they are requested, else as of a recording without visits. */
int write_requested_waits(const struct export_request *request,
			  int (*write)(const struct export_request *request));

/* ---- parked threads -------------------------------------------------------------------------- */

/*
 * Parked threads (docs/WALL.md, Parked): nearly all their waits are at one place and end by a timer
 * or from outside, as in an event loop or idle pool. They do not show what a program waits for.
 */

/*
 * The innermost function that a runtime runs, or of the program itself. Functions of libraries and
 * of the kernel are how it waits, which is the state: they are the place only if there is no other.
 */
const struct profile_location *waiting_place(const struct profile *p, struct stack_id id);

struct parked {
	const struct profile *p;
	uint64_t *
		of_stack; /* by stack: a hash of its functions' names without those of the kernel */
	uint64_t *place;  /* by thread: the place where it is parked; 0: it is not */
	uint64_t threads, ns;
};

int parked__init(struct parked *parked, const struct profile *p); /* 0, -ENOMEM */
void parked__fini(struct parked *parked);

/* Is the wait of a thread at the place where it is parked? */
bool parked__has(const struct parked *parked, uint32_t thread, size_t row);

#endif
