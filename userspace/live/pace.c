/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When ticks are.
 *
 * There is one every TICK, when a ring is half full, and soon after a target's execve or a stack
 * that was truncated because mappings were unknown: the kernel side needs the mappings of a new
 * process before most of its life is over. If such early ticks find nothing, the interval grows.
 *
 * A process without samples needs no mappings, and a stack without them comes as a copy. So early
 * ticks are at least a sampling period apart. Below 500 Hz an execve somewhere on the host causes
 * none: most such programs end without a sample, and the first sample of the others causes one.
 * Early ticks have a share of a CPU: a twentieth from 500 Hz on, in proportion to the rate below
 * (at 99 Hz a hundredth), half of that for the whole system. Ticks on the timer or for a full ring
 * are not charged. Unused share lets the first ticks after an execve be close together. At a low
 * rate, answers of readers that no event waits for (names, facts) wait for the next tick, except
 * those about a process that has just begun and may be gone by then; books of the whole system are
 * read less often.
 *
 * Users can have the collector woken all the time, and their processes decide what a tick costs. So
 * early ticks for root's processes have a share of their own: those after a wake by one of them,
 * until its files and tables are there.
 */
#include "live/pace.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "jit/follow/jit_tail.h"
#include "live/capture/bpf_session_cpus.h"
#include "live/live_private.h"

#define TICK	       200000000ull /* ns from one to the next, at most */
#define TICK_OF_JIT    100000000ull /* ns if there is JIT code, but at least the time of … */
#define JIT_SAMPLES    100	    /* … so many samples */
#define WAKE_SETTLES   1200000ull   /* ns from a wake to the tick that finds its cause written */
#define WAKE_MIN       1000000ull   /* ns between early ticks */
#define WAKE_MAX       100000000ull
#define FULL_RATE_HZ   500u	    /* from here on early ticks have their whole share */
#define SAVED_TICK     500000000ull /* ns instead of TICK, to cost less, … */
#define SAVED_WAKE_MAX 400000000ull /* … the most between two early ones, … */
#define SAVED_PART     8	    /* … and their share is divided by this */
#define MAPS_LIBRARIES 16000000ull  /* ns from an execve to the last library, mostly */
#define HELD_UP	       20000000ull  /* ns from a tick to the next while events wait for a file */
#define FUNCTIONS_COME                                                                             \
	100000000ull	   /* ns: where new functions were met so late, more are expected */
#define CALM_HZ	      500u /* below it answers that nothing waits for come with the next tick */
#define ROOT_STARTS   50000000ull /* ns from root's wake on in which answers are for its process */
#define WAKES_AT_ONCE 8		  /* the others come with the next wait */

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

/* Is a new program's sample unlikely to come before the next tick? */
bool live_is_saving(const struct live *live)
{
	return is_calm(live) && live->target.everyone;
}

/* Is there an answer that a tick should not be late for? */
static bool hurries(const struct live *live)
{
	return is_calm(live) ? is_held_up(live) : helper_pool__waiting(live->readers) > 0;
}

static struct live_expectation expectation(const struct live *live)
{
	struct live_expectation e = {};

	each_part_with (live->parts, part, expect)
		part->expect(part->object, &e);
	return e;
}

/* Functions that may be freed soon, or whose process may end soon, have to be read before. */
static bool expects_functions(const struct live *live, uint64_t now)
{
	struct live_expectation e = expectation(live);
	uint64_t met = max_u64(e.begun, is_calm(live) ? 0 : e.met);

	return met && now < met + FUNCTIONS_COME;
}

/* The CPU time of early ticks; at a lower rate, the same in a longer time. */
static struct quota_limit early_limit(const struct live *live)
{
	struct quota_limit limit = quota_row(QUOTA_EARLY_TICKS)->all;
	unsigned int hz = live->hz ? live->hz : 1;

	if (live->pace.saves)
		limit.period *= SAVED_PART;
	if (live_is_saving(live))
		limit.period *= 2;
	if (hz < FULL_RATE_HZ)
		limit.period = limit.period * FULL_RATE_HZ / hz;
	return limit;
}

/* The longest time between two early ticks, ns, whatever they have used. */
static uint64_t wake_max(const struct live *live)
{
	if (live->pace.saves)
		return SAVED_WAKE_MAX;
	return live_is_saving(live) ? TICK : WAKE_MAX;
}

static enum wake_cause cause_of_ticks(const struct live *live, uint64_t now)
{
	return now < live->pace.for_root_until ? WAKE_BY_ROOT : WAKE_BY_USERS;
}

