/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a thread's time went. The kernel's account says how long it ran and how long it waited for
 * a CPU; the rest of the time it was blocked. Visits find out by what.
 *
 * The state found by a visit gets the time since the visit before. Visits are at random times, so
 * on average every place gets the time spent there. Two rules make this more exact:
 *   - A thread that has not run since its last event is where it was. That time (up to
 *     visit_account.unchanged) is the place's own, however many visits there were.
 *   - From the rest, the account's running time is subtracted, and its wait for a CPU is split off.
 *     If a visit finds the thread blocked, that wait is due to the next visit that finds it waiting
 *     for a CPU, and vice versa. So the weights of all waits add up to the account exactly.
 *
 * Time that is due when the thread ends has a place of its own. So has time in which it neither ran
 * nor waited by the account and did not switch: an interrupt or a hypervisor took it.
 *
 * No time counts twice: each part is limited to what is left. The scheduler's clocks and
 * CLOCK_MONOTONIC differ by parts per million; what one is ahead counts in the next interval.
 */
#include "world/wall_accounts.h"

#include <errno.h>

#include "base/minmax.h"
#include "world/process_table.h"
#include "world/recorder.h"
#include "world/recording_facts.h"
#include "world/thread_accounts.h"
#include "world/window_lives.h"

#define TIME_LIMIT (1ull << 60) /* of hostile recordings */
#define BIRTH_LATE 10000000ull	/* ns: a fork record comes when the thread was there already */
/* ns: a thread that ran for less was not running at several visits */
#define RAN_LITTLE 10000000ull

static struct stack_id made_up_stack(const struct thread_accounts *a,
				     const struct thread_life *thread, enum made_up_place place)
{
	return thread_accounts__made_up_frame(a, thread, (struct stack_id){0}, place);
}

static int push_wait(const struct thread_accounts *a, struct thread_life *thread, uint64_t time,
		     uint64_t weight, const struct wall_visit *found)
{
	struct window_thread *entry = window_lives__show(a->lives, thread, time, 0);
	const struct profile_sample sample = {
		.kind = SAMPLE_WALL,
		.time = max_u64(time, profile_builder__session(a->builder)->start + 1),
		.weight = weight,
		.stack = found->stack,
		.comm = found->comm.v ? found->comm
			: entry	      ? entry->comm
				      : (struct string_id){0},
		.state = (uint8_t)found->state | found->open,
		.holder = found->holder,
		.since = found->since,
		.until = found->until,
	};

	if (!entry)
		return -ENOMEM;
	profile_builder__sample(a->builder, entry->id, &sample);
	return profile_builder__error(a->builder);
}

/* The state seen last gets the time since. */
static int push_last(const struct thread_accounts *a, struct thread_life *thread)
{
	struct thread_wall *w = &thread->wall;
	const struct wall_visit found = {w->state,  w->open,	    w->stack,	   w->comm,
					 w->holder, w->waits_since, w->waits_until};
	int err = 0;

	if (w->state != WALL_NONE && w->weight)
		err = push_wait(a, thread, w->found_at, w->weight, &found);
	w->weight = 0;
	w->state = WALL_NONE;
	return err;
}

/* Adds time to the state in which the thread was seen, or is seen. */
static void add_waited(struct thread_wall *w, uint64_t ns)
{
	w->weight += ns;
	if (wall_state_is_for_cpu(w->state))
		w->sums.runnable += ns;
	else
		w->sums.blocked += ns;
}

/* The state seen last went on until then. */
static void hold(struct thread_wall *w, uint64_t until)
{
	if (until <= w->seen)
		return;
	add_waited(w, until - w->seen);
	if (wall_state_is_for_cpu(w->state))
		w->delay += until - w->seen; /* the account has it as well */
	w->seen = w->waits_until = until;
}

/* The growth of an account, as far as there is time left. */
static uint64_t take(uint64_t *known, uint64_t now, uint64_t left)
{
	uint64_t more = now > *known ? min_u64(now - *known, left) : 0;

	*known += more;
	return more;
}

/* Does the recording have the whole account? Not after an execve, before which there was a life. */
static bool was_born_here(const struct thread_accounts *a, const struct thread_life *thread,
			  const struct visit_account *account)
{
	uint64_t start = recording_facts__start(a->facts);

	return start && account->started >= start && account->started <= account->seen &&
	       thread->start <= account->started + BIRTH_LATE;
}

