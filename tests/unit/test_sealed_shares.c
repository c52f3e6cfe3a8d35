/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sealed children of one user's files may take in all. */
#include "unit.h"

#include "base/clocks.h"
#include "tenants/quota.h"
#include "unit/sealed_support.h"

#define SECOND 1000000000ull
#define LONG   (600 * SECOND) /* of a busy machine */
#define GREEDY 4711
#define OTHER  4712

/* One of this user, with an address that says so. */
static void make_job(struct sealed_job *job, struct test_job *test, uint32_t user,
		     struct outside_books *books)
{
	make_jobs(job, test, 1);
	test->addresses[0] = user;
	job->user = user;
	job->books = books;
}

/* Of seconds of CPU. */
static void init_quota(struct quota *cpu, unsigned int user, unsigned int others)
{
	quota__init(cpu, QUOTA_SYMBOLS);
	cpu->user.limit = user * SECOND;
	cpu->all.limit = others * SECOND;
}

/* Files of one user never come to an end. */
static int burn_of_one(const struct module_files *files, const uint64_t *addresses, size_t count,
		       symbol_sink_fn sink, void *context, struct module_report *report)
{
	const struct symbol_frame frame = {.function = "f"};
	const struct symbol_result result = {.frames = &frame, .frame_count = 1};
	volatile uint64_t turns = 0;
	int err = 0;

	while (addresses[0] == GREEDY)
		turns++;
	for (size_t i = 0; i < count && !err; i++)
		err = sink(context, i, &result);
	report->state = SYMBOL_STATE_RESOLVED;
	return err;
}

/* One user's files take all they can get: he gets two seconds, and the others' are read beside his, and after. */
TEST(only_files_of_the_greedy_user_are_left_out)
{
	static const uint32_t users[] = {GREEDY, GREEDY, GREEDY, GREEDY, GREEDY,
					 GREEDY, 0,	 OTHER,	 OTHER};
	enum { JOBS = sizeof(users) / sizeof(users[0]) };
	struct outside_books *books = outside_books__new();
	static struct quota cpu_quota;
	const struct sealed_work work = {
		.resolve = burn_of_one, .cpu = &cpu_quota, .cpu_seconds = 1, .wall_time = LONG};
	struct sealed_job jobs[JOBS];
	struct test_job tests[JOBS];
	uint64_t cpu = 0, left = 0;
	struct outside_row row;

	init_quota(&cpu_quota, 2, 480);
	for (size_t i = 0; i < JOBS; i++)
		make_job(&jobs[i], &tests[i], users[i], books);
	assert_int_equal(sealed_run(jobs, JOBS, 2, NULL, NULL, &work), 0);
	for (size_t i = 0; i < JOBS; i++) {
		bool greedy = users[i] == GREEDY;

		assert_int_equal(jobs[i].report.state,
				 greedy ? SYMBOL_STATE_LEFT : SYMBOL_STATE_RESOLVED);
		assert_int_equal(tests[i].reported, ADDRESSES);
		for (size_t n = 0; n < ADDRESSES; n++)
			assert_int_equal(tests[i].answers[n].frames, !greedy);
		cpu += greedy ? jobs[i].cpu_time : 0;
	}
	assert_true(cpu < 4 * SECOND);
	while (outside_books__take(books, &row)) {
		assert_true(row.user == GREEDY && row.thing == OUTSIDE_SYMBOLS);
		left += row.reason == OUTSIDE_BY_USER ? row.count : 0;
		assert_true(row.reason != OUTSIDE_BY_ALL);
	}
	assert_int_equal(left, 6);
	outside_books__free(books);
}

/* Limits left out a part of each module; OTHER's child says what no child of ours can. */
static int leave_parts(const struct module_files *files, const uint64_t *addresses, size_t count,
		       symbol_sink_fn sink, void *context, struct module_report *report)
{
	const struct symbol_result nothing = {};
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = sink(context, i, &nothing);
	report->state = SYMBOL_STATE_RESOLVED;
	report->left = addresses[0] == OTHER
			       ? 1u << OUTSIDE_MAPPINGS
			       : 1u << OUTSIDE_DEBUG_INFO | 1u << OUTSIDE_SYMBOL_TABLES;
	return err;
}

