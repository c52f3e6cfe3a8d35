/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and control groups of processes: which are looked at when, and what a damaged text says. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc_parse.h"
#include "base/vec.h"
#include "procfs/process_facts.h"
#include "procfs/process_watch.h"

#define S	     1000000000ull
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- the text -------------------------------------------------------------------------------- */

static void the_right_hierarchy(void **state)
{
	static const struct {
		const char *text, *path;
	} cases[] = {
		{"0::/user.slice/one\n", "/user.slice/one"},
		{"0::/\n", "/"},
		{"0::/gone (deleted)\n", "/gone"},
		{"0::/../..\n", "/../.."},
		{"0::/with:colons:in it\n", "/with:colons:in it"},
		/* the unified one, unless it is in the root of that */
		{"5:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n", "/c"},
		{"5:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/\n", "/a"},
		{"5:cpuset:/x\n3:memory:/y\n1:name=systemd:/b\n0::/\n", "/b"},
		{"5:cpuset:/x\n3:memory:/y\n", NULL},
		{"4:cpu:/\n0::/\n", "/"},
		{"4:cpuacct,cpu:/z\n", "/z"},
		{"4:cpus:/z\n", NULL},
		/* what is cut off is not believed */
		{"4:cpu:/whole\n0::/cut of", "/whole"},
		{"", NULL},
		{"\n\n", NULL},
		{"0:\n", NULL},
		{"0::\n", NULL},
		{"0::relative\n", NULL},
		{"::/x\n", "/x"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t length = strlen(cases[i].text), size = 0;
		char *text = malloc(length ? length : 1); /* for ASan to guard */
		const char *path;

		memcpy(text, cases[i].text, length);
		path = proc_parse_cgroup(text, length, &size);
		if (cases[i].path) {
			assert_non_null(path);
			assert_int_equal(size, strlen(cases[i].path));
			assert_memory_equal(path, cases[i].path, size);
		} else {
			assert_null(path);
		}
		free(text);
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

struct told {
	VEC(struct memory_event) memory;
	VEC(uint32_t) cgroups; /* pids */
	char path[EVENT_PATH_MAX];
	int answer;
};

static int take(void *context, struct event_header *event)
{
	struct told *told = context;

	assert_int_equal(event->flags & EVENT_FROM_PROC, EVENT_FROM_PROC);
	assert_int_equal(event->size % EVENT_ALIGN, 0);
	if (event->type == EVENT_MEMORY) {
		assert_int_equal(vec_push(&told->memory, *(struct memory_event *)event), 0);
	} else {
		const struct cgroup_event *cgroup = (void *)event;

		assert_int_equal(event->type, EVENT_CGROUP);
		assert_int_equal(vec_push(&told->cgroups, cgroup->pid), 0);
		snprintf(told->path, sizeof(told->path), "%s", cgroup->path);
	}
	return told->answer;
}

static void forget_told(struct told *told)
{
	vec_free(&told->memory);
	vec_free(&told->cgroups);
}

static struct process_watch *new_watch(void)
{
	struct process_watch *w = NULL;

	assert_int_equal(process_watch__new(false, &w), 0);
	return w;
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

static void this_program_is_looked_at(void **state)
{
	struct process_watch *w = new_watch();
	const size_t more = 64 << 20;
	struct told told = {};
	char *memory;

	(void)state;
	assert_int_equal(process_watch__look(w, NULL, 0, 5 * S, take, &told), 0);
	assert_int_equal(told.memory.count, 1);
	assert_int_equal(told.memory.data[0].pid, getpid());
	assert_int_equal(told.memory.data[0].header.flags, EVENT_FROM_PROC | EVENT_RECORDER);
	assert_true(told.memory.data[0].header.time == 5 * S);
	assert_int_equal(told.cgroups.count, 1);
	memory = malloc(more);
	assert_non_null(memory);
	memset(memory, 1, more);
	assert_int_equal(process_watch__look(w, NULL, 0, 6 * S, take, &told), 0);
	assert_int_equal(told.memory.count, 2);
	assert_true(told.memory.data[1].resident > told.memory.data[0].resident + more / 2);
	assert_int_equal(told.cgroups.count, 1); /* not every time */
	assert_int_equal(memory[more / 2], 1);
	free(memory);
	forget_told(&told);
	process_watch__free(w);
}

/* Those that ran since the last time, and those that are asked for; each once, its control group rarely. */
static void those_that_ran(void **state)
{
	pid_t one = start_child(), two = start_child(), asked[] = {two};
	struct process_watch *w = new_watch();
	struct told told = {};

	(void)state;
	for (int i = 0; i < 3; i++)
		process_watch__sampled(w, one);
	process_watch__sampled(w, getpid());
	process_watch__sampled(w, 2);	       /* a kernel thread, or nobody */
	process_watch__sampled(w, 0x3ffffff0); /* nobody */
	assert_int_equal(process_watch__look(w, asked, 1, 5 * S, take, &told), 0);
	assert_int_equal(told.memory.count, 3);
	assert_int_equal(told.memory.data[1].pid, two);
	assert_int_equal(told.memory.data[1].header.flags, EVENT_FROM_PROC);
	assert_int_equal(told.memory.data[2].pid, one);
	assert_int_equal(told.cgroups.count, 3);
	assert_int_equal(process_watch__look(w, NULL, 0, 6 * S, take, &told), 0);
	assert_int_equal(told.memory.count, 4); /* nobody ran */

	process_watch__sampled(w, one);
	assert_int_equal(process_watch__look(w, NULL, 0, 7 * S, take, &told), 0);
	assert_int_equal(told.memory.count, 6);
	assert_int_equal(told.cgroups.count, 3);
	process_watch__exec(w, one);
	process_watch__sampled(w, one);
	assert_int_equal(process_watch__look(w, NULL, 0, 8 * S, take, &told), 0);
	assert_int_equal(told.cgroups.count, 4);
	process_watch__sampled(w, one);
	assert_int_equal(process_watch__look(w, NULL, 0, 8 * S + WATCH_CGROUP_NS, take, &told), 0);
	assert_int_equal(told.cgroups.count, 4 + 2);

	/* a number that is used again is another process */
	told.memory.count = told.cgroups.count = 0;
	process_watch__sampled(w, one);
	process_watch__forget(w, one);
	process_watch__forget(w, one);
	assert_int_equal(process_watch__look(w, NULL, 0, 30 * S, take, &told), 0);
	assert_int_equal(told.memory.count, 1);
	process_watch__sampled(w, one);
	assert_int_equal(process_watch__look(w, NULL, 0, 31 * S, take, &told), 0);
	assert_int_equal(told.memory.count, 3);
	assert_int_equal(told.cgroups.count, 1);

	told.answer = -ECANCELED;
	assert_int_equal(process_watch__look(w, NULL, 0, 32 * S, take, &told), -ECANCELED);
	end_child(one);
	end_child(two);
	forget_told(&told);
	process_watch__free(w);
}

/* Who asks for control groups alone has nothing read in between, and has the others' turns. */
static void groups_only(void **state)
{
	pid_t child = start_child();
	struct process_watch *w = NULL;
	struct told told = {};

	(void)state;
	assert_int_equal(process_watch__new(true, &w), 0);
	for (uint64_t i = 0; i < 4; i++) {
		process_watch__sampled(w, child);
		assert_int_equal(process_watch__look(w, NULL, 0, (5 + i) * S, take, &told), 0);
		assert_int_equal(told.cgroups.count, 2);
		assert_int_equal(told.memory.count, 2);
	}
	process_watch__exec(w, child);
	process_watch__sampled(w, child);
	assert_int_equal(process_watch__look(w, NULL, 0, 10 * S, take, &told), 0);
	assert_int_equal(told.cgroups.count, 3);
	assert_int_equal(told.cgroups.data[2], child);
	process_watch__sampled(w, child);
	assert_int_equal(process_watch__look(w, NULL, 0, 10 * S + WATCH_CGROUP_NS, take, &told), 0);
	assert_int_equal(told.cgroups.count, 5);
	end_child(child);
	forget_told(&told);
	process_watch__free(w);
}

/* However many ran: so many are looked at, the busiest of them. */
static void the_busiest_of_many(void **state)
{
	struct process_watch *w = new_watch();
	pid_t children[WATCH_MOST + 8];
	struct told told = {};

	(void)state;
	for (size_t i = 0; i < COUNT(children); i++) {
		children[i] = start_child();
		for (size_t k = 0; k <= i; k++)
			process_watch__sampled(w, children[i]);
	}
	assert_int_equal(process_watch__look(w, NULL, 0, 5 * S, take, &told), 0);
	assert_int_equal(told.memory.count, 1 + WATCH_MOST);
	for (size_t i = 0; i < WATCH_MOST; i++)
		assert_int_equal(told.memory.data[1 + i].pid, children[COUNT(children) - 1 - i]);
	for (size_t i = 0; i < COUNT(children); i++)
		end_child(children[i]);
	forget_told(&told);
	process_watch__free(w);
}

/* Many that end without a word: it stays small, and goes on. */
static void a_million_processes(void **state)
{
	struct process_watch *w = new_watch();
	struct told told = {};

	(void)state;
	for (pid_t pid = 1 << 22; pid < (1 << 22) + 1000000; pid++) {
		process_watch__sampled(w, pid);
		if (pid % 3 == 0)
			process_watch__forget(w, pid);
		if (pid % 100000 == 0)
			assert_int_equal(process_watch__look(w, NULL, 0, S, take, &told), 0);
	}
	assert_true(told.memory.count >= 10);
	for (size_t i = 0; i < told.memory.count; i++)
		assert_int_equal(told.memory.data[i].pid, getpid());
	forget_told(&told);
	process_watch__free(w);
}

/* Files of /proc that say something else. */
static void odd_texts(void **state)
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
	char path[] = "/tmp/process_watch.XXXXXX";
	int fd = mkstemp(path);
	struct told told = {};
	char big[20000];

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < COUNT(statms); i++) {
		size_t size = strlen(statms[i].text);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, statms[i].text, size, 0), size);
		told.memory.count = 0;
		assert_int_equal(process_facts__memory(AT_FDCWD, path, 7, 0, S, take, &told),
				 statms[i].pages > 0);
		assert_int_equal(told.memory.count, statms[i].pages > 0);
		if (statms[i].pages)
			assert_int_equal(told.memory.data[0].resident,
					 statms[i].pages * sysconf(_SC_PAGESIZE));
	}
	/* a path longer than any event's, and one beyond what is read */
	memset(big, 'x', sizeof(big));
	memcpy(big, "4:cpu:/short\n0::/", 17);
	assert_int_equal(pwrite(fd, big, sizeof(big), 0), sizeof(big));
	assert_int_equal(process_facts__cgroup(AT_FDCWD, path, 7, S, take, &told), 1);
	assert_string_equal(told.path, "/short");
	memset(big, 'x', sizeof(big));
	memcpy(big, "0::/", 4);
	big[EVENT_PATH_MAX + 3] = '\n';
	assert_int_equal(pwrite(fd, big, sizeof(big), 0), sizeof(big));
	assert_int_equal(process_facts__cgroup(AT_FDCWD, path, 7, S, take, &told), 0);
	assert_int_equal(process_facts__cgroup(AT_FDCWD, "/nowhere", 7, S, take, &told), 0);
	close(fd);
	unlink(path);
	forget_told(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_right_hierarchy), cmocka_unit_test(this_program_is_looked_at),
		cmocka_unit_test(those_that_ran),      cmocka_unit_test(the_busiest_of_many),
		cmocka_unit_test(a_million_processes), cmocka_unit_test(odd_texts),
		cmocka_unit_test(groups_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
