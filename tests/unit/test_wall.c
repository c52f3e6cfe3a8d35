/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting time: what visits are made of, in stories of events, and the tables of states. */
#include <sys/syscall.h>

#include "unit.h"
#include "world/recorder.h"

#include "event_story.h"
#include "story_text.h"
#include "world/wall_states.h"

#define KERNEL 0xffffffff81000000ull

/* A visit of thread 11 of process 10, that was found so. Times are in ms since the start of the story. */
struct seen {
	uint32_t found;
	int call;
	uint64_t unchanged, cpu, delay, switches, since;
	uint64_t kernel; /* a function of the kernel that it is in; 0: none */
	uint32_t holder; /* as the mutex says */
};

static void visit_at(uint64_t ms, const struct seen *s)
{
	struct visit_event *e = calloc(1, sizeof(*e) + 2 * sizeof(uint64_t));
	size_t n = 0;

	ev.now = S + ms * MS;
	e->account = (struct visit_account){
		.header = {.type = EVENT_VISIT, .time = ev.now},
		.seen = ev.now,
		.unchanged = s->unchanged ? S + s->unchanged * MS : 0,
		.started = S / 2,
		.run_delay = s->delay * MS,
		.switches = s->switches,
		.since = s->since ? S + s->since * MS : 0,
		.holder = s->holder,
		.call = s->call,
		.found = s->found,
	};
	e->stack.tgid = 10;
	e->stack.tid = 11;
	e->stack.cpu_time = s->cpu * MS;
	if (s->kernel)
		e->stack.frames[n++] = s->kernel;
	e->stack.kernel_frames = n;
	e->stack.frames[n++] = IP(0x10010);
	e->stack.user_frames = 1;
	assert_int_equal(ev.h.visit(ev.h.context, e), 0);
	free(e);
}
#define visit(ms, ...) visit_at(ms, &(struct seen){__VA_ARGS__})

static void begin(void)
{
	process(10, S / 4, true, "prog");
	thread(10, 11, S / 2, 0, "worker");
	map(10, 0x10000, 0x1000, 0, "/bin/prog", EVENT_FROM_PROC);
	maps_read(10);
	start_sampling();
}

static uint64_t waited(enum wall_state state)
{
	const struct profile_samples *w = &thread_of(11, 0)->samples[SAMPLE_WALL];
	uint64_t sum = 0;

	for (size_t i = 0; i < w->count; i++)
		if (w->state[i] == state)
			sum += w->weight[i];
	return sum;
}

static void close_story(void)
{
	stop();
	assert_int_equal(wall_states__settle(ev.builder), 0);
	finish();
}

/* As the finisher does: what is open gets its state before the profile is checked. */
static void closed(void)
{
	stop();
	assert_int_equal(recorder__close(ev.recorder, 0), 0);
	close_story();
}

/* The wall samples of thread 11. */
static const struct profile_samples *waits(void)
{
	return &thread_of(11, 0)->samples[SAMPLE_WALL];
}

/* The window ends at this time, and the next one begins. */
static void end_window(uint64_t ms)
{
	ev.now = S + ms * MS;
	assert_int_equal(recorder__close(ev.recorder, ev.now), 0);
	assert_int_equal(wall_states__settle(ev.builder), 0);
	next_window();
}

static uint64_t time_of(const char *name, size_t length)
{
	const struct profile_wall *w = &thread_of(11, 0)->wall;
	const struct {
		const char *name;
		uint64_t time;
	} parts[] = {{"all", w->until - w->since},
		     {"ran", w->running},
		     {"ready", w->runnable},
		     {"blocked", w->blocked},
		     {"unvisited", w->unvisited}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strlen(parts[i].name) == length && !strncmp(name, parts[i].name, length))
			return parts[i].time;
	for (enum wall_state state = WALL_NONE + 1; state < WALL_STATE_COUNT; state++)
		if (strlen(wall_state_name(state)) == length &&
		    !strncmp(name, wall_state_name(state), length))
			return waited(state);
	fail_msg("no time %s", name);
	return 0;
}

