/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that were requested: ends, execve by this one and by another, numbers that are used again. */
#include "unit.h"
#include "base/cleanup.h"
#include "live/live_private.h"
#include "live/thread_targets.h"

#define PROCESS 100
#define THREAD	101

static bool alive[200];

static bool runs(pid_t tid)
{
	return alive[tid];
}

static struct thread_targets begin(uint32_t tid)
{
	struct thread_targets t = {};

	memset(alive, 0, sizeof(alive));
	alive[PROCESS] = alive[THREAD] = true;
	assert_int_equal(thread_targets__add(&t, tid, PROCESS), 0);
	thread_targets__begin(&t, runs);
	return t;
}

static void exits(struct thread_targets *t, uint32_t tid)
{
	const struct task_event event = {.pid = PROCESS, .tid = tid};

	thread_targets__exit(t, &event);
}

TEST(thread_that_ends)
{
	_cleanup_(thread_targets__fini) struct thread_targets t = begin(THREAD);

	assert_false(thread_targets__ended(&t, runs, 10, 5));
	alive[THREAD] = false;
	/* its record may be on the way */
	assert_false(thread_targets__ended(&t, runs, 20, 15));
	assert_false(thread_targets__ended(&t, runs, 30, 20));
	exits(&t, THREAD);
	assert_true(thread_targets__ended(&t, runs, 40, 35));
	/* somebody else may have its number by then */
	alive[THREAD] = true;
	assert_true(thread_targets__ended(&t, runs, 50, 45));
}

TEST(thread_that_calls_execve)
{
	_cleanup_(thread_targets__fini) struct thread_targets t = begin(THREAD);

	exits(&t, PROCESS); /* the leader, whose number it gets */
	alive[THREAD] = false;
	assert_false(thread_targets__ended(&t, runs, 20, 15));
	assert_true(thread_targets__has(&t, THREAD));
	assert_false(thread_targets__ended(&t, runs, 30, 25));
	assert_true(thread_targets__has(&t, PROCESS));
	assert_false(thread_targets__has(&t, THREAD));
	exits(&t, THREAD); /* another one of that number */
	assert_false(thread_targets__ended(&t, runs, 40, 35));
	alive[PROCESS] = false;
	assert_true(thread_targets__ended(&t, runs, 50, 45));
}

TEST(another_thread_calls_execve)
{
	struct thread_targets t = begin(THREAD);

	alive[THREAD] = false;
	exits(&t, THREAD);
	assert_true(thread_targets__ended(&t, runs, 20, 5));
	thread_targets__fini(&t);
	/* the leader's number goes on */
	t = begin(PROCESS);
	exits(&t, PROCESS);
	assert_false(thread_targets__ended(&t, runs, 20, 15));
	alive[PROCESS] = false;
	assert_true(thread_targets__ended(&t, runs, 30, 5));
	thread_targets__fini(&t);
}

TEST(threads_that_end_before_the_first_record)
{
	_cleanup_(thread_targets__fini) struct thread_targets t = {};

	memset(alive, 0, sizeof(alive));
	alive[PROCESS] = true;
	assert_false(thread_targets__ended(&t, runs, 20, 15)); /* none was requested */
	assert_int_equal(thread_targets__add(&t, THREAD, PROCESS), 0);
	thread_targets__begin(&t, runs);
	assert_true(thread_targets__ended(&t, runs, 20, 0));
	assert_int_equal(thread_targets__add(&t, PROCESS, PROCESS), 0);
	assert_false(thread_targets__ended(&t, runs, 30, 25));
}
