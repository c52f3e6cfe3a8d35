/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files of scripts are wanted: of which processes, in whose root, and how old they may be. */
#include "unit.h"
#undef fail /* ours has arguments */

#include <sys/prctl.h>

#include <sysprof/profile_builder.h>

#include "base/proc_task.h"
#include "files/dso_opener.h"
#include "window/scripts.h"

#define S	 1000000000ull
#define REALTIME (1000 * S) /* of the session's start, which is `BEGIN` */
#define BEGIN	 (100 * S)

struct scene {
	struct profile_builder *b;
	struct window *window;
	struct dso_id script, native;
	uint32_t threads;
};

static void set_up(struct scene *s)
{
	struct profile *session;

	s->b = profile_builder__new();
	s->window = calloc(1, sizeof(*s->window));
	assert_true(s->b && s->window);
	s->window->builder = s->b;
	session = profile_builder__session(s->b);
	session->start = BEGIN;
	session->start_realtime = REALTIME;
	s->script = profile_builder__dso(
		s->b, &(struct profile_dso){.kind = DSO_RUNTIME,
					    .name = profile_builder__string(s->b, "app.py")});
	s->native = profile_builder__dso(
		s->b, &(struct profile_dso){.kind = DSO_FILE,
					    .path = profile_builder__string(s->b, "/bin/app")});
	s->threads = 0;
}

static void tear_down(struct scene *s)
{
	window__free(s->window);
}

static struct location_id script_location(struct scene *s, struct process_id process,
					  const char *path)
{
	const struct profile_function function = {
		.name = profile_builder__string(s->b, "hot"),
		.dso = s->script,
		.address = PROFILE_UNKNOWN_ADDRESS,
		.definition_file = profile_builder__string(s->b, path),
		.definition_line = 3,
	};
	const struct profile_line line = {profile_builder__function(s->b, &function),
					  profile_builder__string(s->b, path), 7, 0};
	struct location_id at = profile_builder__location(s->b, s->script, 0x1000 + s->threads,
							  process, CATEGORY_USER);

	profile_builder__resolve(s->b, at, 0, &line, 1);
	return at;
}

/* A sample of a new thread: native code, called by a script's (NULL: of none). */
static void add_sample(struct scene *s, struct process_id process, const char *path)
{
	struct profile_sample sample = {.kind = SAMPLE_CPU, .time = BEGIN + S, .weight = 1};
	struct thread_id thread = profile_builder__thread(s->b, process, ++s->threads, false,
							  (struct string_id){}, BEGIN);

	if (path)
		sample.stack = profile_builder__stack(s->b, sample.stack,
						      script_location(s, process, path));
	sample.stack = profile_builder__stack(
		s->b, sample.stack,
		profile_builder__location(s->b, s->native, 0x100, process, CATEGORY_USER));
	profile_builder__sample(s->b, thread, &sample);
}

static struct process_id add_process(struct scene *s, const struct profile_process *process)
{
	struct process_id id = profile_builder__process(s->b, process);

	assert_true(id.v);
	return id;
}

static void add_root(struct scene *s, struct process_id process, int fd)
{
	const struct process_root root = {process, fd, 1000};

	assert_int_equal(vec_push(&s->window->process_roots, root), 0);
}

static void find_scripts(struct scene *s, struct scripts *found)
{
	struct location_samples *samples = calloc(profile_builder__location_count(s->b),
						  sizeof(*samples));

	for (size_t i = 0; i < profile_builder__location_count(s->b); i++)
		samples[i].all = 1;
	*found = (struct scripts){};
	assert_int_equal(scripts__find(found, s->window, samples, 1), 0);
	free(samples);
}

static const struct symbolizer_script *script_of(const struct scripts *found, const char *path,
						 int root_fd)
{
	for (size_t i = 0; i < found->wanted.count; i++)
		if (!strcmp(found->wanted.data[i].path, path) &&
		    found->wanted.data[i].root_fd == root_fd)
			return &found->wanted.data[i];
	return NULL;
}

/* ---- of which processes ---------------------------------------------------------------------- */

static struct process_id add_running(struct scene *s, pid_t pid)
{
	struct proc_identity identity;

	assert_int_equal(proc_process_state(pid, &identity), PROC_ALIVE);
	return add_process(s, &(struct profile_process){.pid = (uint32_t)pid,
							.start = identity.start_time,
							.born = identity.start_time});
}

/* Others are not looked up. */
TEST(processes_with_samples_in_scripts_have_roots)
{
	struct dso_opener *opener;
	struct process_id native, script;
	struct scene s;
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	set_up(&s);
	assert_int_equal(dso_opener__new(NULL, &opener), 0);
	native = add_running(&s, child);
	script = add_running(&s, getpid());
	add_sample(&s, native, NULL);
	add_sample(&s, script, NULL);
	assert_int_equal(window__find_process_roots(s.window, opener), 0);
	assert_int_equal(s.window->process_roots.count, 0);
	add_sample(&s, script, "/app.py");
	assert_int_equal(window__find_process_roots(s.window, opener), 0);
	assert_int_equal(s.window->process_roots.count, 1);
	assert_int_equal(s.window->process_roots.data[0].process.v, script.v);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	dso_opener__free(opener);
	tear_down(&s);
}

