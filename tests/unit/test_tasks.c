/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes are targets, and when: forks, reused pids, ends in any order, freed entries; and slots. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit.h"
#include "live/tasks.h"

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

static void forks(struct tasks *t, uint64_t time, pid_t parent, pid_t child)
{
	struct task_event event = task(EVENT_FORK, time, child, child, parent);

	assert_int_equal(tasks__sweep(t, time), 0);
	assert_int_equal(tasks__fork(t, &event), 0);
}

static void starts_thread(struct tasks *t, uint64_t time, pid_t pid, pid_t tid)
{
	struct task_event event = task(EVENT_FORK, time, pid, tid, pid);

	assert_int_equal(tasks__fork(t, &event), 0);
}

static void exits(struct tasks *t, uint64_t time, pid_t pid, pid_t tid)
{
	struct task_event event = task(EVENT_EXIT, time, pid, tid, 1);

	assert_int_equal(tasks__exit(t, &event), 0);
}

static size_t count_living(const struct tasks *t, pid_t wanted)
{
	size_t count, seen = 0;
	pid_t *pids;

	assert_int_equal(tasks__living_targets(t, &pids, &count), 0);
	for (size_t i = 0; i < count; i++)
		seen += !wanted || pids[i] == wanted;
	free(pids);
	return seen;
}

static struct tasks *new_tasks(bool everyone, bool inherit, bool (*exists)(pid_t pid))
{
	struct tasks *t = tasks__new(&(struct tasks_options){
		.everyone = everyone, .inherit = inherit, .exists = exists});

	assert_non_null(t);
	return t;
}

TEST(children_of_targets_are_targets_from_their_birth_on)
{
	struct tasks *t = new_tasks(false, true, NULL);

	assert_int_equal(tasks__add_target(t, 10), 0);
	assert_true(tasks__is_target(t, 10, 0));
	assert_false(tasks__is_target(t, 11, 0));
	forks(t, 100, 10, 11);
	forks(t, 200, 11, 12);
	forks(t, 300, 99, 13);
	assert_false(tasks__is_target(t, 11, 99));
	assert_true(tasks__is_target(t, 11, 100));
	assert_true(tasks__is_target(t, 12, UINT64_MAX - 1));
	assert_false(tasks__is_target(t, 13, 300));
	assert_int_equal(tasks__parent(t, 12), 11);
	assert_int_equal(tasks__parent(t, 13), 0);
	assert_int_equal(count_living(t, 0), 3);
	tasks__free(t);
}

TEST(without_inherit_children_are_none)
{
	struct tasks *t = new_tasks(false, false, NULL);

	tasks__add_target(t, 10);
	forks(t, 100, 10, 11);
	assert_true(tasks__is_target(t, 10, 100));
	assert_false(tasks__is_target(t, 11, 100));
	assert_int_equal(count_living(t, 0), 1);
	tasks__free(t);
}

TEST(everyone_is_a_target_and_has_a_parent)
{
	struct tasks *t = new_tasks(true, true, NULL);

	assert_true(tasks__is_target(t, 77, 5));
	assert_int_equal(tasks__add_parent(t, 77, 70), 0);
	forks(t, 100, 77, 78);
	assert_int_equal(tasks__parent(t, 77), 70);
	assert_int_equal(tasks__parent(t, 78), 77);
	/* of processes without a fork event, as of those with one */
	assert_int_equal(tasks__add_parent(t, 78, 71), 0);
	assert_int_equal(tasks__parent(t, 78), 71);
	tasks__free(t);
}

TEST(reported_parents_change_no_membership)
{
	struct tasks *t = new_tasks(false, true, NULL);

	assert_int_equal(tasks__add_parent(t, 10, 1), 0);
	assert_false(tasks__is_target(t, 10, 5));
	assert_int_equal(tasks__add_target(t, 10), 0);
	assert_int_equal(tasks__parent(t, 10), 1);
	assert_int_equal(tasks__add_parent(t, 10, 2), 0);
	assert_true(tasks__is_target(t, 10, 5));
	assert_int_equal(tasks__parent(t, 10), 2);
	tasks__free(t);
}

TEST(a_number_that_goes_to_a_stranger)
{
	struct tasks *t = new_tasks(false, true, NULL);

	tasks__add_target(t, 10);
	forks(t, 100, 10, 11);
	exits(t, 200, 11, 11);
	forks(t, 300, 99, 11);
	/* records of its first life still count */
	assert_true(tasks__is_target(t, 11, 150));
	assert_true(tasks__is_target(t, 11, 299));
	assert_false(tasks__is_target(t, 11, 300));
	/* and what the stranger forks is none of ours */
	forks(t, 400, 11, 12);
	assert_false(tasks__is_target(t, 12, 400));
	assert_int_equal(count_living(t, 11), 0);
	tasks__free(t);
}

