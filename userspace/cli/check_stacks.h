/* SPDX-License-Identifier: BSD-2-Clause */
/* How user stacks end on this machine: a short recording of all that runs, of which nothing is kept. */
#ifndef CLI_CHECK_STACKS_H
#define CLI_CHECK_STACKS_H

#include <stdint.h>

#include <sysprof/event.h>

#include "base/log.h"

struct stack_census {
	uint64_t samples; /* 0: the machine was idle */
	uint64_t ends[STACK_END_COUNT];
	double complete; /* share of those with a user stack, 0..1 */
};

/* Takes about a second. 0 or negative errno. */
int check_stacks(struct stack_census *census, struct failure *failure);

#endif
