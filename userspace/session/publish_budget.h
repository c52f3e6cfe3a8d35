/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What publishing mappings may cost: CPU time of the collector, for each process, each user and all together (base/quota.h).
 * A process decides how many mappings it has and how often it changes them, so it decides what publishing
 * them costs.
 *
 * Each has a credit that grows with time up to a limit. If it is used up, publications wait until there is some
 * again. Large and small publications have credits of their own, so users with large ones cannot delay those with
 * small ones. Finding the user costs more than most publications, so users only count once half of the credit of all
 * is used up.
 */
#ifndef SESSION_PUBLISH_BUDGET_H
#define SESSION_PUBLISH_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"

#define BUDGET_SIZES 2 /* small and large publications */

struct publish_budget {
	struct meter all[BUDGET_SIZES];
	struct quota users;
};

struct publish_claim {
	struct meter *process;
	size_t mappings;
	uint64_t now; /* CLOCK_MONOTONIC ns */
	uint32_t (*user_of)(void *context, uint32_t tgid);
	void *context;
	uint32_t tgid;
};

void publish_budget__init(struct publish_budget *b);
/* Is there credit for this publication? */
bool publish_budget__allows(struct publish_budget *b, const struct publish_claim *claim);
/* It took `cost` ns. */
void publish_budget__spend(struct publish_budget *b, const struct publish_claim *claim,
			   uint64_t cost);

#endif
