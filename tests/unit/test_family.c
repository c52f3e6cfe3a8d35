/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is a target, and when: forks, numbers that are used again, ends in any order, forgetting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session/family.h"

#define SECOND 1000000000ull

static struct task_event task(enum event_type type, uint64_t time, pid_t pid, pid_t tid, pid_t ppid)
{
	return (struct task_event){
		.header = {.size = sizeof(struct task_event), .type = type, .time = time},
		.pid = pid,
		.tid = tid,
		.ppid = ppid,
		.ptid = ppid,
	};
}

static void forks(struct family *f, uint64_t time, pid_t parent, pid_t child)
{
	struct task_event event = task(EVENT_FORK, time, child, child, parent);

	assert_int_equal(family__fork(f, &event), 0);
}

static void starts_thread(struct family *f, uint64_t time, pid_t pid, pid_t tid)
{
	struct task_event event = task(EVENT_FORK, time, pid, tid, pid);

	assert_int_equal(family__fork(f, &event), 0);
}

static void exits(struct family *f, uint64_t time, pid_t pid, pid_t tid)
{
	struct task_event event = task(EVENT_EXIT, time, pid, tid, 1);

	family__exit(f, &event);
}

static size_t count_living(const struct family *f, pid_t wanted)
{
	size_t count, seen = 0;
	pid_t *pids;

	assert_int_equal(family__living_targets(f, &pids, &count), 0);
	for (size_t i = 0; i < count; i++)
		seen += !wanted || pids[i] == wanted;
	free(pids);
	return seen;
}

static struct family *new_family(bool everyone, bool inherit, bool (*exists)(pid_t pid))
{
	struct family *f = family__new(everyone, inherit, exists);

	assert_non_null(f);
	return f;
}

static void children_of_targets_are_targets_from_their_birth_on(void **state)
{
	struct family *f = new_family(false, true, NULL);

	(void)state;
	assert_int_equal(family__add_target(f, 10), 0);
	assert_true(family__is_target(f, 10, 0));
	assert_false(family__is_target(f, 11, 0));
	forks(f, 100, 10, 11);
	forks(f, 200, 11, 12);
	forks(f, 300, 99, 13);
	assert_false(family__is_target(f, 11, 99));
	assert_true(family__is_target(f, 11, 100));
	assert_true(family__is_target(f, 12, UINT64_MAX - 1));
	assert_false(family__is_target(f, 13, 300));
	assert_int_equal(family__parent(f, 12), 11);
	assert_int_equal(family__parent(f, 13), 0);
	assert_int_equal(count_living(f, 0), 3);
	family__free(f);
}

static void without_inherit_children_are_none(void **state)
{
	struct family *f = new_family(false, false, NULL);

	(void)state;
	family__add_target(f, 10);
	forks(f, 100, 10, 11);
	assert_true(family__is_target(f, 10, 100));
	assert_false(family__is_target(f, 11, 100));
	assert_int_equal(count_living(f, 0), 1);
	family__free(f);
}

static void everyone_is_a_target_and_has_a_parent(void **state)
{
	struct family *f = new_family(true, true, NULL);

	(void)state;
	assert_true(family__is_target(f, 77, 5));
	assert_int_equal(family__add_parent(f, 77, 70), 0);
	forks(f, 100, 77, 78);
	assert_int_equal(family__parent(f, 77), 70);
	assert_int_equal(family__parent(f, 78), 77);
	/* of those that nobody forked before our eyes, as of those that somebody did */
	assert_int_equal(family__add_parent(f, 78, 71), 0);
	assert_int_equal(family__parent(f, 78), 71);
	family__free(f);
}

static void parents_that_are_told_change_no_membership(void **state)
{
	struct family *f = new_family(false, true, NULL);

	(void)state;
	assert_int_equal(family__add_parent(f, 10, 1), 0);
	assert_false(family__is_target(f, 10, 5));
	assert_int_equal(family__add_target(f, 10), 0);
	assert_int_equal(family__parent(f, 10), 1);
	assert_int_equal(family__add_parent(f, 10, 2), 0);
	assert_true(family__is_target(f, 10, 5));
	assert_int_equal(family__parent(f, 10), 2);
	family__free(f);
}

static void a_number_that_goes_to_a_stranger(void **state)
{
	struct family *f = new_family(false, true, NULL);

	(void)state;
	family__add_target(f, 10);
	forks(f, 100, 10, 11);
	exits(f, 200, 11, 11);
	forks(f, 300, 99, 11);
	/* records of its first life still count */
	assert_true(family__is_target(f, 11, 150));
	assert_true(family__is_target(f, 11, 299));
	assert_false(family__is_target(f, 11, 300));
	/* and what the stranger forks is none of ours */
	forks(f, 400, 11, 12);
	assert_false(family__is_target(f, 12, 400));
	assert_int_equal(count_living(f, 11), 0);
	family__free(f);
}

