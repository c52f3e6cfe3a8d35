/* SPDX-License-Identifier: BSD-2-Clause */
/* Which threads are parked: one of a profile with waits of each kind. */
#include "export_support.h"

#include "formats/out/waits.h"

#define WAITS_MAX 8
#define HELD	  16u /* the holder of the lock is known */

struct case_wait {
	double since, until, weight; /* ms */
	enum wall_state state;
	unsigned int place; /* number of its function, and HELD */
};

struct parked_case {
	const char *what;
	bool parked;
	const char *place; /* function 1 */
	struct case_wait waits[WAITS_MAX];
};

static const struct parked_case cases[] = {
	{"an event loop", true, "loop", {{0, 40, 40, WALL_POLL, 1}, {45, 90, 50, WALL_POLL, 1}}},
	{"how it waits in the kernel",
	 true,
	 "loop",
	 {{0, 50, 50, WALL_POLL, 1}, {50, 60, 0.5, WALL_DISK, 2}}},
	{"two places", false, "a", {{0, 40, 40, WALL_POLL, 1}, {45, 90, 50, WALL_POLL, 2}}},
	{"two states of one place",
	 false,
	 "a",
	 {{0, 40, 40, WALL_POLL, 1}, {45, 90, 50, WALL_NETWORK, 1}}},
	{"six percent elsewhere",
	 false,
	 "a",
	 {{0, 94, 94, WALL_SLEEP, 1}, {94, 99, 6, WALL_SLEEP, 2}}},
	{"five percent elsewhere",
	 true,
	 "a",
	 {{0, 95, 95, WALL_SLEEP, 1}, {95, 99, 5, WALL_SLEEP, 2}}},
	{"time for a CPU is not blocked",
	 true,
	 "a",
	 {{0, 20, 20, WALL_SLEEP, 1}, {20, 99, 79, WALL_RUNNABLE, 2}}},
	{"only time for a CPU", false, "a", {{0, 99, 99, WALL_RUNNABLE, 1}}},
	{"a lock that is held", false, "a", {{0, 99, 99, WALL_LOCK, 1 | HELD}}},
	{"a pool without work", true, "a", {{0, 99, 99, WALL_LOCK, 1}}},
	{"a pool with work", false, "a", {{0, 40, 40, WALL_LOCK, 1}, {45, 90, 50, WALL_LOCK, 1}}},
	{"a pool that looks around",
	 true,
	 "___pthread_cond_timedwait64",
	 {{0, 40, 40, WALL_LOCK, 1}, {45, 90, 50, WALL_LOCK, 1}}},
	{"a lock that is held, with a timeout",
	 false,
	 "__pthread_mutex_clockwait",
	 {{0, 40, 40, WALL_LOCK, 1}, {45, 90, 50, WALL_LOCK, 1 | HELD}}},
	{"a listener",
	 true,
	 "accept",
	 {{0, 40, 40, WALL_NETWORK, 1}, {45, 90, 50, WALL_NETWORK, 1}}},
	{"a name that has it",
	 false,
	 "acceptable",
	 {{0, 40, 40, WALL_NETWORK, 1}, {45, 90, 50, WALL_NETWORK, 1}}},
	{"answers", false, "recv", {{0, 40, 40, WALL_NETWORK, 1}, {45, 90, 50, WALL_NETWORK, 1}}},
	{"a connection that is idle",
	 true,
	 "recv",
	 {{0, 2500, 2500, WALL_NETWORK, 1}, {2501, 4000, 500, WALL_NETWORK, 1}}},
	{"a disk", false, "read", {{0, 99, 99, WALL_DISK, 1}}},
	{"a debugger", false, "a", {{0, 99, 99, WALL_STOPPED, 1}}},
	{"a child", false, "wait", {{0, 40, 40, WALL_CHILD, 1}, {45, 90, 50, WALL_CHILD, 1}}},
	{"a shell", true, "wait", {{0, 99, 99, WALL_CHILD, 1}}},
	{"nothing at all", false, "a", {{0, 0, 0, WALL_NONE, 0}}},
	{"waits without time", false, "a", {{10, 10, 0, WALL_POLL, 1}, {10, 10, 0, WALL_POLL, 1}}},
};

static void add_case_wait(struct fixture *f, struct thread_id thread, struct thread_id holder,
			  const struct location_id *functions, const struct case_wait *wait)
{
	add_wait(f, thread, wait->since, wait->until,
		 STACK(f, functions[0], functions[wait->place & ~HELD]), wait->state, wait->weight,
		 wait->place & HELD ? holder : (struct thread_id){0});
}