/*
 * "ran 5, blocked 195, lock 190": ms of thread 11, first of its account (all, ran, ready, blocked, unvisited), then in states of
 * wall_state_name().
 */
static void assert_times(const char *expected)
{
	struct story_text found = {};

	each_item (at, expected) {
		int length = strchr(at, ' ') - at;

		add_item(&found, "%.*s %g", length, at, (double)time_of(at, length) / MS);
	}
	assert_string_equal(found.text, expected);
}

static void end_thread(uint64_t ms, uint64_t cpu)
{
	ev.now = S + ms * MS;
	thread_cpu(10, 11, cpu * MS, EVENT_EXITED);
	exit_(10, 11);
}

/* ---- accounts -------------------------------------------------------------------------------- */

TEST(a_wait_that_lasts_is_one_sample)
{
	begin();
	visit(10, .call = SYS_futex, .cpu = 5);
	/* it was last seen so at 205, and its account says that it has not run since */
	visit(210, .found = VISIT_ACCOUNT, .unchanged = 205, .cpu = 5);
	closed();
	assert_times("all 200, blocked 200, ran 0, ready 0, unvisited 0, lock 200");
	assert_int_equal(thread_of(11, 0)->samples[SAMPLE_WALL].count, 1);
}

TEST(an_ended_wait_lasts_until_it_was_last_seen)
{
	begin();
	visit(10, .call = SYS_futex, .cpu = 5);
	visit(210, .found = VISIT_ACCOUNT, .unchanged = 205, .cpu = 6, .switches = 1);
	closed();
	/* until it was last seen so; of the rest nothing is known */
	assert_times("blocked 199, ran 1, lock 195, other 4");
}

/* Once more is known of the process, its stack is another. */
TEST(a_wait_sampled_twice_is_one_sample)
{
	const struct profile_samples *samples;
	begin();
	visit(10, .call = SYS_futex, .cpu = 5, .switches = 1);
	visit(110, .call = SYS_futex, .unchanged = 105, .cpu = 5, .switches = 1,
	      .kernel = KERNEL + 16);
	visit(210, .found = VISIT_ACCOUNT, .unchanged = 210, .cpu = 5, .switches = 1);
	closed();
	samples = waits();
	assert_int_equal(samples->count, 1);
	assert_int_equal(samples->weight[0], 200 * MS);
	assert_int_equal(ev.p->stacks[samples->stack[0].v].depth, 2);
	assert_times("blocked 200");
}

/* A wait for a CPU that goes on is measured by a clock that may be ahead: then more of it was known before the wait than in it. */
TEST(a_wait_may_follow_one_measured_too_long)
{
	const struct profile_samples *samples;

	begin();
	visit(10, .found = VISIT_RUNNABLE, .cpu = 5, .delay = 4, .switches = 1);
	visit(30, .call = SYS_futex, .cpu = 5, .delay = 3, .switches = 2);
	visit(130, .call = SYS_futex, .unchanged = 110, .cpu = 5, .delay = 3, .switches = 2);
	visit(140, .found = VISIT_ACCOUNT, .unchanged = 140, .cpu = 5, .delay = 3, .switches = 2);
	closed();
	samples = waits();
	assert_int_equal(samples->count, 1);
	assert_int_equal(samples->state[0], WALL_LOCK);
	assert_int_equal(samples->until[0], S + 140 * MS);
}

TEST(time_goes_to_what_the_next_visit_finds)
{
	begin();
	visit(10, .call = SYS_futex, .cpu = 5, .switches = 1);
	/* 100 ms: 20 ran, 5 waited for a CPU, the rest was blocked */
	visit(110, .call = SYS_nanosleep, .cpu = 25, .delay = 5, .switches = 2);
	/* 10 ms: it waits for a CPU, as it has done for 7 */
	visit(120, .found = VISIT_RUNNABLE, .cpu = 25, .delay = 12, .switches = 3);
	visit(130, .found = VISIT_ACCOUNT, .cpu = 35, .delay = 12, .switches = 3);
	closed();
	/* ready with what was due since the visit before; other: of which no visit found it blocked */
	assert_times("ran 30, ready 12, blocked 78, sleep 75, runnable 12, other 3");
}