TEST(a_number_that_comes_back_into_the_family)
{
	struct tasks *t = new_tasks(false, true, NULL);

	tasks__add_target(t, 10);
	forks(t, 100, 10, 11);
	exits(t, 200, 11, 11);
	forks(t, 300, 99, 11);
	exits(t, 400, 11, 11);
	forks(t, 500, 10, 11);
	assert_false(tasks__is_target(t, 11, 350));
	assert_true(tasks__is_target(t, 11, 500));
	assert_int_equal(count_living(t, 11), 1);
	/* the ends of its former lives do not end this one */
	forks(t, 10 * SECOND, 10, 12);
	assert_true(tasks__is_target(t, 11, 10 * SECOND));
	assert_int_equal(tasks__parent(t, 11), 10);
	tasks__free(t);
}

TEST(an_exit_that_is_older_than_the_life)
{
	struct tasks *t = new_tasks(false, true, NULL);

	tasks__add_target(t, 10);
	forks(t, 500, 10, 11);
	exits(t, 400, 11, 11);
	forks(t, 10 * SECOND, 10, 12);
	assert_true(tasks__is_target(t, 11, 10 * SECOND));
	tasks__free(t);
}

TEST(the_ended_are_forgotten_after_a_while)
{
	struct tasks *t = new_tasks(false, true, NULL);

	tasks__add_target(t, 10);
	forks(t, 100, 10, 11);
	forks(t, 100, 10, 12);
	exits(t, SECOND, 11, 11);
	forks(t, 2 * SECOND, 10, 13);
	assert_true(tasks__is_target(t, 11, 2 * SECOND)); /* a late record */
	assert_int_equal(count_living(t, 0), 4);
	forks(t, 4 * SECOND, 10, 14);
	assert_false(tasks__is_target(t, 11, SECOND));
	assert_int_equal(tasks__parent(t, 11), 0);
	assert_true(tasks__is_target(t, 12, 4 * SECOND));
	assert_int_equal(count_living(t, 0), 4);
	assert_int_equal(count_living(t, 11), 0);
	tasks__free(t);
}

TEST(threads_are_no_processes)
{
	struct tasks *t = new_tasks(false, true, NULL);

	tasks__add_target(t, 10);
	starts_thread(t, 100, 10, 11);
	assert_false(tasks__is_target(t, 11, 100));
	exits(t, 200, 10, 11);
	forks(t, 10 * SECOND, 10, 12);
	forks(t, 20 * SECOND, 10, 13);
	assert_true(tasks__is_target(t, 10, 20 * SECOND));
	assert_int_equal(count_living(t, 0), 3);
	tasks__free(t);
}

static bool leader_gone_threads_left; /* what the system says of process 11 */

static bool exists(pid_t pid)
{
	return pid == 11 && leader_gone_threads_left;
}

TEST(a_process_outlives_its_leader)
{
	struct tasks *t = new_tasks(false, true, exists);

	leader_gone_threads_left = true;
	tasks__add_target(t, 10);
	forks(t, 100, 10, 11);
	exits(t, 200, 11, 11);
	for (uint64_t s = 3; s < 30; s += 3) {
		forks(t, s * SECOND, 11, 100 + s);
		assert_true(tasks__is_target(t, 11, s * SECOND));
		assert_true(tasks__is_target(t, 100 + s, s * SECOND));
		assert_int_equal(count_living(t, 11), 1);
	}
	leader_gone_threads_left = false;
	forks(t, 40 * SECOND, 10, 200);
	assert_false(tasks__is_target(t, 11, 30 * SECOND));

	/* the same number in a stranger's hands does not keep it */
	leader_gone_threads_left = true;
	forks(t, 41 * SECOND, 10, 11);
	exits(t, 42 * SECOND, 11, 11);
	forks(t, 43 * SECOND, 99, 11);
	forks(t, 60 * SECOND, 10, 201);
	assert_false(tasks__is_target(t, 11, 42 * SECOND));
	tasks__free(t);
}

static unsigned int looks; /* at processes that have ended */

static bool count_looks(pid_t pid)
{
	looks++;
	return pid == 12;
}

