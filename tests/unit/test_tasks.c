/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes are targets, and when: testdata/tasks.txt, whose words are the steps below. Here: many of them, and owners. */
#include "text_cases.h"
#include "live/tasks.h"

#define SECOND 1000000000ull

/* Of the running test. */
static struct tasks *t;
static struct task_id noted; /* of a task */
static pid_t existing;	     /* the process that the system has, also if its leader has ended */
static struct {
	unsigned int looks; /* at processes that have ended */
	unsigned int execed, exited, gone;
	uint32_t samples; /* in the slots, when they were released last */
} seen;

static bool exists(pid_t pid)
{
	seen.looks++;
	return pid == existing;
}

static int count_release(void *context, struct task *task, enum task_end how)
{
	seen.execed += how == TASK_EXECED;
	seen.exited += how != TASK_EXECED;
	seen.gone += how == TASK_GONE;
	seen.samples = task->slots.samples;
	return task->slots.program.has_jit ? -ECANCELED : 0;
}

static void given(struct tasks_options options)
{
	tasks__free(t);
	t = tasks__new(&options);
	assert_non_null(t);
}

static void end(void)
{
	tasks__free(t);
	t = NULL;
	existing = 0;
	memset(&seen, 0, sizeof(seen));
}

static void tear_down(void)
{
	end();
}