/* The next tick for a file or table that events wait for. */
static uint64_t answers_earliest(const struct live *live, uint64_t now)
{
	return min_u64(live->pace.earliest[cause_of_ticks(live, now)], live->pace.answers_at);
}

/* Charges a tick that took `cpu` ns. The debt is limited to what is earned within wake_max(). */
static void charge_early(struct live *live, uint64_t cpu, uint64_t now)
{
	const struct quota_limit limit = early_limit(live);

	for (int cause = cause_of_ticks(live, now); cause < WAKE_CAUSES; cause++) {
		struct meter *early = &live->pace.early[cause];
		int64_t most = meter__left(early, &limit, now) +
			       (int64_t)(wake_max(live) * limit.limit / limit.period);

		meter__take(early, &limit, min_u64(cpu, most > 0 ? (uint64_t)most : 0), now);
	}
}

/* The least time from a tick to an early one, ns. */
static uint64_t least_distance(const struct live *live, enum wake_cause cause, uint64_t now)
{
	const struct quota_limit limit = early_limit(live);
	int64_t left = meter__left(&live->pace.early[cause], &limit, now);
	uint64_t least = max_u64(WAKE_MIN, 1000000000ull / (live->hz ? live->hz : 1));

	if (left < 0)
		least = max_u64(least, (uint64_t)-left * limit.period / limit.limit);
	return min_u64(least, wake_max(live));
}

/* Perf maps and jitdumps are read at ticks, and stacks of JIT code are cut until then. */
static uint64_t longest_distance(const struct live *live)
{
	uint64_t samples = JIT_SAMPLES * 1000000000ull / (live->hz ? live->hz : 1);

	uint64_t most = live->pace.saves ? SAVED_TICK : TICK;

	return jit_tail__follows(live->jit) ? min_u64(most, max_u64(TICK_OF_JIT, samples)) : most;
}

/* Plans early ticks. Returns the least time until the next one for an answer; ns. */
static uint64_t plan_early(struct live *live, uint64_t now)
{
	for (int cause = 0; cause < WAKE_CAUSES; cause++) {
		uint64_t least = least_distance(live, cause, now);
		uint64_t *interval = &live->pace.wake_interval[cause];

		*interval = live->changed ? least : max_u64(least, 2 * *interval);
		*interval = min_u64(*interval, wake_max(live));
		bpf_session__set_wake_interval(live->session, cause, *interval);
		live->pace.earliest[cause] = now + least;
	}
	bpf_session__wake_on_exec(live->session, !live_is_saving(live));
	live->pace.answers_at = now + WAKE_MAX;
	return answers_earliest(live, now) - now;
}

/* Plans the next tick, after one and the caller's work on it. */
static void plan_next(struct live *live, uint64_t now)
{
	uint64_t least;

	if (live->pace.ticked_early)
		charge_early(live, thread_cpu_ns() - live->pace.woken_cpu, now);
	least = plan_early(live, now);
	live->pace.due = live->pace.on_timer = now + longest_distance(live);
	if (live->pace.soon) {
		live->pace.due = min_u64(live->pace.due, now + max_u64(live->pace.soon, least));
		live->pace.soon = live->pace.soon < MAPS_LIBRARIES
					  ? 2 * max_u64(live->pace.soon, least)
					  : 0;
	}
	if (hurries(live) || expects_functions(live, now))
		live->pace.due = min_u64(live->pace.due, now + max_u64(HELD_UP, least));
	if (live->slice.unfinished)
		live->pace.due = live->pace.on_timer = now;
	live->changed = live->pace.ticked = live->pace.ticked_early = live->slice.unfinished =
		false;
}

void live_pace__start(struct live *live, uint64_t now)
{
	if (!live__is_behind(live))
		live->pace.due = live->pace.on_timer = now + longest_distance(live);
}

void live__save_ticks(struct live *live, bool save)
{
	live->pace.saves = save;
}

void live_pace__exec(struct live *live)
{
	if (!live_is_saving(live))
		live->pace.soon = WAKE_MIN;
}

bool live__is_due(const struct live *live)
{
	return monotonic_ns() >= live->pace.due;
}

/* A record has come that the stream needs: the next tick may be early. */
static void hasten_for(struct live *live, enum wake_cause cause)
{
	uint64_t now = monotonic_ns();

	if (cause == WAKE_BY_ROOT)
		live->pace.for_root_until = now + ROOT_STARTS;
	live->pace.due = min_u64(live->pace.due,
				 max_u64(now + WAKE_SETTLES, live->pace.earliest[cause]));
}

