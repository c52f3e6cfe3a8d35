/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and control groups of processes: which are looked at when, and what a damaged text says. */
#include "unit.h"
#include "base/proc_task.h"
#include "base/vec.h"
#include "live/parts/memory.h"
#include "live/proc/process_facts.h"

#define S	     1000000000ull
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- events ---------------------------------------------------------------------------------- */

/* Of the running test. */
static struct reported {
	VEC(struct memory_event) memory;
	VEC(uint32_t) cgroups; /* pids */
	char path[EVENT_PATH_MAX];
	int answer;
} reported;

static int take(void *context, struct event_header *event)
{
	assert_int_equal(event->flags & EVENT_FROM_PROC, EVENT_FROM_PROC);
	assert_int_equal(event->size % EVENT_ALIGN, 0);
	if (event->type == EVENT_MEMORY) {
		assert_int_equal(vec_push(&reported.memory, *(struct memory_event *)event), 0);
	} else {
		const struct cgroup_event *cgroup = (void *)event;

		assert_int_equal(event->type, EVENT_CGROUP);
		assert_int_equal(vec_push(&reported.cgroups, cgroup->pid), 0);
		snprintf(reported.path, sizeof(reported.path), "%s", cgroup->path);
	}
	return reported.answer;
}

/* The part of the running test, with a table of its own. */
static struct {
	struct tasks *tasks;
	struct pid_list always;
	struct live_part part;
} w;

