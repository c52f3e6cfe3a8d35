/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/window_clock.h"

#include <string.h>

#include "base/hashmap.h"

#define STEP_NS	   INT64_C(1000000000) /* a smaller one is the work of NTP */
#define SUSPEND_NS INT64_C(1000000000)

static int64_t ahead(uint64_t clock, uint64_t monotonic)
{
	return (int64_t)(clock - monotonic);
}

/* The next end is at least half a window away, so that none is very short but the first. */
static void plan(struct window_clock *c, const struct clock_readings *now)
{
	uint64_t since = (now->realtime + c->machine % c->length) % c->length;
	uint64_t left = c->length - since;

	if (left < c->length / 2)
		left += c->length;
	c->end = now->monotonic + left;
}

void window_clock__init(struct window_clock *c, uint64_t length, const char *machine,
			const struct clock_readings *now)
{
	*c = (struct window_clock){
		.length = length,
		.machine = hash_stable(machine, strlen(machine)),
		.realtime_ahead = ahead(now->realtime, now->monotonic),
		.boottime_ahead = ahead(now->boottime, now->monotonic),
	};
	plan(c, now);
}

static bool moved(int64_t *before, int64_t now, int64_t limit)
{
	int64_t by = now - *before;

	*before = now;
	return by > limit || by < -limit;
}

bool window_clock__ends(struct window_clock *c, const struct clock_readings *now)
{
	bool slept = moved(&c->boottime_ahead, ahead(now->boottime, now->monotonic), SUSPEND_NS);
	bool stepped = moved(&c->realtime_ahead, ahead(now->realtime, now->monotonic), STEP_NS);

	/* after a sleep the wall clock is ahead as well: that is no step */
	c->suspends += slept;
	c->steps += stepped && !slept;
	if (!slept && !stepped && now->monotonic < c->end)
		return false;
	plan(c, now);
	return true;
}

void window_clock__set_length(struct window_clock *c, uint64_t length)
{
	c->length = length;
}
