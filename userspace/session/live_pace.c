/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When ticks are.
 *
 * There is one every TICK, when a ring is half full, and soon after a target's execve or a stack that was
 * truncated because mappings were unknown: the kernel side needs the mappings of a new process before most of
 * its life is over. If such early ticks find nothing, the interval grows.
 *
 * A process that is not sampled needs no mappings, and a stack without them comes as a copy. So early ticks are
 * as far apart as samples of a CPU are, and below 500 Hz their share of a CPU is in proportion to the rate: from there on
 * a twentieth, at 99 Hz a hundredth. Who asks for fewer samples asks for less cost, too: then nobody is woken for an answer of
 * a reader that no event waits for (a name, a fact), and it is taken at the next tick. But for what a process has that has just
 * begun: it may be gone by then.
 */
#include <errno.h>
#include <string.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "jitwatch/jit_tail.h"
#include "session/live_private.h"

#define TICK	     200000000ull /* ns from one to the next, at most */
#define TICK_OF_JIT  100000000ull /* where code is made, and at most so many … */
#define JIT_SAMPLES  100	  /* … samples of it come between two */
#define WAKE_SETTLES 1200000ull	  /* ns: from a wake to the tick that finds its cause written */
#define WAKE_MIN     2000000ull	  /* ns between ticks that are not on the timer */
#define WAKE_MAX     100000000ull
/* A tick's CPU time is at most such a part of the time to the next. */
#define WAKE_COST      20
#define WAKE_COST_HZ   10000u	   /* so many divided by the rate, where that is more */
#define MAPS_LIBRARIES 16000000ull /* ns: from an execve to the last library, mostly */
#define HELD_UP	       20000000ull /* ns: from a tick to the next while all wait for a file */
#define FUNCTIONS_COME                                                                             \
	100000000ull  /* ns: where new functions were met so late, more are expected */
#define CALM_HZ	 500u /* below it answers that nothing waits for come with the next tick */
#define WAIT_FDS 8
#define OWN_FDS	 3

/* Do events wait for a file or for mappings? */
static bool is_held_up(const struct live *live)
{
	return dso_opener__pending_since(live->opener) != UINT64_MAX ||
	       proc_snapshot__pending_since(live->proc) != UINT64_MAX;
}

static bool is_calm(const struct live *live)
{
	return live->hz < CALM_HZ;
}

/* Is there an answer that a tick should not be late for? */
static bool hurries(const struct live *live)
{
	return is_calm(live) ? is_held_up(live) : reader_pool__waiting(live->readers) > 0;
}

/* Functions that are dropped soon, and those of processes that end soon, are to be read before that. */
static bool expects_functions(const struct live *live, uint64_t now)
{
	uint64_t met = max_u64(live_code__begun(live->code),
			       is_calm(live) ? 0 : live_code__met(live->code));

	return met && now < met + FUNCTIONS_COME;
}

/* From a tick that took so much CPU time to one that is early. All ns. */
static uint64_t least_distance(const struct live *live, uint64_t cost)
{
	unsigned int hz = live->hz ? live->hz : 1;
	uint64_t least = max_u64(WAKE_MIN, 1000000000ull / hz);

	least = max_u64(least, cost * max_u64(WAKE_COST, WAKE_COST_HZ / hz));
	return min_u64(least, WAKE_MAX);
}

/* What programs tell of code that they make is taken at ticks, and its stacks are cut until then. */
static uint64_t longest_distance(const struct live *live)
{
	uint64_t samples = JIT_SAMPLES * 1000000000ull / (live->hz ? live->hz : 1);

	return jit_tail__follows(live->jit) ? min_u64(TICK, max_u64(TICK_OF_JIT, samples)) : TICK;
}

/* When the next tick is due, after one and what the caller did with it. */
static void plan_next(struct live *live, uint64_t now)
{
	uint64_t least = least_distance(live, thread_cpu_ns() - live->woken_cpu);

	live->wake_interval = live->changed ? least : max_u64(least, 2 * live->wake_interval);
	live->wake_interval = min_u64(live->wake_interval, WAKE_MAX);
	bpf_session__set_wake_interval(live->session, live->wake_interval);
	live->earliest = now + least;
	live->due = now + longest_distance(live);
	if (live->soon) {
		live->due = min_u64(live->due, now + max_u64(live->soon, least));
		live->soon = live->soon < MAPS_LIBRARIES ? 2 * max_u64(live->soon, least) : 0;
	}
	if (hurries(live) || expects_functions(live, now))
		live->due = min_u64(live->due, now + max_u64(HELD_UP, least));
	if (live->unfinished)
		live->due = now;
	live->changed = live->ticked = live->unfinished = false;
}

void live_pace__exec(struct live *live)
{
	live->soon = WAKE_MIN;
}

bool live__is_due(const struct live *live)
{
	return monotonic_ns() >= live->due;
}

void live__hasten(struct live *live)
{
	uint64_t early = max_u64(monotonic_ns() + WAKE_SETTLES, live->earliest);

	live->due = min_u64(live->due, early);
}

/* Mappings whose files were found go on with the next tick, which is soon if a process waits for them. */
static void take_found_files(struct live *live)
{
	bool hurried = hurries(live);
	int err = dso_opener__step(live->opener);

	live->found_err = live->found_err ? live->found_err : err;
	if (live->found_err)
		live->due = 0;
	else if (hurried && !hurries(live))
		live__hasten(live);
}

int live_pace__ask_readers(struct live *live)
{
	return is_calm(live) && reader_pool__queues(live->readers) ? dso_opener__step(live->opener)
								   : 0;
}

/* -1: what readers have answered can wait. */
static int readers_fd(const struct live *live)
{
	return !is_calm(live) || is_held_up(live) || reader_pool__queues(live->readers) ||
			       live_code__looks(live->code)
		       ? reader_pool__fd(live->readers)
		       : -1;
}

/* What is readable of our own. */
static int take_own(struct live *live, const struct pollfd *fds, int ready)
{
	if (ready > 0 && fds[0].revents) {
		bpf_session__take_wake(live->session);
		live__hasten(live);
		ready--;
	}
	if (ready > 0 && fds[1].revents) {
		take_found_files(live);
		ready--;
	}
	if (ready > 0 && fds[2].revents)
		live->due = 0;
	return ready;
}

void live__wait(struct live *live, struct pollfd *others, size_t count, uint64_t until)
{
	struct pollfd fds[WAIT_FDS + OWN_FDS] = {
		{.fd = bpf_session__wake_fd(live->session), .events = POLLIN},
		{.fd = -1, .events = POLLIN},
		{.fd = bpf_session__epoll_fd(live->session), .events = POLLIN},
	};
	int ready;

	if (live->ticked)
		plan_next(live, monotonic_ns());
	if (count > WAIT_FDS)
		count = WAIT_FDS;
	memcpy(fds + OWN_FDS, others, count * sizeof(*others));
	do {
		uint64_t now = monotonic_ns();
		uint64_t end = min_u64(until, live->due);
		uint64_t left = end > now ? end - now : 0;
		struct timespec timeout = {left / 1000000000, left % 1000000000};

		fds[1].fd = readers_fd(live);
		ready = ppoll(fds, count + OWN_FDS, &timeout, NULL);
		ready = take_own(live, fds, ready);
	} while ((ready == 0 && monotonic_ns() < live->due && monotonic_ns() < until) ||
		 (ready < 0 && errno == EINTR));
	live->woken_cpu = thread_cpu_ns();
	memcpy(others, fds + OWN_FDS, count * sizeof(*others));
}