/*
 * Its own clock says when the thread last ran. A wait ends when it was last seen so, or, if the thread has waited only once more,
 * as long before that one as it ran and waited for a CPU.
 */
TEST(waits_have_times_from_their_own_clock)
{
	static const struct {
		uint64_t since, until;
	} expected[] = {{40, 95}, {105, 110}, {137, 140}, {140, 150}};
	enum { COUNT = sizeof(expected) / sizeof(expected[0]) };
	const struct profile_samples *samples;

	begin();
	visit(10, .call = SYS_futex, .cpu = 5, .switches = 1);
	visit(50, .call = SYS_futex, .cpu = 25, .switches = 2, .since = 40);
	visit(110, .call = SYS_nanosleep, .unchanged = 90, .cpu = 35, .switches = 3, .since = 105);
	/* it was woken 3 ms ago, and had slept before */
	visit(140, .found = VISIT_RUNNABLE, .cpu = 35, .delay = 3, .switches = 4, .since = 112);
	/* a clock that is behind: no wait is in another one */
	visit(150, .call = SYS_futex, .cpu = 36, .delay = 3, .switches = 5, .since = 120);
	visit(160, .found = VISIT_ACCOUNT, .cpu = 37, .delay = 3, .switches = 6);
	closed();
	samples = waits();
	assert_true(samples->count >= COUNT);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(samples->since[i], S + expected[i].since * MS);
		assert_int_equal(samples->until[i], S + expected[i].until * MS);
	}
	/* what no visit found has a weight, but no place in time */
	for (size_t i = COUNT; i < samples->count; i++)
		assert_int_equal(samples->since[i], samples->until[i]);
}

/* A thread that runs again, or waits for a CPU, has not waited since; what it used is of the time after its wait. */
TEST(time_used_after_a_wait_moves_its_end_forward)
{
	const struct profile_samples *samples;

	begin();
	visit(10, .call = SYS_futex, .cpu = 5, .switches = 1, .since = 8);
	visit(50, .found = VISIT_RUNNABLE, .unchanged = 20, .cpu = 15, .delay = 7, .switches = 1);
	/* more than there was */
	visit(60, .call = SYS_futex, .cpu = 15, .delay = 7, .switches = 2, .since = 55);
	visit(70, .found = VISIT_RUNNING | VISIT_ACCOUNT, .cpu = 1 << 30, .delay = 1,
	      .switches = 2);
	closed();
	samples = waits();
	assert_true(samples->count >= 1);
	assert_int_equal(samples->state[0], WALL_LOCK);
	assert_int_equal(samples->until[0], S + 33 * MS);
	/* the visits' own share of the time: what followed until 50 ms is due to the next that finds it blocked */
	assert_times("lock 33");
}

/* The account of a wait for a CPU has the part that was given to it as unchanged. */
TEST(a_long_wait_for_a_cpu_counts_once)
{
	begin();
	visit(10, .found = VISIT_RUNNABLE, .cpu = 5, .delay = 1, .switches = 1);
	visit(110, .call = SYS_futex, .unchanged = 90, .cpu = 10, .delay = 86, .switches = 2);
	closed();
	assert_times("ready 85, runnable 85, ran 5, lock 10");
}

/* It has not switched by itself: it was not blocked. */
TEST(time_of_interrupts_is_blocked_in_another_state)
{
	const struct profile_samples *samples;
	begin();
	visit(10, .found = VISIT_RUNNABLE, .cpu = 5, .delay = 1, .switches = 1);
	visit(110, .found = VISIT_RUNNABLE, .cpu = 55, .delay = 46, .switches = 1);
	closed();
	assert_times("ran 50, ready 45, blocked 5");
	samples = waits();
	assert_int_equal(samples->count, 2);
	assert_int_equal(samples->state[1], WALL_OTHER);
}

