/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

int write_requested_waits(const struct export_request *request,
			  int (*write)(const struct export_request *request))
{
	const struct profile *p = request->profile;
	_cleanup_free_ struct profile_thread *threads = NULL;
	struct export_request plain = *request;
	struct profile profile = *p;

	if (request->waits || !p->visits.hz)
		return write(request);
	threads = malloc(p->thread_count * sizeof(*threads));
	if (!threads)
		return -ENOMEM;
	memcpy(threads, p->threads, p->thread_count * sizeof(*threads));
	for (size_t i = 0; i < p->thread_count; i++) {
		threads[i].samples[SAMPLE_WALL] = (struct profile_samples){};
		threads[i].wall = (struct profile_wall){};
	}
	profile.threads = threads;
	profile.visits = (struct profile_visits){};
	plain.profile = &profile;
	return write(&plain);
}