static void check_case(const struct parked_case *c)
{
	struct profile_wall wall = {.since = AT(0)};
	struct location_id functions[3];
	struct thread_id thread, holder;
	_cleanup_(parked__fini) struct parked parked = {};
	const struct profile *p;
	_cleanup_fixture_ struct fixture f = {};

	fixture__init(&f, 100);
	f.process = add_process(&f, 10, "program", 0, 0);
	thread = add_thread(&f, f.process, 10, true, "program", 0);
	holder = add_thread(&f, f.process, 11, false, "holder", 0);
	for (uint32_t i = 0; i < 3; i++) {
		functions[i] = add_location(&f, f.program, 0x1000 + 0x100 * i);
		NAME(&f, functions[i], {.function = i == 1 ? c->place : i ? "other" : "start"});
	}
	for (size_t i = 0; i < WAITS_MAX && c->waits[i].state; i++) {
		const struct case_wait *wait = &c->waits[i];

		add_case_wait(&f, thread, holder, functions, wait);
		*(wall_state_is_for_cpu(wait->state) ? &wall.runnable : &wall.blocked) +=
			(uint64_t)(wait->weight * 1e6);
	}
	wall.until = wall.since + wall.blocked + wall.runnable;
	profile_builder__thread_wall(f.b, thread, &wall);
	p = finish(&f);
	assert_int_equal(parked__init(&parked, p), 0);
	if (c->parked != (parked.threads == 1) || c->parked != parked__has(&parked, thread.v, 0))
		fail_msg("%s: parked %d", c->what, parked.threads == 1);
	assert_false(parked.place[holder.v]);
}

TEST(threads_that_are_parked)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(&cases[i]);
}

/* A thread of a runtime that waits twice, the second time in another function of these files. */
static bool is_parked_in_runtime(bool other_engine, bool other_function, bool other_library)
{
	struct profile_wall wall = {.since = AT(0), .until = AT(90), .blocked = AT(90) - AT(0)};
	struct location_id start, engine[2], function[2], library[2];
	struct thread_id thread;
	struct parked parked;
	struct fixture f;
	bool is_parked;

	fixture__init(&f, 100);
	f.process = add_process(&f, 10, "program", 0, 0);
	thread = add_thread(&f, f.process, 10, true, "program", 0);
	start = add_location(&f, f.program, 0x1000);
	NAME(&f, start, {.function = "start"});
	for (uint32_t i = 0; i < 2; i++) {
		engine[i] = add_location(&f, f.program, 0x2000 + 0x100 * i);
		function[i] = add_location(&f, f.jit, 0x3000 + 0x100 * i);
		library[i] = add_location(&f, f.libc, 0x4000 + 0x100 * i);
		NAME(&f, engine[i], {.function = i ? "call" : "call_fast"});
		NAME(&f, function[i], {.function = i ? "serve" : "clean"});
		NAME(&f, library[i], {.function = i ? "epoll_wait" : "poll"});
	}
	add_wait(&f, thread, 0, 40, STACK(&f, start, function[0], engine[0], library[0]), WALL_POLL,
		 40, (struct thread_id){0});
	add_wait(&f, thread, 40, 90,
		 STACK(&f, start, function[other_function], engine[other_engine],
		       library[other_library]),
		 WALL_POLL, 50, (struct thread_id){0});
	profile_builder__thread_wall(f.b, thread, &wall);
	assert_int_equal(parked__init(&parked, finish(&f)), 0);
	is_parked = parked.threads == 1;
	parked__fini(&parked);
	profile_builder__free(f.b);
	return is_parked;
}

TEST(how_a_runtime_calls_is_no_place)
{
	assert_true(is_parked_in_runtime(false, false, false));
	assert_true(is_parked_in_runtime(true, false, false));
	assert_false(is_parked_in_runtime(false, true, false));
	assert_false(is_parked_in_runtime(false, false, true));
}

/* The innermost function of the runtime's program; a stub of the runtime is none. */
TEST(a_stub_does_not_wait)
{
	struct location_id start, method, stub, futex;
	struct thread_id thread;
	struct stack_id stack;
	const struct profile *p;
	_cleanup_fixture_ struct fixture f = {};

	fixture__init(&f, 100);
	f.process = add_process(&f, 10, "program", 0, 0);
	thread = add_thread(&f, f.process, 10, true, "program", 0);
	start = add_location(&f, f.program, 0x1000);
	method = add_location(&f, f.jit, 0x2000);
	stub = add_location(&f, f.jit, 0x3000);
	futex = add_location(&f, f.libc, 0x4000);
	NAME(&f, start, {.function = "start"});
	NAME(&f, method, {.function = "Shop.take"});
	NAME(&f, stub, {.function = "[monitorenter stub]"});
	NAME(&f, futex, {.function = "futex"});
	stack = STACK(&f, start, method, stub, futex);
	add_sample(&f, thread, 1, stack, 1, "program");
	p = finish(&f);
	assert_ptr_equal(waiting_place(p, stack), &p->locations[method.v]);
}