static void begin(const struct thread_accounts *a, struct thread_life *thread,
		  const struct visit_event *e)
{
	struct thread_wall *w = &thread->wall;

	*w = (struct thread_wall){.known = true};
	if (was_born_here(a, thread, &e->account)) {
		w->seen = w->sums.since = e->account.started;
		return;
	}
	w->cpu = e->stack.cpu_time;
	w->delay = e->account.run_delay;
	w->switches = e->account.switches;
	w->seen = w->sums.since = e->account.seen;
}

/*
 * Since when it waits: since it last ran. If it waits for a CPU, it may have been blocked before,
 * and has waited no longer than the growth of its account.
 */
static uint64_t waits_since(const struct thread_wall *w, uint64_t ran_until)
{
	uint64_t since = ran_until ? min_u64(ran_until, w->seen) : w->seen;

	if (wall_state_is_for_cpu(w->state))
		since = max_u64(since, w->seen - min_u64(w->delay_due, w->seen));
	return since;
}

static void find(struct thread_wall *w, const struct wall_visit *visit, uint64_t ran_until)
{
	uint64_t *due = wall_state_is_for_cpu(visit->state) ? &w->delay_due : &w->blocked_due;

	w->state = visit->state;
	w->open = visit->open;
	w->stack = visit->stack;
	w->comm = visit->comm;
	w->holder = visit->holder;
	w->found_at = w->seen;
	w->waits_since = max_u64(waits_since(w, ran_until), w->waits_until);
	w->waits_until = w->seen;
	w->weight = 0;
	if (w->state == WALL_NONE)
		return;
	add_waited(w, *due);
	*due = 0;
}

/* CPU time of the account at the last visit, not all of which may be accounted for yet. */
static uint64_t cpu_visited(const struct thread_wall *w)
{
	return max_u64(w->cpu, w->visited_cpu);
}

/*
 * Is it still blocked where it was, without having run? An unfinished wait for a CPU may have read
 * some microseconds more than the kernel's run delay at its end. What was accounted for may still
 * be less than the account of the last visit, if its clocks are ahead.
 */
static bool is_same_wait(const struct thread_wall *w, const struct visit_event *e)
{
	return w->state != WALL_NONE && !wall_state_is_for_cpu(w->state) &&
	       !(e->account.found & (VISIT_RUNNING | VISIT_RUNNABLE)) &&
	       e->stack.cpu_time <= cpu_visited(w) &&
	       e->account.run_delay <= max_u64(w->delay, w->visited_delay) &&
	       e->account.switches == w->switches;
}

/*
 * When the wait that was seen ended; 0: not known. If the thread has waited at most once more, it
 * ran and waited for a CPU in between, for the growth of its account. Weights do not use it:
 * long waits would get too much, because visits miss the short ones.
 */
static uint64_t wait_ended(const struct thread_wall *w, const struct visit_event *e)
{
	bool waits = !(e->account.found & (VISIT_RUNNING | VISIT_RUNNABLE));
	uint64_t seen = e->account.seen, until = waits ? min_u64(e->account.since, seen) : seen;
	uint64_t used = e->stack.cpu_time - w->cpu + e->account.run_delay - w->delay;

	if (w->state == WALL_NONE || w->state == WALL_RUNNABLE ||
	    e->account.switches - w->switches != waits || e->stack.cpu_time < w->cpu ||
	    e->account.run_delay < w->delay || used > until)
		return 0;
	return until - used;
}

/* If its stack was taken again, more of its process is known by now. */
static void go_on_waiting(struct thread_wall *w, uint64_t now, const struct wall_visit *visit)
{
	hold(w, now);
	if (visit->state == WALL_NONE)
		return;
	w->state = visit->state;
	w->open = visit->open;
	w->stack = visit->stack;
	/* the longer a wait, the more of it is behind its last visit */
	if (visit->holder.v)
		w->holder = visit->holder;
}

