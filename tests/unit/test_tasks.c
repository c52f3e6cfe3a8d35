/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes are targets, and when: forks, reused pids, ends in any order, freed entries; and slots. */
#include "unit.h"
#include "story_text.h"
#include "live/tasks.h"

#define SECOND 1000000000ull

static struct tasks *t; /* of the running test */

static void given(struct tasks_options options)
{
	tasks__free(t);
	t = tasks__new(&options);
	assert_non_null(t);
}

/* Process 10 and its descendants. */
static void given_family(bool (*exists)(pid_t pid))
{
	given((struct tasks_options){.inherit = true, .exists = exists});
	assert_int_equal(tasks__add_target(t, 10), 0);
}

static int tear_down(void **state)
{
	tasks__free(t);
	t = NULL;
	return 0;
}

/* "12" ns, "3s". */
static uint64_t read_time(const char *text)
{
	char *end;
	uint64_t time = strtoull(text, &end, 10);

	return *end == 's' ? time * SECOND : time;
}

/* "TIME fork PARENT CHILD, TIME thread PID TID, TIME exit PID TID": each task's fork comes behind a sweep. */
static void play(const char *story)
{
	each_item (at, story) {
		struct task_event e = {.header.size = sizeof(e)};
		char time[32], what[8];
		unsigned int first, second;

		assert_int_equal(sscanf(at, "%31s %7s %u %u", time, what, &first, &second), 4);
		e.header.time = read_time(time);
		e.header.type = !strcmp(what, "exit") ? EVENT_EXIT : EVENT_FORK;
		e.pid = strcmp(what, "fork") ? first : second;
		e.tid = second;
		e.ppid = e.ptid = first;
		if (!strcmp(what, "fork"))
			assert_int_equal(tasks__sweep(t, e.header.time), 0);
		assert_int_equal((e.header.type == EVENT_EXIT ? tasks__exit : tasks__fork)(t, &e),
				 0);
	}
}

static void forks(uint64_t time, pid_t parent, pid_t child)
{
	char story[64];

	snprintf(story, sizeof(story), "%" PRIu64 " fork %d %d", time, parent, child);
	play(story);
}

/* "PID TIME yes, PID TIME no": whether it is a target then. */
static void assert_targets(const char *expected)
{
	each_item (at, expected) {
		char time[32], answer[4];
		unsigned int pid;

		assert_int_equal(sscanf(at, "%u %31s %3[a-z]", &pid, time, answer), 3);
		if (tasks__is_target(t, pid, read_time(time)) != !strcmp(answer, "yes"))
			fail_msg("not so: %s", at);
	}
}

static size_t count_living(pid_t wanted)
{
	size_t count, seen = 0;
	pid_t *pids;

	assert_int_equal(tasks__living_targets(t, &pids, &count), 0);
	for (size_t i = 0; i < count; i++)
		seen += !wanted || pids[i] == wanted;
	free(pids);
	return seen;
}

TEST(children_of_targets_are_targets_from_their_birth_on)
{
	given_family(NULL);
	assert_targets("10 0 yes, 11 0 no");
	play("100 fork 10 11, 200 fork 11 12, 300 fork 99 13");
	assert_targets("11 99 no, 11 100 yes, 12 18446744073709551614 yes, 13 300 no");
	assert_int_equal(tasks__parent(t, 12), 11);
	assert_int_equal(tasks__parent(t, 13), 0);
	assert_int_equal(count_living(0), 3);
}

TEST(without_inherit_children_are_none)
{
	given((struct tasks_options){});
	tasks__add_target(t, 10);
	play("100 fork 10 11");
	assert_targets("10 100 yes, 11 100 no");
	assert_int_equal(count_living(0), 1);
}

TEST(everyone_is_a_target_and_has_a_parent)
{
	given((struct tasks_options){.everyone = true, .inherit = true});
	assert_targets("77 5 yes");
	assert_int_equal(tasks__add_parent(t, 77, 70), 0);
	play("100 fork 77 78");
	assert_int_equal(tasks__parent(t, 77), 70);
	assert_int_equal(tasks__parent(t, 78), 77);
	/* of processes without a fork event, as of those with one */
	assert_int_equal(tasks__add_parent(t, 78, 71), 0);
	assert_int_equal(tasks__parent(t, 78), 71);
}

TEST(reported_parents_change_no_membership)
{
	given((struct tasks_options){.inherit = true});
	assert_int_equal(tasks__add_parent(t, 10, 1), 0);
	assert_targets("10 5 no");
	assert_int_equal(tasks__add_target(t, 10), 0);
	assert_int_equal(tasks__parent(t, 10), 1);
	assert_int_equal(tasks__add_parent(t, 10, 2), 0);
	assert_targets("10 5 yes");
	assert_int_equal(tasks__parent(t, 10), 2);
}