/* Clocks of the kernel may be ahead of each other: no time is given twice. */
TEST(no_time_is_given_twice_by_clocks_that_are_ahead)
{
	begin();
	visit(10, .call = SYS_futex, .cpu = 5, .delay = 5);
	visit(20, .call = SYS_futex, .cpu = 18, .delay = 90, .switches = 1);
	visit(30, .call = SYS_futex, .cpu = UINT32_MAX, .delay = UINT32_MAX, .switches = 2);
	visit(25, .call = SYS_futex, .cpu = 1, .switches = 9); /* it cannot be: ignored */
	closed();
	assert_times("all 20, ran 20, ready 0, blocked 0, unvisited 0");
}

TEST(time_after_the_last_visit_is_unvisited)
{
	begin();
	visit(10, .call = SYS_futex, .cpu = 5, .switches = 1);
	/* the latest visit of all was at 10 ms: of what follows nothing is known but what it ran */
	end_thread(100, 8);
	closed();
	assert_times("all 90, ran 3, unvisited 87");
}

/* The books of the visitor so far. `seen`: when its latest visit began, in ms. */
static void visit_books(uint64_t seen, uint64_t looks, uint64_t unchanged)
{
	struct visit_books_event books = {
		.header = header(0),
		.lines = VISIT_LINE_COUNT,
		.hz = 20,
		.made_at = S + seen * MS,
		.count = {[VISIT_LINE_LOOKS] = looks, [VISIT_LINE_UNCHANGED] = unchanged}};

	assert_int_equal(ev.h.visit_books(ev.h.context, &books), 0);
}

TEST(a_thread_passed_over_still_waits_until_then)
{
	begin();
	visit(10, .call = SYS_futex, .cpu = 5, .switches = 1);
	ev.now = S + 80 * MS;
	visit_books(70, 7, 5);
	end_thread(100, 8);
	closed();
	assert_times("lock 60, ran 3, unvisited 27");
}

/* Windows add up. The first one ends in the middle of a visit: two looks have no result yet. */
TEST(waits_and_books_of_windows_add_up)
{
	uint64_t blocked;

	begin();
	visit(10, .call = SYS_futex, .cpu = 5, .switches = 1);
	visit(20, .call = SYS_futex, .cpu = 5, .switches = 2);
	ev.now = S + 30 * MS;
	visit_books(20, 5, 3);
	end_window(30);
	blocked = thread_of(11, 0)->wall.blocked;
	visit_books(100, 9, 9);
	visit(120, .call = SYS_futex, .unchanged = 110, .cpu = 25, .switches = 3);
	closed();
	assert_int_equal(blocked + thread_of(11, 0)->wall.blocked, 90 * MS);
	assert_times("ran 20");
	assert_int_equal(ev.profiles[0]->visits.count[VISIT_LINE_LOOKS], 3);
	assert_int_equal(ev.p->visits.count[VISIT_LINE_LOOKS], 6);
}

/* Nothing of a first visit goes into the next window: its stack would be another one there, or none. */
TEST(a_first_visit_does_not_reach_the_next_window)
{
	begin();
	visit(25, .call = SYS_futex, .cpu = 5, .switches = 1, .kernel = KERNEL);
	end_window(30);
	visit(60, .found = VISIT_ACCOUNT, .unchanged = 60, .cpu = 5, .switches = 1);
	closed();
	assert_times("blocked 35, lock 0");
}

TEST(the_account_of_a_new_thread_begins_at_its_birth)
{
	process(10, S / 4, true, "prog");
	ev.now = S / 4;
	start_sampling();
	ev.now = S / 2;
	fork_(10, 10, 10, 11);
	/* it began at S / 2, of which all is in the account */
	visit(0, .call = SYS_futex, .cpu = 100, .delay = 100, .switches = 2);
	closed();
	assert_int_equal(thread_of(11, 0)->wall.since, S / 2);
	assert_times("ran 100, ready 100, lock 300");
}

