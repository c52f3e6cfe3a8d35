/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes may tell of their functions: each of them, their user, all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/told_budget.h"

#define MB	    ((size_t)1 << 20)
#define TOLD_TIME   quota_row(QUOTA_FUNCTIONS)->all.period
#define TOLD_USER   quota_row(QUOTA_FUNCTIONS)->user.limit
#define TOLD_ALL    quota_row(QUOTA_FUNCTIONS)->all.limit
#define COPIES_ALL  quota_row(QUOTA_CODE_COPIES)->all.limit
#define COPIES_TIME quota_row(QUOTA_CODE_COPIES)->all.period
#define NOW	    (5 * TOLD_TIME)

/* How many MB it can tell, one at a time. */
static size_t report_all(struct told_budget *b, struct meter *process, struct outside_books *books,
			 uint32_t pid, uint64_t now)
{
	size_t told = 0;

	while (told_budget__spend(b, process, books, pid, MB, now))
		told++;
	return told;
}

static void expect_row(struct outside_books *books, uint32_t user, enum outside_reason reason,
		       uint64_t count)
{
	struct outside_row row;

	assert_true(outside_books__take(books, &row));
	assert_int_equal(row.user, user);
	assert_int_equal(row.thing, OUTSIDE_FUNCTIONS);
	assert_int_equal(row.reason, reason);
	assert_int_equal(row.count, count);
}

static void process_test(void **state)
{
	struct outside_books *books = outside_books__new();
	struct meter one = {}, other = {};
	static struct told_budget b;

	(void)state;
	told_budget__init(&b);
	assert_int_equal(report_all(&b, &one, books, (uint32_t)getpid(), NOW), 8);
	assert_false(told_budget__spend(&b, &one, books, (uint32_t)getpid(), SIZE_MAX, NOW));
	expect_row(books, getuid(), OUTSIDE_BY_ITSELF, 2);
	assert_int_equal(report_all(&b, &other, books, (uint32_t)getpid(), NOW), 8);
	/* as much again in a minute */
	assert_int_equal(report_all(&b, &one, books, (uint32_t)getpid(), NOW + TOLD_TIME / 2), 4);
	assert_int_equal(report_all(&b, &one, books, (uint32_t)getpid(), NOW + 3 * TOLD_TIME), 8);
	outside_books__free(books);
}

/* Of this process's user, and of another one, if it may become that. */
static void user_test(void **state)
{
	struct outside_books *books = outside_books__new();
	struct meter process[16] = {};
	static struct told_budget b;
	size_t mine = 0, others = 0;
	pid_t child;
	int pipes[2];
	char byte;

	(void)state;
	told_budget__init(&b);
	for (size_t i = 0; i < 8; i++)
		mine += report_all(&b, &process[i], books, (uint32_t)getpid(), NOW);
	/* what was told before users counted is nobody's */
	assert_true(mine >= TOLD_USER / MB && mine <= (TOLD_USER + TOLD_ALL / 4) / MB + 1);
	expect_row(books, getuid(), OUTSIDE_BY_ITSELF, 6);
	expect_row(books, getuid(), OUTSIDE_BY_USER, 2);
	if (!getuid()) {
		assert_int_equal(pipe(pipes), 0);
		child = fork();
		if (!child) {
			if (setgid(65534) || setuid(65534) || write(pipes[1], "", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		assert_int_equal(read(pipes[0], &byte, 1), 1);
		for (size_t i = 8; i < 16; i++)
			others += report_all(&b, &process[i], books, (uint32_t)child, NOW);
		assert_int_equal(mine + others, TOLD_ALL / MB);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(pipes[0]);
		close(pipes[1]);
	}
	outside_books__free(books);
}

/* Copies are of all together, and those of the past second do not count. */
static void copies_test(void **state)
{
	static struct told_budget b;

	(void)state;
	told_budget__init(&b);
	for (size_t i = 0; i < COPIES_ALL / 1024; i++)
		assert_true(told_budget__may_read(&b, 1024, NOW));
	assert_false(told_budget__may_read(&b, 1024, NOW));
	assert_false(told_budget__may_read(&b, COPIES_ALL / 2 + 1, NOW + COPIES_TIME / 2));
	assert_false(told_budget__may_read(&b, 1, NOW - 1)); /* CPUs are read one after the other */
	assert_false(told_budget__may_read(&b, COPIES_ALL + 1, NOW + COPIES_TIME + 1));
	assert_true(told_budget__may_read(&b, COPIES_ALL, NOW + COPIES_TIME + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_test),
		cmocka_unit_test(user_test),
		cmocka_unit_test(copies_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