/* Threads of processes come in any order. */
TEST(each_process_has_the_scripts_of_its_threads)
{
	struct process_id processes[3];
	struct scripts found;
	struct scene s;

	set_up(&s);
	for (uint32_t i = 0; i < 3; i++)
		processes[i] =
			add_process(&s, &(struct profile_process){.pid = 10 + i, .start = BEGIN});
	for (uint32_t i = 0; i < 9; i++)
		add_sample(&s, processes[i % 3], i < 3 ? "/all.py" : i % 3 ? "/odd.py" : "node:fs");
	add_root(&s, processes[0], 5);
	add_root(&s, processes[2], 6);
	find_scripts(&s, &found);
	assert_int_equal(found.wanted.count, 3);
	assert_true(script_of(&found, "/all.py", 5) && script_of(&found, "/all.py", 6));
	assert_non_null(script_of(&found, "/odd.py", 6));
	scripts__fini(&found);
	tear_down(&s);
}

/* ---- since when code was loaded -------------------------------------------------------------- */

static struct process_id life(struct scene *s, uint32_t pid, uint32_t ppid,
			      enum process_begin began, uint64_t start, const char *program)
{
	return add_process(
		s, &(struct profile_process){.pid = pid,
					     .ppid = ppid,
					     .began = began,
					     .start = began == PROCESS_WAS_THERE ? BEGIN : start,
					     .born = start,
					     .program = profile_builder__string(s->b, program)});
}

/* Seconds of CLOCK_MONOTONIC, or 0. */
static uint64_t started(struct scene *s, struct process_id process)
{
	const struct symbolizer_script *script;
	struct scripts found;
	uint64_t at;

	s->window->process_roots.count = 0;
	add_root(s, process, 5);
	add_sample(s, process, "/app.py");
	find_scripts(s, &found);
	script = script_of(&found, "/app.py", 5);
	assert_non_null(script);
	at = script->started;
	scripts__fini(&found);
	return at ? (at - REALTIME + BEGIN) / S : 0;
}

/* A file that was changed between the program's start and the fork is another one than what runs. */
TEST(a_forked_process_has_the_code_of_its_parent)
{
	struct process_id before, server, worker, helper, later, orphan, other;
	struct scene s;

	set_up(&s);
	before = life(&s, 20, 1, PROCESS_FORKED, 105 * S, "/bin/sh");
	server = life(&s, 20, 1, PROCESS_EXECED, 110 * S, "/bin/python");
	profile_builder__process_end(s.b, before, 110 * S, true);
	worker = life(&s, 21, 20, PROCESS_FORKED, 120 * S, "/bin/python");
	helper = life(&s, 22, 21, PROCESS_FORKED, 130 * S, "/bin/python");
	/* the pid of its parent is another process's now, or was before */
	profile_builder__process_end(s.b, server, 140 * S, false);
	later = life(&s, 20, 1, PROCESS_EXECED, 150 * S, "/bin/python");
	orphan = life(&s, 23, 20, PROCESS_FORKED, 145 * S, "/bin/python");
	other = life(&s, 24, 9, PROCESS_FORKED, 145 * S, "/bin/python");
	assert_int_equal(started(&s, server), 110);
	assert_int_equal(started(&s, worker), 110);
	assert_int_equal(started(&s, helper), 110);
	assert_int_equal(started(&s, later), 150);
	assert_int_equal(started(&s, orphan), 0);
	assert_int_equal(started(&s, other), 0);
	tear_down(&s);
}

TEST(a_process_that_was_there_may_have_the_code_of_its_parent)
{
	struct process_id shell, server, worker, helper, unknown, child;
	struct scene s;

	set_up(&s);
	shell = life(&s, 19, 1, PROCESS_WAS_THERE, 20 * S, "/bin/sh");
	server = life(&s, 20, 19, PROCESS_WAS_THERE, 30 * S, "/bin/python");
	worker = life(&s, 21, 20, PROCESS_WAS_THERE, 40 * S, "/bin/python");
	helper = life(&s, 22, 21, PROCESS_FORKED, 110 * S, "/bin/python");
	unknown = life(&s, 23, 19, PROCESS_WAS_THERE, 0, "/bin/python");
	child = life(&s, 24, 23, PROCESS_FORKED, 110 * S, "/bin/python");
	assert_int_equal(started(&s, shell), 20);
	assert_int_equal(started(&s, server), 30);
	assert_int_equal(started(&s, worker), 30);
	assert_int_equal(started(&s, helper), 30);
	assert_int_equal(started(&s, unknown), 0);
	assert_int_equal(started(&s, child), 0);
	tear_down(&s);
}

/* A chain that a tenant made so long is not walked to its end. */
TEST(a_long_chain_of_forks_ends)
{
	struct process_id last;
	struct scene s;

	set_up(&s);
	last = life(&s, 1000, 1, PROCESS_EXECED, 110 * S, "/bin/python");
	for (uint32_t i = 1; i < 50; i++)
		last = life(&s, 1000 + i, 999 + i, PROCESS_FORKED, 110 * S + i, "/bin/python");
	assert_int_equal(started(&s, last), 110);
	for (uint32_t i = 50; i < 100; i++)
		last = life(&s, 1000 + i, 999 + i, PROCESS_FORKED, 110 * S + i, "/bin/python");
	assert_int_equal(started(&s, last), 0);
	tear_down(&s);
}