TEST(a_reused_pid_of_a_stranger_is_no_target)
{
	given_family(NULL);
	play("100 fork 10 11, 200 exit 11 11, 300 fork 99 11");
	/* records of its first life still count */
	assert_targets("11 150 yes, 11 299 yes, 11 300 no");
	/* and what the stranger forks is none of ours */
	play("400 fork 11 12");
	assert_targets("12 400 no");
	assert_int_equal(count_living(11), 0);
}

TEST(a_reused_pid_within_the_family_is_a_target_again)
{
	given_family(NULL);
	play("100 fork 10 11, 200 exit 11 11, 300 fork 99 11, 400 exit 11 11, 500 fork 10 11");
	assert_targets("11 350 no, 11 500 yes");
	assert_int_equal(count_living(11), 1);
	/* the ends of its former lives do not end this one */
	play("10s fork 10 12");
	assert_targets("11 10s yes");
	assert_int_equal(tasks__parent(t, 11), 10);
}

TEST(an_exit_before_the_fork_does_not_end_a_life)
{
	given_family(NULL);
	play("500 fork 10 11, 400 exit 11 11, 10s fork 10 12");
	assert_targets("11 10s yes");
}

TEST(ended_processes_are_forgotten_after_a_while)
{
	given_family(NULL);
	play("100 fork 10 11, 100 fork 10 12, 1s exit 11 11, 2s fork 10 13");
	assert_targets("11 2s yes"); /* a late record */
	assert_int_equal(count_living(0), 4);
	play("4s fork 10 14");
	assert_targets("11 1s no, 12 4s yes");
	assert_int_equal(tasks__parent(t, 11), 0);
	assert_int_equal(count_living(0), 4);
	assert_int_equal(count_living(11), 0);
}

TEST(threads_are_no_processes)
{
	given_family(NULL);
	play("100 thread 10 11");
	assert_targets("11 100 no");
	play("200 exit 10 11, 10s fork 10 12, 20s fork 10 13");
	assert_targets("10 20s yes");
	assert_int_equal(count_living(0), 3);
}

static bool leader_gone_threads_left; /* what the system says of process 11 */

static bool exists(pid_t pid)
{
	return pid == 11 && leader_gone_threads_left;
}

TEST(a_process_outlives_its_leader)
{
	leader_gone_threads_left = true;
	given_family(exists);
	play("100 fork 10 11, 200 exit 11 11");
	for (uint64_t s = 3; s < 30; s += 3) {
		forks(s * SECOND, 11, 100 + s);
		assert_true(tasks__is_target(t, 11, s * SECOND));
		assert_true(tasks__is_target(t, 100 + s, s * SECOND));
		assert_int_equal(count_living(11), 1);
	}
	leader_gone_threads_left = false;
	play("40s fork 10 200");
	assert_targets("11 30s no");

	/* the same number in a stranger's hands does not keep it */
	leader_gone_threads_left = true;
	play("41s fork 10 11, 42s exit 11 11, 43s fork 99 11, 60s fork 10 201");
	assert_targets("11 42s no");
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
	given((struct tasks_options){.everyone = true, .inherit = true, .exists = count_looks});
	looks = 0;
	play("1s fork 1 11, 1s fork 1 12, 1000000001 thread 12 20, "
	     "1000000002 exit 11 11, 1000000002 exit 12 12");
	assert_int_equal(tasks__sweep(t, 5 * SECOND), 0);
	assert_int_equal(looks, 1);
	assert_null(tasks__find(t, 11));
	assert_non_null(tasks__find(t, 12));

	/* the next process with that number has no threads, and one that was there before may have some */
	play("6s fork 1 12, 7s exit 12 12");
	assert_int_equal(tasks__add_parent(t, 13, 1), 0);
	play("7s exit 13 13");
	assert_int_equal(tasks__sweep(t, 9 * SECOND + 2), 0);
	assert_int_equal(looks, 2);
	assert_null(tasks__find(t, 12));
	assert_null(tasks__find(t, 13));
}

/* An owner that stays the same is read again after 1, 2, 4, 8 and then 16 seconds. */
TEST(an_unchanged_owner_is_read_ever_less_often)
{
	uint64_t owner, reads = 0, until = 0;
	struct task *task;

	given((struct tasks_options){.everyone = true, .inherit = true});
	task = tasks__need(t, getpid());
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
}