/* Nothing that a mutex says is believed but that a thread of the process has it. */
TEST(only_a_live_thread_of_the_process_holds_its_mutex)
{
	static const uint32_t holders[] = {12, 11, 21, 99, 0, UINT32_MAX, 13};
	const struct profile_samples *rows;

	begin();
	thread(10, 12, S / 2, 0, "holder");
	thread(10, 13, S / 2, 0, "ended");
	process(20, S / 4, true, "root's");
	thread(20, 21, S / 2, 0, "other");
	exit_(10, 13);
	for (uint32_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++)
		visit(10 * (i + 1), .call = SYS_futex, .cpu = 5, .switches = i,
		      .holder = holders[i]);
	visit(100, .found = VISIT_ACCOUNT, .unchanged = 100, .cpu = 5, .switches = 6);
	closed();
	rows = waits();
	/* at the first visit no time had passed yet: what it saw is the first 0 ms, of no row */
	assert_int_equal(rows->count, 6);
	for (size_t i = 0; i < rows->count; i++)
		assert_int_equal(rows->holder[i].v, 0);
}

/* A lock of the kernel may be another process's. */
TEST(a_kernel_lock_may_be_held_by_another_process)
{
	static const uint32_t holders[] = {0, 21, 99, 11};
	const struct profile_samples *rows;

	begin();
	process(20, S / 4, true, "other");
	thread(20, 21, S / 2, 0, "holder");
	for (uint32_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++)
		visit(10 * (i + 1), .call = SYS_write, .cpu = 5, .switches = i, .found = VISIT_LOCK,
		      .holder = holders[i]);
	visit(100, .found = VISIT_ACCOUNT, .unchanged = 100, .cpu = 5, .switches = 3);
	closed();
	rows = waits();
	assert_int_equal(rows->count, 3);
	assert_int_equal(ev.p->threads[rows->holder[0].v].tid, 21);
	assert_int_equal(rows->holder[1].v, 0);
	assert_int_equal(rows->holder[2].v, 0);
	for (size_t i = 0; i < rows->count; i++)
		assert_int_equal(rows->state[i], WALL_LOCK);
}

TEST(a_wait_has_the_holder_of_its_lock)
{
	const struct profile_samples *rows;

	begin();
	thread(10, 12, S / 2, 0, "holder");
	visit(10, .call = SYS_futex, .cpu = 5, .holder = 12);
	visit(100, .found = VISIT_ACCOUNT, .unchanged = 100, .cpu = 5);
	closed();
	rows = waits();
	assert_int_equal(rows->count, 1);
	assert_int_equal(ev.p->threads[rows->holder[0].v].tid, 12);
}

/* A wait is visited again while it goes on. */
TEST(a_long_wait_has_the_last_holder_of_its_lock)
{
	static const uint32_t holders[] = {12, 13, 0};
	const struct profile_samples *rows;

	begin();
	thread(10, 12, S / 2, 0, "first");
	thread(10, 13, S / 2, 0, "last");
	for (uint32_t i = 0; i < 3; i++)
		visit(10 + 20 * i, .call = SYS_futex, .cpu = 5, .holder = holders[i]);
	visit(100, .found = VISIT_ACCOUNT, .unchanged = 100, .cpu = 5);
	closed();
	rows = waits();
	assert_int_equal(rows->count, 1);
	assert_int_equal(rows->weight[0], 90 * MS);
	assert_int_equal(ev.p->threads[rows->holder[0].v].tid, 13);
}

static uint64_t random_state = 88172645463325252ull;

/* Mostly near `around`, sometimes anything. */
static uint64_t any_number(uint64_t around)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	switch (random_state % 8) {
	case 0:
		return random_state;
	case 1:
		return UINT64_MAX - random_state % 3;
	case 2:
		return random_state % 3;
	default:
		return around + random_state % (200 * MS);
	}
}

