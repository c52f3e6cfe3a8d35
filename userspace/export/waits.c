/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/waits.h"

const char *wait_leaf(enum wall_state state)
{
	static const char *const leaves[WALL_STATE_COUNT] = {
#define X(id, name, text) "[waiting: " name "]",
		WALL_STATES(X)
#undef X
	};

	return (unsigned int)state < WALL_STATE_COUNT ? leaves[state] : leaves[WALL_OTHER];
}

uint64_t wait_period(const struct profile *p)
{
	if (p->period > 1)
		return p->period;
	return p->visits.hz ? 1000000000u / p->visits.hz + 1 : 1;
}

uint64_t wait_ticks(uint64_t weight, uint64_t period, uint64_t *rest)
{
	uint64_t ticks = weight / period;

	*rest += weight % period;
	ticks += *rest / period;
	*rest %= period;
	return ticks;
}