TEST(many_short_lives_take_limited_memory)
{
	uint64_t now = SECOND;

	given_family(NULL);
	for (pid_t i = 0; i < 200000; i++, now += SECOND / 1000) {
		pid_t pid = 100 + i % 30000;
		struct task_event end = {{.time = now + SECOND / 2000}, .pid = pid, .tid = pid};

		forks(now, 10, pid);
		assert_true(tasks__is_target(t, pid, now));
		assert_int_equal(tasks__exit(t, &end), 0);
	}
	/* those of the last two seconds, up to a sweep's interval, and the first target */
	assert_in_range(count_living(0), 1900, 3100);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static struct releases {
	unsigned int execed, exited, gone;
	uint32_t samples; /* in the slots, when they were released last */
} r;

static int count_release(void *context, struct task *task, enum task_end how)
{
	r.execed += how == TASK_EXECED;
	r.exited += how != TASK_EXECED;
	r.gone += how == TASK_GONE;
	r.samples = task->slots.samples;
	return task->slots.program.has_jit ? -ECANCELED : 0;
}

static bool is_even(pid_t pid)
{
	return pid % 2 == 0;
}

/* Everyone; even pids exist. */
static void given_releases(bool (*exists)(pid_t pid))
{
	r = (struct releases){};
	given((struct tasks_options){
		.everyone = true, .exists = exists, .released = count_release});
}

TEST(slots_are_released_once_at_exec_and_exit)
{
	struct task_event end = {{.time = 2000}, .pid = 11, .tid = 11};
	struct task *sampled;
	struct task_id first;

	r = (struct releases){};
	given((struct tasks_options){.inherit = true, .released = count_release});
	assert_int_equal(tasks__add_target(t, 10), 0);
	/* a sample comes before the record of the fork */
	sampled = tasks__need(t, 11);
	assert_non_null(sampled);
	sampled->slots.samples = 7;
	sampled->slots.program.cgroup_next = 5;
	first = sampled->id;
	play("1000 fork 10 11");
	assert_ptr_equal(tasks__get(t, first), sampled);
	assert_true(sampled->is_target);
	assert_int_equal(sampled->slots.samples, 7);

	assert_int_equal(tasks__exec(t, 11, 2000), 0);
	assert_null(tasks__need_program(t, 11, 1999)); /* the program before */
	assert_ptr_equal(tasks__need_program(t, 11, 2000), sampled);
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
	assert_int_equal(tasks__exec(t, 99, 1), 0); /* not in the table */

	/* what late records put there is released with the entry */
	sampled->slots.samples = 3;
	assert_int_equal(tasks__sweep(t, 10 * SECOND), 0);
	assert_int_equal(r.exited, 2);
	assert_int_equal(r.samples, 3);
	assert_null(tasks__find(t, 11));
	assert_non_null(tasks__find(t, 10));
}

TEST(a_fork_with_the_same_pid_ends_the_life_before)
{
	struct task_id first;
	struct task *task;

	given_releases(NULL);
	play("1000 fork 10 11");
	task = tasks__find(t, 11);
	assert_non_null(task);
	task->slots.samples = 7;
	first = task->id;
	play("2000 fork 10 11");
	assert_null(tasks__get(t, first));
	assert_int_equal(r.exited, 1);
	assert_int_equal(r.samples, 7);
	assert_int_equal(task->slots.samples, 0);
	play("3000 exit 11 11, 4000 fork 10 11");
	assert_int_equal(r.exited, 2);
}

TEST(ends_without_a_record_are_found)
{
	given_releases(is_even);
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
}

/* ... within ten seconds, those that only a sample has shown as well. */
TEST(the_end_of_an_unknown_process_is_found)
{
	uint64_t now = 20 * SECOND, seen;

	given_releases(is_even);
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
}

TEST(unknown_processes_are_bounded)
{
	given((struct tasks_options){.everyone = true, .inherit = true, .exists = is_even});
	assert_null(tasks__need(t, 0));
	for (pid_t pid = 1; pid <= (pid_t)TASKS_UNKNOWN_MAX; pid++)
		assert_non_null(tasks__need(t, 2 * pid + 1));
	assert_null(tasks__need(t, 2));
	assert_non_null(tasks__need(t, 3)); /* it is there */
	/* a record makes one known, and there is room again */
	play("1s fork 1000 3");
	assert_non_null(tasks__need(t, 2));
	assert_null(tasks__need(t, 4));
	assert_int_equal(tasks__sweep(t, 20 * SECOND), 0);
	assert_non_null(tasks__find(t, 5)); /* the record of its fork may still come */
	assert_int_equal(tasks__sweep(t, 21 * SECOND), 0);
	assert_int_equal(tasks__sweep(t, 24 * SECOND), 0);
	assert_null(tasks__find(t, 5));
	assert_non_null(tasks__need(t, 4));
}

TEST(an_exit_of_an_unknown_process_is_ignored)
{
	given((struct tasks_options){.inherit = true});
	assert_int_equal(count_living(0), 0);
	play("100 exit 5 5");
	assert_int_equal(tasks__parent(t, 5), 0);
	tasks__free(NULL);
}

EACH_TEST_WITH(NULL, tear_down);