static size_t count_living(pid_t wanted)
{
	size_t count, found = 0;
	pid_t *pids;

	assert_int_equal(tasks__living_targets(t, &pids, &count), 0);
	for (size_t i = 0; i < count; i++)
		found += !wanted || pids[i] == wanted;
	free(pids);
	return found;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* "12" ns, "3s", "3s+1". */
static uint64_t read_time(char **words)
{
	char *word = text_word(words), *rest;
	uint64_t time = strtoull(word, &rest, 10);

	return *rest == 's' ? time * SECOND + strtoull(rest + 1, NULL, 10) : time;
}

static pid_t read_pid(char **words)
{
	return (pid_t)text_number(words, 10);
}

/* "TIME PARENT CHILD" of a process, behind a sweep; of a thread, or an end: "TIME PID TID". */
static int take_task_event(const char *name, char *words)
{
	struct task_event e = {.header = {.size = sizeof(e), .type = EVENT_FORK}};
	bool is_fork = !strcmp(name, "fork");

	e.header.time = read_time(&words);
	e.ppid = e.ptid = text_number(&words, 10);
	e.tid = text_number(&words, 10);
	e.pid = is_fork ? e.tid : e.ppid;
	if (is_fork)
		assert_int_equal(tasks__sweep(t, e.header.time), 0);
	return strcmp(name, "exit") ? tasks__fork(t, &e) : tasks__exit(t, &e);
}

static void put_task(FILE *out, pid_t pid)
{
	const struct task *task = tasks__find(t, pid);

	if (!task) {
		fprintf(out, "%d: none", pid);
		return;
	}
	fprintf(out, "%d: %s%u samples", pid, task->is_target ? "target " : "",
		task->slots.samples);
	if (task->slots.program.cgroup_next)
		fprintf(out, " cgroup %" PRIu64, task->slots.program.cgroup_next);
	fputs(task->slots.program.has_jit ? " JIT" : "", out);
	fputs(tasks__get(t, noted) == task ? " noted" : "", out);
}

/* Changes of one that a sample shows. */
static bool take_slot_step(const char *name, pid_t pid, char *words)
{
	struct task *task = tasks__need(t, pid);

	if (!task)
		return false;
	if (!strcmp(name, "sample"))
		task->slots.samples = (uint32_t)text_number(&words, 10);
	else if (!strcmp(name, "cgroup"))
		task->slots.program.cgroup_next = (uint32_t)text_number(&words, 10);
	else if (!strcmp(name, "jit"))
		task->slots.program.has_jit = true;
	else if (!strcmp(name, "note"))
		noted = task->id;
	else
		return false;
	return true;
}

static bool take_question(FILE *out, const char *name, pid_t pid, char *words)
{
	if (!strcmp(name, "is-target"))
		fputs(tasks__is_target(t, pid, read_time(&words)) ? "yes" : "no", out);
	else if (!strcmp(name, "parent-of"))
		fprintf(out, "%d", tasks__parent(t, pid));
	else if (!strcmp(name, "living"))
		fprintf(out, "%zu", count_living(pid));
	else if (!strcmp(name, "task"))
		put_task(out, pid);
	else if (!strcmp(name, "need-program"))
		fputs(tasks__need_program(t, pid, read_time(&words)) ? "there" : "none", out);
	else if (!strcmp(name, "looks"))
		fprintf(out, "%u", seen.looks);
	else if (!strcmp(name, "released"))
		fprintf(out, "%u at exec, %u at exit (%u gone), last %u samples", seen.execed,
			seen.exited, seen.gone, seen.samples);
	else
		return false;
	return true;
}

static bool take_step(FILE *out, const char *name, char *words)
{
	int err = 0;
	pid_t pid;

	if (!strcmp(name, "new")) {
		given((struct tasks_options){.inherit = text_has(words, "inherit"),
					     .everyone = text_has(words, "everyone"),
					     .exists = text_has(words, "exists") ? exists : NULL,
					     .released = count_release});
		return true;
	}
	if (!strcmp(name, "sweep")) {
		err = tasks__sweep(t, read_time(&words));
	} else if (!strcmp(name, "fork") || !strcmp(name, "thread") || !strcmp(name, "exit")) {
		err = take_task_event(name, words);
	} else {
		pid = read_pid(&words);
		if (!strcmp(name, "exists"))
			existing = pid;
		else if (!strcmp(name, "target"))
			err = tasks__add_target(t, pid);
		else if (!strcmp(name, "parent"))
			err = tasks__add_parent(t, pid, read_pid(&words));
		else if (!strcmp(name, "exec"))
			err = tasks__exec(t, pid, read_time(&words));
		else
			return take_question(out, name, pid, words) ||
			       take_slot_step(name, pid, words);
	}
	if (err)
		text_put_error(out, err);
	return true;
}

static void play(FILE *out, char *input)
{
	text_run_steps(out, input, take_step);
}

static const struct text_verb verbs[] = {{"play", play}, {}};

TEXT_TABLE("tasks", verbs, NULL, end);

/* ---- many, and owners ------------------------------------------------------------------------- */

/* In C: process `pid` of the parent 10. */
static void fork_and_end(uint64_t time, pid_t pid)
{
	const struct task_event fork = {
		{.time = time}, .pid = pid, .tid = pid, .ppid = 10, .ptid = 10};
	const struct task_event end = {{.time = time + SECOND / 2000}, .pid = pid, .tid = pid};

	assert_int_equal(tasks__sweep(t, time), 0);
	assert_int_equal(tasks__fork(t, &fork), 0);
	assert_true(tasks__is_target(t, pid, time));
	assert_int_equal(tasks__exit(t, &end), 0);
}

TEST(many_short_lives_take_limited_memory)
{
	uint64_t now = SECOND;

	given((struct tasks_options){.inherit = true});
	assert_int_equal(tasks__add_target(t, 10), 0);
	for (pid_t i = 0; i < 200000; i++, now += SECOND / 1000)
		fork_and_end(now, 100 + i % 30000);
	/* those of the last two seconds, up to a sweep's interval, and the first target */
	assert_in_range(count_living(0), 1900, 3100);
}

TEST(unknown_processes_are_bounded)
{
	const struct task_event fork = {
		{.time = SECOND}, .pid = 3, .tid = 3, .ppid = 1000, .ptid = 1000};

	given((struct tasks_options){.everyone = true, .inherit = true, .exists = exists});
	assert_null(tasks__need(t, 0));
	for (pid_t pid = 1; pid <= (pid_t)TASKS_UNKNOWN_MAX; pid++)
		assert_non_null(tasks__need(t, 2 * pid + 1));
	assert_null(tasks__need(t, 2));
	assert_non_null(tasks__need(t, 3)); /* it is there */
	/* a record makes one known, and there is room again */
	assert_int_equal(tasks__fork(t, &fork), 0);
	assert_non_null(tasks__need(t, 2));
	assert_null(tasks__need(t, 4));
	assert_int_equal(tasks__sweep(t, 20 * SECOND), 0);
	assert_non_null(tasks__find(t, 5)); /* the record of its fork may still come */
	assert_int_equal(tasks__sweep(t, 21 * SECOND), 0);
	assert_int_equal(tasks__sweep(t, 24 * SECOND), 0);
	assert_null(tasks__find(t, 5));
	assert_non_null(tasks__need(t, 4));
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

/* Within ten seconds, those that only a sample has shown as well. */
TEST(the_end_of_an_unknown_process_is_found)
{
	uint64_t now = 20 * SECOND, since;

	existing = 10;
	given((struct tasks_options){
		.everyone = true, .exists = exists, .released = count_release});
	assert_int_equal(tasks__sweep(t, now), 0); /* a search: the next one is the last possible */
	assert_non_null(tasks__need(t, 10));
	assert_non_null(tasks__need(t, 11));
	since = now;
	while (!seen.exited && now < since + 60 * SECOND) {
		now += SECOND;
		assert_int_equal(tasks__sweep(t, now), 0);
	}
	assert_int_equal(seen.exited, 1);
	assert_in_range(now - since, 2 * SECOND, 10 * SECOND);
	assert_int_equal(tasks__sweep(t, now + 3 * SECOND), 0);
	assert_null(tasks__find(t, 11));
	assert_non_null(tasks__find(t, 10));
}

EACH_TEST_WITH(NULL, tear_down);