TEST(parts_left_out_are_counted_unless_they_are_impossible)
{
	static const uint32_t users[] = {GREEDY, OTHER, GREEDY};
	enum { JOBS = sizeof(users) / sizeof(users[0]) };
	struct outside_books *books = outside_books__new();
	static struct quota cpu_quota;
	const struct sealed_work work = {.resolve = leave_parts, .cpu = &cpu_quota};
	uint64_t left[OUTSIDE_THING_COUNT] = {};
	struct sealed_job jobs[JOBS];
	struct test_job tests[JOBS];
	struct outside_row row;

	init_quota(&cpu_quota, 100, 100);
	for (size_t i = 0; i < JOBS; i++)
		make_job(&jobs[i], &tests[i], users[i], books);
	assert_int_equal(sealed_run(jobs, JOBS, 1, NULL, NULL, &work), 0);
	assert_int_equal(jobs[0].report.state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(jobs[1].report.state, SYMBOL_STATE_DAMAGED);
	while (outside_books__take(books, &row)) {
		assert_int_equal(row.user, GREEDY);
		assert_int_equal(row.reason, OUTSIDE_BY_ITSELF);
		left[row.thing] += row.count;
	}
	assert_int_equal(left[OUTSIDE_DEBUG_INFO], 2);
	assert_int_equal(left[OUTSIDE_SYMBOL_TABLES], 2);
	assert_int_equal(left[OUTSIDE_MAPPINGS], 0);
	outside_books__free(books);
}

TEST(running_children_stay_within_the_limit_of_all_users)
{
	static const uint32_t users[] = {GREEDY, OTHER, OTHER + 1, 0};
	enum { JOBS = sizeof(users) / sizeof(users[0]) };
	struct outside_books *books = outside_books__new();
	static struct quota cpu_quota;
	const struct sealed_work work = {
		.resolve = burn_of_one, .cpu = &cpu_quota, .cpu_seconds = 2, .wall_time = LONG};
	struct sealed_job jobs[JOBS];
	struct test_job tests[JOBS];
	struct outside_row row;
	uint64_t left = 0;

	init_quota(&cpu_quota, 60, 2);
	for (size_t i = 0; i < JOBS; i++) {
		make_job(&jobs[i], &tests[i], users[i], books);
		if (users[i])
			jobs[i].addresses = tests[0].addresses; /* burns its time */
	}
	assert_int_equal(sealed_run(jobs, JOBS, 4, NULL, NULL, &work), 0);
	for (size_t i = 0; i < JOBS; i++)
		assert_int_equal(jobs[i].report.state,
				 users[i] ? SYMBOL_STATE_LEFT : SYMBOL_STATE_RESOLVED);
	assert_true(jobs[0].cpu_time + jobs[1].cpu_time + jobs[2].cpu_time < 3 * SECOND);
	while (outside_books__take(books, &row)) {
		assert_true(row.user && row.thing == OUTSIDE_SYMBOLS);
		left += row.reason == OUTSIDE_BY_ALL ? row.count : 0;
	}
	assert_int_equal(left, 3);
	outside_books__free(books);
}

/* A run with one file of the user. A greedy one takes what it gets: twice a second, if there is so much. */
static struct sealed_job run_one(struct quota *cpu, uint32_t user, bool greedy,
				 struct outside_books *books)
{
	const struct sealed_work work = {
		.resolve = burn_of_one, .cpu = cpu, .cpu_seconds = 1, .wall_time = LONG};
	struct test_job test;
	struct sealed_job job;

	make_job(&job, &test, user, books);
	test.addresses[0] = greedy ? GREEDY : 0;
	assert_int_equal(sealed_run(&job, 1, 1, NULL, NULL, &work), 0);
	return job;
}

TEST(runs_of_a_user_share_its_limit)
{
	struct outside_books *books = outside_books__new();
	static struct quota cpu;
	struct outside_row row;
	struct sealed_job job;
	uint64_t left = 0, used = 0, expected = 1;

	init_quota(&cpu, 0, 480);
	cpu.user.limit = 5 * SECOND / 2;
	cpu.user.period = 1000000 * SECOND; /* nothing of it is given again meanwhile */
	job = run_one(&cpu, GREEDY, true, books);
	assert_int_equal(job.report.state, SYMBOL_STATE_DAMAGED);
	/*
	 * The kernel counts a limit of CPU time by ticks: beside others a child has less than it
	 * may have, the last one as well.
	 */
	while (job.cpu_time) {
		used += job.cpu_time;
		assert_true(used <= cpu.user.limit + SECOND);
		job = run_one(&cpu, GREEDY, true, books);
		expected += job.report.state == SYMBOL_STATE_LEFT;
	}
	assert_int_equal(job.report.state, SYMBOL_STATE_LEFT);
	assert_true(used >= cpu.user.limit - SECOND);
	job = run_one(&cpu, OTHER, false, books);
	assert_int_equal(job.report.state, SYMBOL_STATE_RESOLVED);
	job = run_one(&cpu, GREEDY, false, books);
	assert_false(job.cpu_time);
	cpu.user.period = 1; /* it has passed */
	job = run_one(&cpu, GREEDY, false, books);
	assert_int_equal(job.report.state, SYMBOL_STATE_RESOLVED);
	while (outside_books__take(books, &row))
		left += row.reason == OUTSIDE_BY_USER && row.user == GREEDY ? row.count : 0;
	assert_int_equal(left, expected);
	outside_books__free(books);
}