static bool process_exists(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

static void new_watch(bool groups_only)
{
	const struct memory_options options = {
		.tasks = tasks__new(&(struct tasks_options){.exists = process_exists}),
		.groups_only = groups_only,
		.always = &w.always,
		.push = take};

	assert_non_null(options.tasks);
	w.tasks = options.tasks;
	assert_int_equal(memory_part__new(&options, &w.part), 0);
}

static void forget_watch(void)
{
	if (w.tasks)
		w.part.free(w.part.object);
	tasks__free(w.tasks);
	memset(&w, 0, sizeof(w));
	vec_free(&reported.memory);
	vec_free(&reported.cgroups);
	reported = (struct reported){};
}

static void sampled(pid_t pid)
{
	struct sample_event sample = {.tgid = (uint32_t)pid};
	struct task *task = tasks__need(w.tasks, pid);

	if (task)
		assert_int_equal(w.part.sampled(w.part.object, task, &sample), 0);
}

static void ends(pid_t pid)
{
	struct task_event event = {.pid = (uint32_t)pid, .tid = (uint32_t)pid};

	assert_int_equal(tasks__exit(w.tasks, &event), 0);
}

static int look(uint64_t time)
{
	return w.part.second(w.part.object, time);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(this_program_is_looked_at)
{
	const size_t more = 64 << 20;
	char *memory;

	new_watch(false);
	assert_int_equal(look(5 * S), 0);
	assert_int_equal(reported.memory.count, 1);
	assert_int_equal(reported.memory.data[0].pid, getpid());
	assert_int_equal(reported.memory.data[0].header.flags, EVENT_FROM_PROC | EVENT_RECORDER);
	assert_true(reported.memory.data[0].header.time == 5 * S);
	assert_int_equal(reported.cgroups.count, 1);
	memory = malloc(more);
	assert_non_null(memory);
	memset(memory, 1, more);
	assert_int_equal(look(6 * S), 0);
	assert_int_equal(reported.memory.count, 2);
	assert_true(reported.memory.data[1].resident > reported.memory.data[0].resident + more / 2);
	assert_int_equal(reported.cgroups.count, 1); /* not every time */
	assert_int_equal(memory[more / 2], 1);
	free(memory);
}

/* Processes that ran since the last time, and requested ones; each once, its control group rarely. */
TEST(those_that_ran)
{
	pid_t one = start_child(), two = start_child(), always[] = {two};

	new_watch(false);
	for (int i = 0; i < 3; i++)
		sampled(one);
	sampled(getpid());
	sampled(2);	     /* a kernel thread, or no process */
	sampled(0x3ffffff0); /* no process */
	w.always.data = always;
	w.always.count = 1;
	assert_int_equal(look(5 * S), 0);
	w.always.count = 0;
	assert_int_equal(reported.memory.count, 3);
	assert_int_equal(reported.memory.data[1].pid, two);
	assert_int_equal(reported.memory.data[1].header.flags, EVENT_FROM_PROC);
	assert_int_equal(reported.memory.data[2].pid, one);
	assert_int_equal(reported.cgroups.count, 3);
	assert_int_equal(look(6 * S), 0);
	assert_int_equal(reported.memory.count, 4); /* no process ran */

	sampled(one);
	assert_int_equal(look(7 * S), 0);
	assert_int_equal(reported.memory.count, 6);
	assert_int_equal(reported.cgroups.count, 3);
	assert_int_equal(tasks__exec(w.tasks, one, 1), 0);
	sampled(one);
	assert_int_equal(look(8 * S), 0);
	assert_int_equal(reported.cgroups.count, 4);
	sampled(one);
	assert_int_equal(look(8 * S + WATCH_CGROUP_NS), 0);
	assert_int_equal(reported.cgroups.count, 4 + 2);

	/* a number that is used again is another process */
	reported.memory.count = reported.cgroups.count = 0;
	sampled(one);
	ends(one);
	ends(one);
	assert_int_equal(look(30 * S), 0);
	assert_int_equal(reported.memory.count, 1);
	sampled(one);
	assert_int_equal(look(31 * S), 0);
	assert_int_equal(reported.memory.count, 3);
	assert_int_equal(reported.cgroups.count, 1);

	reported.answer = -ECANCELED;
	assert_int_equal(look(32 * S), -ECANCELED);
	end_child(one);
	end_child(two);
}

/* With control groups alone nothing is read in between, and they have the others' turns. */
TEST(groups_only)
{
	pid_t child = start_child();

	new_watch(true);
	for (uint64_t i = 0; i < 4; i++) {
		sampled(child);
		assert_int_equal(look((5 + i) * S), 0);
		assert_int_equal(reported.cgroups.count, 2);
		assert_int_equal(reported.memory.count, 2);
	}
	assert_int_equal(tasks__exec(w.tasks, child, 1), 0);
	sampled(child);
	assert_int_equal(look(10 * S), 0);
	assert_int_equal(reported.cgroups.count, 3);
	assert_int_equal(reported.cgroups.data[2], child);
	sampled(child);
	assert_int_equal(look(10 * S + WATCH_CGROUP_NS), 0);
	assert_int_equal(reported.cgroups.count, 5);
	end_child(child);
}

TEST(the_busiest_of_many)
{
	pid_t children[WATCH_MOST + 8];

	new_watch(false);
	for (size_t i = 0; i < COUNT(children); i++) {
		children[i] = start_child();
		for (size_t k = 0; k <= i; k++)
			sampled(children[i]);
	}
	assert_int_equal(look(5 * S), 0);
	assert_int_equal(reported.memory.count, 1 + WATCH_MOST);
	for (size_t i = 0; i < WATCH_MOST; i++)
		assert_int_equal(reported.memory.data[1 + i].pid,
				 children[COUNT(children) - 1 - i]);
	for (size_t i = 0; i < COUNT(children); i++)
		end_child(children[i]);
}

/* Many that end without a word: it stays small, and goes on. */
TEST(a_million_processes)
{
	uint64_t now = 0;

	new_watch(false);
	for (pid_t pid = 1 << 22; pid < (1 << 22) + 1000000; pid++) {
		sampled(pid);
		if (pid % 3 == 0)
			ends(pid);
		if (pid % 50000)
			continue;
		assert_int_equal(look(S), 0);
		for (int search = 0; search < 2; search++) {
			now += 10 * S;
			assert_int_equal(tasks__sweep(w.tasks, now), 0);
		}
		assert_int_equal(tasks__sweep(w.tasks, now + 3 * S), 0);
		assert_null(tasks__find(w.tasks, pid));
		assert_non_null(tasks__need(w.tasks, pid));
	}
	assert_true(reported.memory.count >= 10);
	for (size_t i = 0; i < reported.memory.count; i++)
		assert_int_equal(reported.memory.data[i].pid, getpid());
}

/* Files of /proc that say something else. */
TEST(odd_texts)
{
	static const struct {
		const char *text;
		uint64_t pages;
	} statms[] = {{"9 3 1 1 0 1 0\n", 3},
		      {"9 3", 3},
		      {"9", 0},
		      {"", 0},
		      {"9 0 0\n", 0},
		      {"9 x", 0},
		      {" ", 0},
		      {"9 18446744073709551615 1\n", 0},
		      {"9 9223372036854775807 1\n", 0}};
	char path[] = "/tmp/memory_part.XXXXXX";
	int fd = mkstemp(path);
	char big[20000];

	assert_true(fd >= 0);
	for (size_t i = 0; i < COUNT(statms); i++) {
		size_t size = strlen(statms[i].text);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, statms[i].text, size, 0), size);
		reported.memory.count = 0;
		assert_int_equal(process_facts__memory(AT_FDCWD, path, 7, 0, S, take, NULL),
				 statms[i].pages > 0);
		assert_int_equal(reported.memory.count, statms[i].pages > 0);
		if (statms[i].pages)
			assert_int_equal(reported.memory.data[0].resident,
					 statms[i].pages * sysconf(_SC_PAGESIZE));
	}
	/* a path longer than any event's, and one beyond what is read */
	memset(big, 'x', sizeof(big));
	memcpy(big, "4:cpu:/short\n0::/", 17);
	assert_int_equal(pwrite(fd, big, sizeof(big), 0), sizeof(big));
	assert_int_equal(process_facts__cgroup(AT_FDCWD, path, 7, S, take, NULL), 1);
	assert_string_equal(reported.path, "/short");
	memset(big, 'x', sizeof(big));
	memcpy(big, "0::/", 4);
	big[EVENT_PATH_MAX + 3] = '\n';
	assert_int_equal(pwrite(fd, big, sizeof(big), 0), sizeof(big));
	assert_int_equal(process_facts__cgroup(AT_FDCWD, path, 7, S, take, NULL), 0);
	assert_int_equal(process_facts__cgroup(AT_FDCWD, "/nowhere", 7, S, take, NULL), 0);
	close(fd);
	unlink(path);
}

EACH_TEST_WITH(NULL, forget_watch);