/* In the whole system only a process that has started threads can outlive its leader. */
TEST(an_end_without_threads_costs_no_look)
{
	struct tasks *t = new_tasks(true, true, count_looks);

	looks = 0;
	forks(t, SECOND, 1, 11);
	forks(t, SECOND, 1, 12);
	starts_thread(t, SECOND + 1, 12, 20);
	exits(t, SECOND + 2, 11, 11);
	exits(t, SECOND + 2, 12, 12);
	assert_int_equal(tasks__sweep(t, 5 * SECOND), 0);
	assert_int_equal(looks, 1);
	assert_null(tasks__find(t, 11));
	assert_non_null(tasks__find(t, 12));

	/* the next process with that number has no threads, and one that was there before may have some */
	forks(t, 6 * SECOND, 1, 12);
	exits(t, 7 * SECOND, 12, 12);
	assert_int_equal(tasks__add_parent(t, 13, 1), 0);
	exits(t, 7 * SECOND, 13, 13);
	assert_int_equal(tasks__sweep(t, 9 * SECOND + 2), 0);
	assert_int_equal(looks, 2);
	assert_null(tasks__find(t, 12));
	assert_null(tasks__find(t, 13));
	tasks__free(t);
}

/* An owner that stays the same is read again after 1, 2, 4, 8 and then 16 seconds. */
TEST(an_owner_that_stays_is_seldom_read)
{
	struct tasks *t = new_tasks(true, true, NULL);
	struct task *task = tasks__need(t, getpid());
	uint64_t owner, reads = 0, until = 0;

	assert_non_null(task);
	owner = task__owner(task, SECOND);
	for (uint64_t now = SECOND; now < 100 * SECOND; now += SECOND / 10) {
		assert_int_equal(task__owner(task, now), owner);
		reads += task->slots.program.owner_until != until;
		until = task->slots.program.owner_until;
		assert_true(until - now <= 16 * SECOND);
	}
	assert_int_equal(reads, 5 + (100 - 32) / 16 + 1);

	/* another one, and another program, are read again soon */
	task->slots.program.owner++;
	assert_int_equal(task__read_owner(task, 200 * SECOND), owner);
	assert_int_equal(task->slots.program.owner_until, 201 * SECOND);
	assert_int_equal(task__read_owner(task, 200 * SECOND + 1), owner);
	assert_int_equal(task->slots.program.owner_until, 201 * SECOND + 1);
	tasks__free(t);
}

/* A storm: what is kept does not grow with the number of processes that ever were. */
TEST(many_short_lives)
{
	struct tasks *t = new_tasks(false, true, NULL);
	uint64_t now = SECOND;

	tasks__add_target(t, 10);
	for (pid_t i = 0; i < 200000; i++, now += SECOND / 1000) {
		pid_t pid = 100 + i % 30000;

		forks(t, now, 10, pid);
		assert_true(tasks__is_target(t, pid, now));
		exits(t, now + SECOND / 2000, pid, pid);
	}
	/* those of the last two seconds, up to a sweep's interval, and the first target */
	assert_in_range(count_living(t, 0), 1900, 3100);
	tasks__free(t);
}

/* ---- slots ----------------------------------------------------------------------------------- */

struct releases {
	unsigned int execed, exited, gone;
	uint32_t samples; /* in the slots, when they were released last */
};

static int count_release(void *context, struct task *task, enum task_end how)
{
	struct releases *r = context;

	r->execed += how == TASK_EXECED;
	r->exited += how != TASK_EXECED;
	r->gone += how == TASK_GONE;
	r->samples = task->slots.samples;
	return task->slots.program.has_jit ? -ECANCELED : 0;
}

TEST(slots_are_cleared_once)
{
	struct releases r = {};
	struct tasks *t = tasks__new(
		&(struct tasks_options){.inherit = true, .released = count_release, .context = &r});
	struct task_event end = task(EVENT_EXIT, 2000, 11, 11, 1);
	struct task *sampled;
	struct task_id first;

	assert_int_equal(tasks__add_target(t, 10), 0);
	/* a sample comes before the record of the fork */
	sampled = tasks__need(t, 11);
	assert_non_null(sampled);
	sampled->slots.samples = 7;
	sampled->slots.program.cgroup_next = 5;
	first = sampled->id;
	forks(t, 1000, 10, 11);
	assert_ptr_equal(tasks__get(t, first), sampled);
	assert_true(sampled->is_target);
	assert_int_equal(sampled->slots.samples, 7);

	assert_int_equal(tasks__exec(t, 11), 0);
	assert_int_equal(r.execed, 1);
	assert_int_equal(sampled->slots.samples, 7);
	assert_int_equal(sampled->slots.program.cgroup_next, 0);
	assert_null(tasks__get(t, first));
	assert_ptr_equal(tasks__get(t, sampled->id), sampled);

	sampled->slots.program.has_jit = true;
	assert_int_equal(tasks__exit(t, &end), -ECANCELED);
	assert_int_equal(r.samples, 7);
	assert_int_equal(sampled->slots.samples, 0);
	assert_false(sampled->slots.program.has_jit);
	assert_int_equal(tasks__exit(t, &end), 0); /* it has ended */
	assert_int_equal(r.exited, 1);
	assert_int_equal(tasks__exec(t, 99), 0); /* not in the table */

	/* what late records put there is released with the entry */
	sampled->slots.samples = 3;
	assert_int_equal(tasks__sweep(t, 10 * SECOND), 0);
	assert_int_equal(r.exited, 2);
	assert_int_equal(r.samples, 3);
	assert_null(tasks__find(t, 11));
	assert_non_null(tasks__find(t, 10));
	tasks__free(t);
}