static void visit_with_anything(struct visit_event *e)
{
	ev.now += random_state % (3 * MS);
	e->account.header.time = ev.now;
	e->account.seen = any_number(ev.now - 100 * MS);
	e->account.unchanged = any_number(e->account.seen - 100 * MS);
	e->account.started = any_number(S / 2);
	e->account.run_delay = any_number(ev.now / 8);
	e->account.switches = any_number(ev.now / MS);
	e->account.since = any_number(ev.now - 50 * MS);
	e->account.holder = (uint32_t)any_number(10);
	e->account.call = (int32_t)any_number(200);
	e->account.found = any_number(0) & VISIT_ALL;
	e->stack.tgid = 10;
	e->stack.tid = 11 + random_state % 2;
	e->stack.cpu_time = any_number(ev.now / 4);
	assert_int_equal((ev.h.visit)(ev.h.context, e), 0);
	if (random_state % 16 == 1)
		thread_cpu(10, e->stack.tid, any_number(ev.now / 4), EVENT_EXITED);
}

/* A recording may be made up: whatever its accounts say, no time is given twice, which profile_check() finds. */
TEST(random_accounts_give_no_time_twice)
{
	struct visit_event *e = calloc(1, sizeof(*e) + sizeof(uint64_t));

	e->account.header.type = EVENT_VISIT;
	e->stack.frames[0] = IP(0x10010);
	e->stack.user_frames = 1;
	for (int round = 0; round < 200; round++) {
		begin();
		for (int i = 0; i < 50; i++)
			visit_with_anything(e);
		closed();
		tear_down(state);
		set_up(state);
	}
	free(e);
}

/* ---- states ---------------------------------------------------------------------------------- */

