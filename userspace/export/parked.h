/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parked threads (docs/WALL.md, Parked): their waits are nearly all at one place, and end by a timer or from outside, as those
 * of an event loop or of an idle pool. Such waits are no answer to what a program waits for.
 */
#ifndef EXPORT_PARKED_H
#define EXPORT_PARKED_H

#include <stdbool.h>

#include <sysprof/profile.h>

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