/* The fork record of another process with the pid ends the life before it. */
TEST(a_pid_comes_back_without_an_exit)
{
	struct releases r = {};
	struct tasks *t = tasks__new(&(struct tasks_options){
		.everyone = true, .released = count_release, .context = &r});
	struct task_id first;
	struct task *task;

	forks(t, 1000, 10, 11);
	task = tasks__find(t, 11);
	assert_non_null(task);
	task->slots.samples = 7;
	first = task->id;
	forks(t, 2000, 10, 11);
	assert_null(tasks__get(t, first));
	assert_int_equal(r.exited, 1);
	assert_int_equal(r.samples, 7);
	assert_int_equal(task->slots.samples, 0);
	exits(t, 3000, 11, 11);
	forks(t, 4000, 10, 11);
	assert_int_equal(r.exited, 2);
	tasks__free(t);
}

static bool is_even(pid_t pid)
{
	return pid % 2 == 0;
}

TEST(ends_without_a_record_are_found)
{
	struct releases r = {};
	struct tasks *t = tasks__new(&(struct tasks_options){
		.everyone = true, .exists = is_even, .released = count_release, .context = &r});

	assert_int_equal(tasks__add_parent(t, 10, 1), 0);
	assert_int_equal(tasks__add_parent(t, 11, 1), 0);
	assert_int_equal(tasks__sweep(t, 20 * SECOND), 0);
	assert_int_equal(r.exited, 0); /* the record of its end may still come */
	assert_int_equal(tasks__sweep(t, 21 * SECOND), 0);
	assert_int_equal(r.exited, 1);
	assert_int_equal(r.gone, 1);
	assert_non_null(tasks__find(t, 11)); /* ... and others of its last ones */
	assert_int_equal(tasks__sweep(t, 24 * SECOND), 0);
	assert_null(tasks__find(t, 11));
	assert_non_null(tasks__find(t, 10));
	assert_int_equal(tasks__parent(t, 10), 1);
	tasks__free(t);
}

/* ... within ten seconds, those that only a sample has shown as well. */
TEST(the_end_of_an_unknown_process_is_found)
{
	struct releases r = {};
	struct tasks *t = tasks__new(&(struct tasks_options){
		.everyone = true, .exists = is_even, .released = count_release, .context = &r});
	uint64_t now = 20 * SECOND, seen;

	assert_int_equal(tasks__sweep(t, now), 0); /* a search: the next one is the last possible */
	assert_non_null(tasks__need(t, 10));
	assert_non_null(tasks__need(t, 11));
	seen = now;
	while (!r.exited && now < seen + 60 * SECOND) {
		now += SECOND;
		assert_int_equal(tasks__sweep(t, now), 0);
	}
	assert_int_equal(r.exited, 1);
	assert_in_range(now - seen, 2 * SECOND, 10 * SECOND);
	assert_int_equal(tasks__sweep(t, now + 3 * SECOND), 0);
	assert_null(tasks__find(t, 11));
	assert_non_null(tasks__find(t, 10));
	tasks__free(t);
}

TEST(unknown_processes_are_bounded)
{
	struct tasks *t = new_tasks(true, true, is_even);

	assert_null(tasks__need(t, 0));
	for (pid_t pid = 1; pid <= (pid_t)TASKS_UNKNOWN_MAX; pid++)
		assert_non_null(tasks__need(t, 2 * pid + 1));
	assert_null(tasks__need(t, 2));
	assert_non_null(tasks__need(t, 3)); /* it is there */
	/* a record makes one known, and there is room again */
	forks(t, SECOND, 1000, 3);
	assert_non_null(tasks__need(t, 2));
	assert_null(tasks__need(t, 4));
	assert_int_equal(tasks__sweep(t, 20 * SECOND), 0);
	assert_non_null(tasks__find(t, 5)); /* the record of its fork may still come */
	assert_int_equal(tasks__sweep(t, 21 * SECOND), 0);
	assert_int_equal(tasks__sweep(t, 24 * SECOND), 0);
	assert_null(tasks__find(t, 5));
	assert_non_null(tasks__need(t, 4));
	tasks__free(t);
}

TEST(nothing_at_all)
{
	struct tasks *t = new_tasks(false, true, NULL);

	assert_int_equal(count_living(t, 0), 0);
	exits(t, 100, 5, 5);
	assert_int_equal(tasks__parent(t, 5), 0);
	tasks__free(t);
	tasks__free(NULL);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