int wall_accounts__visit(const struct thread_accounts *a, struct thread_life *thread,
			 const struct visit_event *e, const struct wall_visit *visit)
{
	struct thread_wall *w = &thread->wall;
	uint64_t now = e->account.seen, part;
	bool blocked = visit->state != WALL_NONE && !wall_state_is_for_cpu(visit->state);
	int err;

	if (now >= TIME_LIMIT || (w->known && now < w->seen))
		return 0;
	if (!w->known)
		begin(a, thread, e);
	if (is_same_wait(w, e)) {
		go_on_waiting(w, now, visit);
		return 0;
	}
	blocked |= w->switches != e->account.switches ||
		   (w->state != WALL_NONE && !wall_state_is_for_cpu(w->state));
	if (w->state != WALL_NONE)
		hold(w, min_u64(e->account.unchanged, now));
	w->waits_until = max_u64(w->waits_until, wait_ended(w, e));
	err = push_last(a, thread);
	part = take(&w->cpu, e->stack.cpu_time, now - w->seen);
	w->sums.running += part;
	w->seen += part;
	part = take(&w->delay, e->account.run_delay, now - w->seen);
	w->delay_due += part;
	w->seen += part;
	*(blocked ? &w->blocked_due : &w->not_waited) += now - w->seen;
	w->seen = now;
	w->switches = e->account.switches;
	w->visited_cpu = e->stack.cpu_time;
	w->visited_delay = e->account.run_delay;
	find(w, visit, e->account.since);
	return err;
}

/* The owner of a lock comes from the program's memory, unless the lock is the kernel's. */
struct thread_id wall_accounts__holder(const struct thread_accounts *a,
				       struct process_table *processes,
				       const struct thread_life *waiting,
				       const struct visit_event *e)
{
	struct thread_life *holder = NULL;
	struct window_thread *entry;

	if (e->account.holder && e->account.holder != waiting->tid)
		holder = process_table__find_thread(processes, e->account.holder);
	if (!holder || holder->ended ||
	    (holder->process != waiting->process && !(e->account.found & VISIT_LOCK)))
		return (struct thread_id){0};
	entry = window_lives__show(a->lives, holder, e->account.header.time,
				   recording_facts__period(a->facts));
	return entry ? entry->id : (struct thread_id){0};
}

void wall_accounts__exit(struct thread_life *thread, uint64_t time, uint64_t cpu_time,
			 uint64_t visited)
{
	struct thread_wall *w = &thread->wall;
	uint64_t ran;

	if (!w->known || w->ended || time <= w->seen || time >= TIME_LIMIT)
		return;
	w->ended = true;
	if (w->state != WALL_NONE && cpu_time < cpu_visited(w) + RAN_LITTLE)
		hold(w, min_u64(visited, time));
	ran = take(&w->cpu, cpu_time, time - w->seen);
	w->sums.running += ran;
	w->sums.unvisited += time - w->seen - ran;
	w->seen = time;
}

/* The next visit finds another life, without this wait. If the thread ran little, it ends here. */
void wall_accounts__exec(struct thread_life *caller, uint64_t time)
{
	struct thread_wall *w = &caller->wall;

	if (w->known && w->state != WALL_NONE && time < TIME_LIMIT &&
	    caller->cpu.last < cpu_visited(w) + RAN_LITTLE)
		hold(w, time);
}

/* Time that is due has no place, so it gets one of its own. */
static int push_rest(const struct thread_accounts *a, struct thread_life *thread, uint64_t *due,
		     enum wall_state state, int place)
{
	const struct wall_visit found = {.state = state,
					 .stack = made_up_stack(a, thread, place),
					 .since = thread->wall.seen,
					 .until = thread->wall.seen};
	uint64_t weight = *due;

	*due = 0;
	return push_wait(a, thread, thread->wall.seen, weight, &found);
}

int wall_accounts__settle(const struct thread_accounts *a, struct thread_life *thread)
{
	struct thread_wall *w = &thread->wall;
	struct window_thread *entry;
	int err = 0;

	if (!w->known || w->seen <= w->sums.since) {
		w->state = WALL_NONE; /* its stack is this window's */
		return 0;
	}
	entry = window_lives__show(a->lives, thread, w->seen, 0);
	if (!entry)
		return -ENOMEM;
	err = push_last(a, thread);
	w->sums.runnable += w->delay_due;
	w->sums.blocked += w->blocked_due + w->not_waited;
	if (!err && w->delay_due)
		err = push_rest(a, thread, &w->delay_due, WALL_RUNNABLE, PLACE_UNSEEN);
	if (!err && w->blocked_due)
		err = push_rest(a, thread, &w->blocked_due, WALL_OTHER, PLACE_UNSEEN);
	if (!err && w->not_waited)
		err = push_rest(a, thread, &w->not_waited, WALL_OTHER, PLACE_TAKEN);
	w->sums.until = w->seen;
	profile_builder__thread_wall(a->builder, entry->id, &w->sums);
	w->sums = (struct profile_wall){.since = w->seen};
	return err;
}