/* The same for a file or table that events wait for: these are queued, so no record must settle. */
static void hasten_for_answer(struct live *live)
{
	live->pace.due = min_u64(live->pace.due, answers_earliest(live, monotonic_ns()));
}

/* A ring that is half full is read at once. */
static void take_kernel_wake(struct live *live)
{
	enum wake_cause cause;

	if (bpf_session__take_wake(live->session, &cause))
		live->pace.due = live->pace.on_timer = 0;
	else
		hasten_for(live, cause);
}

/* Mappings whose files were found continue with the next tick, soon if a process waits for that. */
static void take_found_files(struct live *live)
{
	bool hurried = hurries(live);
	int err = dso_opener__step(live->opener);

	live->found_err = live->found_err ? live->found_err : err;
	if (live->found_err)
		live->pace.due = 0;
	else if (hurried && !hurries(live))
		hasten_for_answer(live);
}

int live_pace__use_readers(struct live *live)
{
	return is_calm(live) && helper_pool__queues(live->readers) ? dso_opener__step(live->opener)
								   : 0;
}

static bool can_readers_wait(const struct live *live)
{
	return is_calm(live) && !is_held_up(live) && !helper_pool__queues(live->readers) &&
	       !expectation(live).looks;
}

static int control_wakes(struct live *live, int operation, int fd, uint32_t events, uint32_t wake)
{
	struct epoll_event event = {.events = events, .data.u32 = wake};

	return epoll_ctl(live->pace.wakes, operation, fd, &event) ? -errno : 0;
}

int live__watch(struct live *live, int fd, enum live_wake wake)
{
	return fd < 0 ? 0 : control_wakes(live, EPOLL_CTL_ADD, fd, EPOLLIN, wake);
}

int live_pace__init(struct live *live)
{
	int err = live__watch(live, bpf_session__wake_fd(live->session), LIVE_WAKE_KERNEL)
			  ?: live__watch(live, bpf_session__epoll_fd(live->session),
					 LIVE_WAKE_RINGS);

	live->pace.awaits_readers = true;
	bpf_session__wake_on_exec(live->session, !live_is_saving(live));
	return err ? err : live__watch(live, helper_pool__fd(live->readers), LIVE_WAKE_READERS);
}

static void choose_readers(struct live *live)
{
	bool wanted = !can_readers_wait(live);

	if (wanted != live->pace.awaits_readers &&
	    !control_wakes(live, EPOLL_CTL_MOD, helper_pool__fd(live->readers),
			   wanted ? EPOLLIN : 0, LIVE_WAKE_READERS))
		live->pace.awaits_readers = wanted;
}

/* True: a descriptor of the caller's is readable. */
static bool take_wakes(struct live *live)
{
	struct epoll_event events[WAKES_AT_ONCE];
	int count = epoll_wait(live->pace.wakes, events, WAKES_AT_ONCE, 0);
	bool others = false;

	for (int i = 0; i < count; i++) {
		switch ((enum live_wake)events[i].data.u32) {
		case LIVE_WAKE_KERNEL:
			take_kernel_wake(live);
			break;
		case LIVE_WAKE_RINGS:
			live->pace.due = live->pace.on_timer = 0;
			break;
		case LIVE_WAKE_READERS:
			take_found_files(live);
			break;
		case LIVE_WAKE_TABLES:
			hasten_for_answer(live);
			others = true;
			break;
		case LIVE_WAKE_OTHER:
			others = true;
		}
	}
	return others;
}

void live__wait(struct live *live, uint64_t until)
{
	struct pollfd wakes = {.fd = live->pace.wakes, .events = POLLIN};
	bool others = false;
	int ready;

	if (live->pace.ticked)
		plan_next(live, monotonic_ns());
	do {
		uint64_t now = monotonic_ns();
		uint64_t end = min_u64(until, live->pace.due);
		uint64_t left = end > now ? end - now : 0;
		struct timespec timeout = {left / 1000000000, left % 1000000000};

		choose_readers(live);
		ready = ppoll(&wakes, 1, &timeout, NULL);
		others = ready > 0 && take_wakes(live);
	} while ((ready < 0 && errno == EINTR) ||
		 (ready >= 0 && !others && monotonic_ns() < live->pace.due &&
		  monotonic_ns() < until));
	live->pace.woken_cpu = thread_cpu_ns();
}