static void a_number_that_comes_back_into_the_family(void **state)
{
	struct family *f = new_family(false, true, NULL);

	(void)state;
	family__add_target(f, 10);
	forks(f, 100, 10, 11);
	exits(f, 200, 11, 11);
	forks(f, 300, 99, 11);
	exits(f, 400, 11, 11);
	forks(f, 500, 10, 11);
	assert_false(family__is_target(f, 11, 350));
	assert_true(family__is_target(f, 11, 500));
	assert_int_equal(count_living(f, 11), 1);
	/* the ends of its former lives do not end this one */
	forks(f, 10 * SECOND, 10, 12);
	assert_true(family__is_target(f, 11, 10 * SECOND));
	assert_int_equal(family__parent(f, 11), 10);
	family__free(f);
}

static void an_exit_that_is_older_than_the_life(void **state)
{
	struct family *f = new_family(false, true, NULL);

	(void)state;
	family__add_target(f, 10);
	forks(f, 500, 10, 11);
	exits(f, 400, 11, 11);
	forks(f, 10 * SECOND, 10, 12);
	assert_true(family__is_target(f, 11, 10 * SECOND));
	family__free(f);
}

static void the_ended_are_forgotten_after_a_while(void **state)
{
	struct family *f = new_family(false, true, NULL);

	(void)state;
	family__add_target(f, 10);
	forks(f, 100, 10, 11);
	forks(f, 100, 10, 12);
	exits(f, SECOND, 11, 11);
	forks(f, 2 * SECOND, 10, 13);
	assert_true(family__is_target(f, 11, 2 * SECOND)); /* a late record */
	assert_int_equal(count_living(f, 0), 4);
	forks(f, 4 * SECOND, 10, 14);
	assert_false(family__is_target(f, 11, SECOND));
	assert_int_equal(family__parent(f, 11), 0);
	assert_true(family__is_target(f, 12, 4 * SECOND));
	assert_int_equal(count_living(f, 0), 4);
	assert_int_equal(count_living(f, 11), 0);
	family__free(f);
}

static void threads_are_no_processes(void **state)
{
	struct family *f = new_family(false, true, NULL);

	(void)state;
	family__add_target(f, 10);
	starts_thread(f, 100, 10, 11);
	assert_false(family__is_target(f, 11, 100));
	exits(f, 200, 10, 11);
	forks(f, 10 * SECOND, 10, 12);
	forks(f, 20 * SECOND, 10, 13);
	assert_true(family__is_target(f, 10, 20 * SECOND));
	assert_int_equal(count_living(f, 0), 3);
	family__free(f);
}

static bool leader_gone_threads_left; /* what the system says of process 11 */

static bool exists(pid_t pid)
{
	return pid == 11 && leader_gone_threads_left;
}

static void a_process_outlives_its_leader(void **state)
{
	struct family *f = new_family(false, true, exists);

	(void)state;
	leader_gone_threads_left = true;
	family__add_target(f, 10);
	forks(f, 100, 10, 11);
	exits(f, 200, 11, 11);
	for (uint64_t s = 3; s < 30; s += 3) {
		forks(f, s * SECOND, 11, 100 + s);
		assert_true(family__is_target(f, 11, s * SECOND));
		assert_true(family__is_target(f, 100 + s, s * SECOND));
		assert_int_equal(count_living(f, 11), 1);
	}
	leader_gone_threads_left = false;
	forks(f, 40 * SECOND, 10, 200);
	assert_false(family__is_target(f, 11, 30 * SECOND));

	/* the same number in a stranger's hands does not keep it */
	leader_gone_threads_left = true;
	forks(f, 41 * SECOND, 10, 11);
	exits(f, 42 * SECOND, 11, 11);
	forks(f, 43 * SECOND, 99, 11);
	forks(f, 60 * SECOND, 10, 201);
	assert_false(family__is_target(f, 11, 42 * SECOND));
	family__free(f);
}

/* A storm: what is kept does not grow with the number of processes that ever were. */
static void many_short_lives(void **state)
{
	struct family *f = new_family(false, true, NULL);
	uint64_t now = SECOND;

	(void)state;
	family__add_target(f, 10);
	for (pid_t i = 0; i < 200000; i++, now += SECOND / 1000) {
		pid_t pid = 100 + i % 30000;

		forks(f, now, 10, pid);
		assert_true(family__is_target(f, pid, now));
		exits(f, now + SECOND / 2000, pid, pid);
	}
	/* those of the last two seconds, and the first target */
	assert_in_range(count_living(f, 0), 1900, 2100);
	family__free(f);
}

static void nothing_at_all(void **state)
{
	struct family *f = new_family(false, true, NULL);

	(void)state;
	assert_int_equal(count_living(f, 0), 0);
	exits(f, 100, 5, 5);
	assert_int_equal(family__parent(f, 5), 0);
	family__free(f);
	family__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_of_targets_are_targets_from_their_birth_on),
		cmocka_unit_test(without_inherit_children_are_none),
		cmocka_unit_test(everyone_is_a_target_and_has_a_parent),
		cmocka_unit_test(parents_that_are_told_change_no_membership),
		cmocka_unit_test(a_number_that_goes_to_a_stranger),
		cmocka_unit_test(a_number_that_comes_back_into_the_family),
		cmocka_unit_test(an_exit_that_is_older_than_the_life),
		cmocka_unit_test(the_ended_are_forgotten_after_a_while),
		cmocka_unit_test(threads_are_no_processes),
		cmocka_unit_test(a_process_outlives_its_leader),
		cmocka_unit_test(many_short_lives),
		cmocka_unit_test(nothing_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
