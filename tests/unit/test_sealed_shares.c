/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sealed children of one user's files may take in all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clocks.h"
#include "symbolize/sealed.h"

#define SECOND	  1000000000ull
#define ADDRESSES 3
#define GREEDY	  4711
#define OTHER	  4712

struct test_job {
	uint64_t addresses[ADDRESSES];
	size_t reported, named;
};

static int keep(void *context, size_t index, const struct symbol_result *result)
{
	struct test_job *job = context;

	(void)index;
	job->reported++;
	job->named += result->frame_count > 0;
	return 0;
}

static void make_job(struct sealed_job *job, struct test_job *test, uint32_t user,
		     struct outside_books *books)
{
	*test = (struct test_job){.addresses = {user, user + 1, user + 2}};
	*job = (struct sealed_job){
		.files = {.kind = DSO_FILE, .elf_fd = -1, .debug_fd = -1, .alt_fd = -1},
		.root_fd = -1,
		.user = user,
		.books = books,
		.addresses = test->addresses,
		.count = ADDRESSES,
		.sink = keep,
		.context = test,
	};
}

/* Files of one user never come to an end. */
static int burn_of_one(const struct module_files *files, const uint64_t *addresses, size_t count,
		       symbol_sink_fn sink, void *context, struct module_report *report)
{
	const struct symbol_frame frame = {.function = "f"};
	const struct symbol_result result = {.frames = &frame, .frame_count = 1};
	volatile uint64_t turns = 0;
	int err = 0;

	(void)files;
	while (addresses[0] == GREEDY)
		turns++;
	for (size_t i = 0; i < count && !err; i++)
		err = sink(context, i, &result);
	report->state = SYMBOL_STATE_RESOLVED;
	return err;
}

/* One user's files take all they can get: he gets two seconds, and the others' are read beside his, and after. */
static void test_sum_of_a_user(void **state)
{
	static const uint32_t users[] = {GREEDY, GREEDY, GREEDY, GREEDY, GREEDY,
					 GREEDY, 0,	 OTHER,	 OTHER};
	enum { JOBS = sizeof(users) / sizeof(users[0]) };
	struct outside_books *books = outside_books__new();
	const struct sealed_work work = {
		.resolve = burn_of_one, .cpu_seconds = 1, .user_seconds = 2};
	struct sealed_job jobs[JOBS];
	struct test_job tests[JOBS];
	uint64_t cpu = 0, left = 0;
	struct outside_row row;

	(void)state;
	for (size_t i = 0; i < JOBS; i++)
		make_job(&jobs[i], &tests[i], users[i], books);
	assert_int_equal(sealed_run(jobs, JOBS, 2, NULL, NULL, &work), 0);
	for (size_t i = 0; i < JOBS; i++) {
		bool greedy = users[i] == GREEDY;

		assert_int_equal(jobs[i].report.state,
				 greedy ? SYMBOL_STATE_LEFT : SYMBOL_STATE_RESOLVED);
		assert_int_equal(tests[i].reported, ADDRESSES);
		assert_int_equal(tests[i].named, greedy ? 0 : ADDRESSES);
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

/* Seconds are set aside for children that run, so many at a time do not take more than the sum of all but root. */
static void test_sum_of_all(void **state)
{
	static const uint32_t users[] = {GREEDY, OTHER, OTHER + 1, 0};
	enum { JOBS = sizeof(users) / sizeof(users[0]) };
	struct outside_books *books = outside_books__new();
	const struct sealed_work work = {
		.resolve = burn_of_one, .cpu_seconds = 2, .user_seconds = 60, .others_seconds = 2};
	struct sealed_job jobs[JOBS];
	struct test_job tests[JOBS];
	struct outside_row row;
	uint64_t left = 0;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sum_of_a_user),
		cmocka_unit_test(test_sum_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