TEST(each_function_has_its_state)
{
	static const struct {
		const char *name;
		enum wall_state state;
	} rows[] = {
		{"futex_wait_queue", WALL_LOCK},
		{"_futex_wait", WALL_NONE},
		{"futex_wait", WALL_LOCK},
		{"futex_wait.isra.0", WALL_LOCK},
		{"futex_waits", WALL_NONE},
		{"futex_wai", WALL_NONE},
		{"__mutex_lock.constprop.0", WALL_LOCK},
		{"rwsem_down_read_slowpath", WALL_LOCK},
		{"rwsem_down_write_slowpath", WALL_LOCK},
		{"do_nanosleep", WALL_SLEEP},
		{"do_epoll_wait", WALL_POLL},
		{"do_sys_poll", WALL_POLL},
		{"do_select", WALL_POLL},
		{"io_cqring_wait", WALL_POLL},
		{"anon_pipe_read", WALL_PIPE},
		{"pipe_write", WALL_PIPE},
		{"n_tty_read", WALL_PIPE},
		{"unix_stream_read_generic", WALL_NETWORK},
		{"inet_csk_accept", WALL_NETWORK},
		{"__skb_wait_for_more_packets", WALL_NETWORK},
		{"io_schedule", WALL_DISK},
		{"folio_wait_bit_common", WALL_DISK},
		{"jbd2_log_wait_commit", WALL_DISK},
		{"request_wait_answer", WALL_DISK},
		{"do_wait", WALL_CHILD},
		{"wait_for_vfork_done", WALL_CHILD},
		{"handle_mm_fault", WALL_FAULT},
		{"do_signal_stop", WALL_STOPPED},
		{"ptrace_stop", WALL_STOPPED},
		{"throttle_cfs_rq_work", WALL_THROTTLED},
		{"sigsuspend.isra.0", WALL_SLEEP},
		{"do_sigtimedwait.isra.0", WALL_SLEEP},
		{"do_msgrcv", WALL_PIPE},
		{"wq_sleep", WALL_PIPE},
		{"pipe_wait_readable", WALL_PIPE},
		{"fcntl_setlk", WALL_LOCK},
		{"__futex_wait", WALL_LOCK},
		{"fanotify_read", WALL_POLL},
		{"schedule", WALL_NONE},
		{"__schedule", WALL_NONE},
		{"", WALL_NONE},
		{"zzz", WALL_NONE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (wall_state_of_function(rows[i].name) != rows[i].state)
			fail_msg("%s: %s", rows[i].name,
				 wall_state_name(wall_state_of_function(rows[i].name)));
}

/* ---- the functions of this kernel ------------------------------------------------------------ */

/* By row: is it a function of this kernel? Names are there for any user, unlike addresses. */
static void find_functions(bool *found)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	char line[1024], name[512];

	assert_non_null(symbols);
	while (fgets(line, sizeof(line), symbols)) {
		if (sscanf(line, "%*s %*s %511[^. \t\n]", name) != 1)
			continue;
		for (size_t i = 0; i < wall_function_count; i++)
			found[i] |= !strcmp(wall_functions[i].name, name);
	}
	fclose(symbols);
}

static bool is_found(const bool *found, const char *name)
{
	for (size_t i = 0; i < wall_function_count; i++)
		if (!strcmp(wall_functions[i].name, name))
			return found[i];
	return false;
}

/* A row that no stack can match has another way to its state. vmtest runs this in each kernel. */
TEST(each_row_can_match_here)
{
	bool *found = calloc(wall_function_count, sizeof(*found));
	unsigned int missing = 0;

	find_functions(found);
	for (size_t i = 0; i < wall_function_count; i++) {
		const struct wall_function *row = &wall_functions[i];
		const char *otherwise = row->otherwise;

		if (found[i] || (otherwise && (*otherwise == '(' || is_found(found, otherwise))))
			continue;
		print_message("%s: not in this kernel, and there is no other way\n", row->name);
		missing++;
	}
	free(found);
	assert_int_equal(missing, 0);
}

/* Each row can be found: they are in order, and none hides another. */
TEST(the_table_is_in_order)
{
	assert_true(wall_function_count > 60);
	for (size_t i = 0; i < wall_function_count; i++) {
		const char *name = wall_functions[i].name;

		if (wall_state_of_function(name) != wall_functions[i].state)
			fail_msg("%s is not found", name);
		if (i && strcmp(wall_functions[i - 1].name, name) >= 0)
			fail_msg("%s is out of order", name);
	}
}

TEST(each_system_call_has_its_state)
{
	static const struct {
		uint32_t found;
		int call;
		enum wall_state state;
		uint8_t open;
	} rows[] = {
		{0, SYS_futex, WALL_LOCK, WALL_STATE_OPEN},
		{0, SYS_flock, WALL_LOCK, WALL_STATE_OPEN},
		{0, SYS_nanosleep, WALL_SLEEP, WALL_STATE_OPEN},
		{0, SYS_rt_sigsuspend, WALL_SLEEP, WALL_STATE_OPEN},
		{0, SYS_rt_sigtimedwait, WALL_SLEEP, WALL_STATE_OPEN},
		{0, SYS_msgrcv, WALL_PIPE, WALL_STATE_OPEN},
		{0, SYS_mq_timedreceive, WALL_PIPE, WALL_STATE_OPEN},
		{0, SYS_poll, WALL_POLL, WALL_STATE_OPEN},
		{0, SYS_epoll_wait, WALL_POLL, WALL_STATE_OPEN},
		{0, SYS_accept4, WALL_NETWORK, WALL_STATE_OPEN},
		{0, SYS_wait4, WALL_CHILD, WALL_STATE_OPEN},
		{0, SYS_fsync, WALL_DISK, WALL_STATE_OPEN},
		{0, SYS_read, WALL_OTHER, WALL_STATE_OPEN},
		{0, VISIT_NO_CALL, WALL_FAULT, WALL_STATE_OPEN},
		{0, VISIT_CALL_UNKNOWN, WALL_OTHER, WALL_STATE_OPEN},
		{VISIT_IO_WAIT, SYS_read, WALL_DISK, WALL_STATE_OPEN},
		{VISIT_IO_WAIT, SYS_io_uring_enter, WALL_POLL, WALL_STATE_OPEN},
		{VISIT_IO_WAIT | VISIT_PENDING, SYS_io_uring_enter, WALL_DISK,
		 WALL_STATE_OPEN | WALL_STATE_PENDING},
		{VISIT_PENDING, SYS_io_getevents, WALL_DISK, WALL_STATE_OPEN | WALL_STATE_PENDING},
		{VISIT_PENDING | VISIT_STOPPED, SYS_io_getevents, WALL_STOPPED, 0},
		{VISIT_STOPPED, SYS_read, WALL_STOPPED, 0},
		{VISIT_LOCK | VISIT_IO_WAIT, SYS_read, WALL_LOCK, 0},
		{VISIT_RUNNABLE, SYS_read, WALL_RUNNABLE, 0},
		{VISIT_RUNNABLE | VISIT_THROTTLED, SYS_read, WALL_THROTTLED, 0},
		{VISIT_RUNNING, SYS_read, WALL_NONE, 0},
		{VISIT_ACCOUNT, SYS_read, WALL_NONE, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct visit_account visit = {.found = rows[i].found, .call = rows[i].call};
		uint8_t open;

		assert_int_equal(wall_state_of_visit(&visit, &open), rows[i].state);
		assert_int_equal(open, rows[i].open);
	}
}

/* The kernel's functions get this name. */
static void name_kernel_functions(const char *name)
{
	struct profile_line line = {};
	struct profile_function function = {};

	for (uint32_t i = 1; i < profile_builder__location_count(ev.builder); i++) {
		const struct profile_location *l =
			profile_builder__get_location(ev.builder, (struct location_id){i});

		if (l->category != CATEGORY_KERNEL)
			continue;
		function.name = profile_builder__string(ev.builder, name);
		function.dso = l->dso;
		line.function = profile_builder__function(ev.builder, &function);
		profile_builder__resolve(ev.builder, (struct location_id){i}, KERNEL, &line, 1);
	}
}

/*
 * A read() waits for what its function in the kernel says, not for what its number says. One that
 * waits for any completion waits for the operations that are pending.
 */
TEST(the_function_of_the_kernel_decides_the_state)
{
	static const struct {
		int call;
		uint32_t found;
		const char *function;
		enum wall_state state;
	} rows[] = {
		{SYS_read, 0, "pipe_read", WALL_PIPE},
		{SYS_io_uring_enter, VISIT_IO_WAIT, "io_cqring_wait", WALL_POLL},
		{SYS_io_uring_enter, VISIT_IO_WAIT, "folio_wait_bit_common", WALL_DISK},
		{SYS_io_uring_enter, VISIT_PENDING, "io_cqring_wait", WALL_DISK},
		{SYS_io_uring_enter, VISIT_PENDING, "__mutex_lock", WALL_LOCK},
		{SYS_io_uring_enter, VISIT_PENDING, "schedule", WALL_DISK},
		{SYS_io_getevents, 0, "read_events", WALL_POLL},
		{SYS_io_getevents, VISIT_PENDING, "read_events", WALL_DISK},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		visit(10, .call = rows[i].call, .found = rows[i].found, .cpu = 5,
		      .kernel = KERNEL + 16);
		visit(20, .call = rows[i].call, .found = rows[i].found, .cpu = 5,
		      .kernel = KERNEL + 16, .switches = 1);
		stop();
		assert_int_equal(recorder__close(ev.recorder, 0), 0);
		name_kernel_functions(rows[i].function);
		close_story();
		assert_times("blocked 10");
		if (waited(rows[i].state) != 10 * MS)
			fail_msg("%s", rows[i].function);
		tear_down(state);
		set_up(state);
	}
}

EACH_TEST_WITH(set_up, tear_down);
