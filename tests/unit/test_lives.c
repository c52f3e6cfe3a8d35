/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forks, execs, exits, numbers that are used again: whose sample is it?
 */
#include "unit.h"
#include "unit/event_story.h"

/* ---- fork, exec, exit ------------------------------------------------------------------------ */

TEST(children_of_a_fork_storm_are_recorded_if_sampled)
{
	prog();
	for (uint32_t pid = 1000; pid < 101000; pid++) {
		ev.now += MS;
		fork_(10, 10, pid, pid);
		if (pid % 10000 == 0) {
			map(pid, 0x20000, 0x1000, 0, "/lib/own.so", 0);
			sample(pid, pid, MS / 2, IP(0x20010), RET(0x10020), END);
		}
		exit_(pid, pid);
	}
	ev.now += MS;
	sample(10, 10, 5 * S, IP(0x20010), RET(0x10020), END);
	finish();
	/* the ten that were sampled, and the parent */
	assert_int_equal(ev.p->process_count, 1 + 11);
	assert_int_equal(ev.p->thread_count, 1 + 11);
	expect_stack(thread_of(20000, 0), 0, "prog+0x41f own.so+0x10");
	assert_string_equal(str(process_of(thread_of(20000, 0))->name), "prog");
	assert_int_equal(process_of(thread_of(20000, 0))->ppid, 10);
	assert_true(process_of(thread_of(20000, 0))->is_target);
	/* what a child maps is not its parent's */
	expect_stack(thread_of(10, 0), 0, "prog+0x41f [unknown]+0x20010");
}

TEST(exec_replaces_names_and_maps)
{
	const struct profile_thread *t;

	prog();
	play("+1, fork 10 10 11 11, +1, sample 11 11 1, +1");
	thread_cpu(11, 11, MS + 200, 0); /* the next life's to account for */
	play("exec 11 11 tool, +1");
	sample(11, 11, 2 * MS + 300, HERE); /* the new image is not mapped yet */
	play("map 11 10000 /bin/tool, +1, sample 11 11 4, +1, last 11 11 4.000007, "
	     "exit 11 11");
	finish();
	t = thread_of(11, 0);
	assert_string_equal(str(process_of(t)->name), "prog");
	assert_string_equal(str(t->name), "prog");
	expect_stack(t, 0, "prog+0x410");
	assert_int_equal(t->end, S + 3 * MS);
	assert_int_equal(t->cpu_tail, 0);
	t = thread_of(11, 1);
	assert_string_equal(str(process_of(t)->name), "tool");
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[0]), "tool");
	assert_true(t->is_main);
	assert_int_equal(t->start, S + 3 * MS);
	assert_int_equal(t->end, S + 6 * MS);
	expect_stack(t, 0, "[unknown]+0x10010");
	expect_stack(t, 1, "tool+0x10");
	assert_int_equal(t->samples[SAMPLE_CPU].weight[0], MS + 300);
	assert_int_equal(t->cpu_tail, 7);
	assert_int_equal(cpu_of_tid(11), 4 * MS + 7);
}

/* Thread 12 calls execve: it goes on as 11, with its own clock, and all others are gone. */
TEST(an_exec_by_another_thread_ends_all_others)
{
	prog();
	play("+1, fork 10 10 11 11, fork 11 11 11 12, +1, sample 11 11 0.9, "
	     "sample 11 12 0.8, +1, last 11 11 0.95, exit 11 11, exec 11 11 tool, +1, "
	     "sample 11 11 1.9");
	finish();
	assert_int_equal(cpu_of_tid(11) + cpu_of_tid(12), 950000 + 1900000);
	assert_int_equal(profile_thread__cpu(thread_of(11, 0)), 950000);
	assert_int_equal(profile_thread__cpu(thread_of(12, 0)), 800000);
	assert_int_equal(thread_of(11, 1)->samples[SAMPLE_CPU].weight[0], 1100000);
	assert_int_equal(thread_of(12, 0)->end, S + 3 * MS);
}

TEST(a_process_lives_on_after_its_leader)
{
	const struct profile_process *p;

	prog();
	play("fork 10 10 10 12, +1, sample 10 10 5001, exit 10 10");
	ev.now += 3 * S; /* long after the leader's grace */
	play("sample 10 12 1000, +1, exit 10 12, +1");
	stop();
	finish();
	p = process_of(thread_of(12, 0));
	assert_int_equal(thread_of(10, 0)->process.v, thread_of(12, 0)->process.v);
	assert_int_equal(thread_of(10, 0)->end, S + MS);
	assert_int_equal(p->end, 4 * S + 2 * MS);
	assert_int_equal(ev.p->process_count, 2);
	expect_stack(thread_of(12, 0), 0, "prog+0x410");
}

TEST(a_sample_after_the_exit_record_extends_the_life)
{
	const struct profile_thread *t;

	prog();
	play("+1, fork 10 10 11 11, +1, exit 11 11, +0.001");
	sample(11, 11, MS, (uint64_t)0xffffffff81000100, END);
	play("+0.001, last 11 11 1.0005, +1");
	stop();
	finish();
	t = thread_of(11, 0);
	assert_int_equal(t->samples[SAMPLE_CPU].count, 1);
	assert_int_equal(t->end, S + 2 * MS + 1000);
	assert_int_equal(process_of(t)->end, t->end);
	assert_int_equal(profile_thread__cpu(t), MS + 500);
	assert_string_equal(str(process_of(t)->name), "prog");
}

/* Not all of its threads were known: the last known one is not the last one. */
TEST(a_sample_after_the_end_revives_the_process)
{
	prog();
	play("+1, exit 10 10, +1, sample 10 12 1, +1");
	stop();
	finish();
	assert_int_equal(process_of(thread_of(12, 0))->end, 0);
	assert_int_equal(thread_of(12, 0)->process.v, thread_of(10, 0)->process.v);
	expect_stack(thread_of(12, 0), 0, "prog+0x410");
}

TEST(each_life_of_a_reused_pid_is_a_process)
{
	prog();
	play("+1, fork 10 10 11 11, exec 11 11 first, map 11 10000 /bin/first, +1, "
	     "sample 11 11 1, exit 11 11, +1, fork 10 10 11 11, +1, sample 11 11 0.5");
	/* and once more, without an exit record: only /proc shows it, by the start time */
	ev.now += S;
	process(11, ev.now - 10 * MS, false, "third");
	thread(11, 11, ev.now - 10 * MS, MS, "third");
	map(11, 0x10000, 0x1000, 0, "/bin/third", EVENT_FROM_PROC);
	maps_read(11);
	play("+1, sample 11 11 2");
	stop();
	finish();
	expect_stack(thread_of(11, 0), 0, "first+0x10");
	expect_stack(thread_of(11, 1), 0, "prog+0x410");
	expect_stack(thread_of(11, 2), 0, "third+0x10");
	assert_string_equal(str(process_of(thread_of(11, 2))->name), "third");
	assert_int_equal(thread_of(11, 1)->samples[SAMPLE_CPU].weight[0], MS / 2);
	assert_int_equal(thread_of(11, 2)->samples[SAMPLE_CPU].weight[0], MS);
	assert_int_not_equal(thread_of(11, 1)->end, 0);
	assert_int_equal(thread_of(11, 2)->end, 0);
}

TEST(a_tid_reused_in_another_process_is_another_thread)
{
	prog();
	play("fork 10 10 10 12, +1, sample 10 12 1");
	/* its exit record was lost */
	play("+1, fork 10 10 20 20, fork 20 20 20 12, +1, sample 20 12 0.5");
	finish();
	assert_int_equal(process_of(thread_of(12, 0))->pid, 10);
	assert_int_equal(thread_of(12, 0)->end, S + 2 * MS);
	assert_int_equal(process_of(thread_of(12, 1))->pid, 20);
	assert_int_equal(thread_of(12, 1)->samples[SAMPLE_CPU].weight[0], MS / 2);
}

/* /proc was being read when the thread was born: its event is first, the record comes after. */
TEST(a_process_reported_before_its_fork_is_one)
{
	prog();
	process(11, S - 5 * MS, true, "child");
	thread(11, 11, S - 5 * MS, 100, "child");
	play("+1, fork 10 10 11 11, +1, sample 11 11 1");
	finish();
	assert_int_equal(thread_of(11, 0)->samples[SAMPLE_CPU].weight[0], MS);
	assert_string_equal(str(process_of(thread_of(11, 0))->name), "child");
	assert_int_equal(ev.p->process_count, 3);
}

TEST(ended_lives_are_forgotten)
{
	prog();
	play("fork 10 10 11 11, exit 11 11, +3000");
	/* nothing is known of it any more: a new life of unknown name, and a question */
	sample(11, 11, 10 * S, HERE);
	finish();
	assert_int_equal(ev.reread[0], 11);
	assert_string_equal(str(process_of(thread_of(11, 0))->name), "[unknown]");
	/* what it used before is not known: one period at most */
	assert_int_equal(thread_of(11, 0)->samples[SAMPLE_CPU].weight[0], MS);
	assert_true(thread_of(11, 0)->start <= thread_of(11, 0)->samples[SAMPLE_CPU].time[0] - MS);
}

/* ---- names ----------------------------------------------------------------------------------- */

TEST(samples_have_the_names_of_their_time)
{
	const struct profile_thread *t;

	prog();
	play("+1, sample 10 10 5000, fork 10 10 10 12, comm 10 10 renamed, +1, "
	     "sample 10 10 5000, sample 10 12 0.000005, comm 10 12 worker, +1, "
	     "sample 10 12 0.000006");
	finish();
	t = thread_of(10, 0);
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[0]), "prog");
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[1]), "renamed");
	assert_string_equal(str(t->name), "renamed");
	assert_string_equal(str(process_of(t)->name), "prog");
	t = thread_of(12, 0);
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[0]), "prog");
	assert_string_equal(str(t->samples[SAMPLE_CPU].comm[1]), "worker");
	assert_false(t->is_main);
	assert_int_equal(t->process.v, thread_of(10, 0)->process.v);
}

/* Whatever its main thread is called when it is found, and whatever /proc says of it later. */
TEST(a_process_is_called_as_its_program)
{
	process(10, S / 2, true, "MainThread");
	thread(10, 10, S / 2, 5 * S, "MainThread");
	map(10, 0x10000, 0x1000, 0x400, "/bin/prog", EVENT_FROM_PROC);
	comm(10, 10, "prog", EVENT_FROM_PROC);
	maps_read(10);
	start_sampling();
	sample(10, 10, 5 * S, HERE);
	process(10, S / 2, true, "MainThread");
	play("fork 10 10 11 11, sample 11 11 1");
	finish();
	assert_string_equal(str(thread_of(10, 0)->name), "MainThread");
	assert_string_equal(str(process_of(thread_of(10, 0))->name), "prog");
	assert_string_equal(str(thread_of(11, 0)->name), "MainThread");
	assert_string_equal(str(process_of(thread_of(11, 0))->name), "prog");
}

/* "ld-linux-x86-64.so.2 PROGRAM": the kernel maps the loader, and that maps the program. */
TEST(a_loader_is_not_the_program)
{
	const struct profile_process *tool;

	prog();
	play("fork 10 10 11 11, exec 11 11 ld-linux-x86-64, "
	     "map 11 700000 /usr/lib/ld-linux-x86-64.so.2, "
	     "map 11 702000 /usr/lib/ld-linux-x86-64.so.2, "
	     "map 11 500000 /opt/a-very-long-tool-name, map 11 600000 /lib/libc.so.6, "
	     "map 11 800000 /opt/plugin, sample 11 11 1");
	finish();
	tool = process_of(thread_of(11, 0));
	assert_string_equal(str(tool->name), "a-very-long-too");
	assert_string_equal(str(tool->program), "/opt/a-very-long-tool-name");
}

/* They have no program, and change their names all the time. */
TEST(a_kernel_thread_is_called_as_it_is)
{
	report_process(2, S / 2, false, true, "kworker/0:1");
	thread(2, 2, S / 2, 5, "kworker/0:1");
	start_sampling();
	comm(2, 2, "kworker/0:1-ev", 0);
	sample(2, 2, 10, 0xffffffff81000000);
	finish();
	assert_string_equal(str(process_of(thread_of(2, 0))->name), "kworker/0:1-ev");
}

/* ---- beginnings, names, control groups, memory ----------------------------------------------- */

TEST(lives_begin_and_end_by_fork_exec_and_exit)
{
	const struct profile_process *parent, *child, *tool;

	prog();
	play("sample 10 10 5000, +1, fork 10 10 11 11, sample 11 11 1, +1, exec 11 11 tool, "
	     "+1, sample 11 11 2, exit 11 11, +1");
	stop();
	finish();
	parent = process_of(thread_of(10, 0));
	child = process_of(thread_of(11, 0));
	tool = process_of(thread_of(11, 1));
	assert_int_equal(parent->began, PROCESS_WAS_THERE);
	assert_int_equal(child->began, PROCESS_FORKED);
	assert_true(child->execs && child->end == tool->start);
	assert_int_equal(tool->began, PROCESS_EXECED);
	assert_true(!tool->execs && tool->end == tool->start + MS);
}

/* A life that began in an earlier window does not begin again in the next one; nor does its name. */
TEST(a_life_does_not_begin_again_in_the_next_window)
{
	prog();
	play("+1, fork 10 10 11 11, +1, comm 11 11 renamed, sample 11 11 1, +1");
	next_window();
	play("+1, sample 11 11 2");
	finish();
	assert_int_equal(process_of(thread_of(11, 0))->began, PROCESS_WAS_THERE);
	assert_int_equal(thread_of(11, 0)->rename_count, 0);
	ev.p = ev.profiles[0];
	assert_int_equal(process_of(thread_of(11, 0))->began, PROCESS_FORKED);
	/* the name that it was given before it was first sampled */
	assert_int_equal(thread_of(11, 0)->rename_count, 1);
	assert_true(thread_of(11, 0)->renames[0].time == S + 2 * MS);
	assert_string_equal(str(thread_of(11, 0)->renames[0].name), "renamed");
}

TEST(renames_are_kept_with_their_times)
{
	const struct profile_thread *t;

	prog();
	sample(10, 10, 5 * S, HERE);
	for (int i = 0; i < 1000; i++) {
		ev.now += MS;
		comm(10, 10, i % 2 ? "one" : "two", 0);
		comm(10, 10, i % 2 ? "one" : "two", 0); /* nothing new */
	}
	finish();
	t = thread_of(10, 0);
	assert_int_equal(t->rename_count, 256);
	for (size_t i = 0; i < t->rename_count; i++) {
		assert_true(t->renames[i].time == S + (i + 1) * MS);
		assert_string_equal(str(t->renames[i].name), i % 2 ? "one" : "two");
	}
	assert_string_equal(str(t->name), "one");
}

/* "key=value " of each fact */
static const char *facts_text(const struct profile_process *process)
{
	static char text[1024];
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < process->fact_count; i++) {
		const struct profile_fact *fact = &ev.p->facts[process->first_fact + i];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s=%s ", str(fact->key),
					 str(fact->value));
	}
	return text;
}

#define REPORT(pid, since, state, text) facts(pid, since, FACTS_STATE_##state, text, sizeof(text))

TEST(facts_belong_to_one_program_and_its_forks)
{
	const struct profile_process *p;

	prog();
	play("sample 10 10 5000, +1");
	REPORT(10, ev.now - 1, FIRST, "exe\0/bin/prog");
	REPORT(10, ev.now - 1, WHOLE, "exe\0/bin/prog\0env:A\0one\0env:B\0");
	REPORT(10, ev.now - 1, FIRST,
	       "exe\0/bin/prog"); /* it is read anew, and what is known stays */
	REPORT(77, ev.now, FIRST, "exe\0/of/nobody");
	/* a fork says the same, until it is another program */
	play("fork 10 10 11 11, sample 11 11 1, +0.00001, exec 11 11 tool, sample 11 11 2");
	/* read before the execve: of another life */
	REPORT(11, ev.now - 5, WHOLE, "exe\0/bin/old\0");
	play("+0.00001, exec 11 11 next, +0.00001");
	REPORT(11, ev.now - 5, REFUSED, "exe\0/bin/next");
	sample(11, 11, 3 * MS, HERE);
	finish();
	p = process_of(thread_of(10, 0));
	assert_int_equal(p->facts_state, FACTS_STATE_WHOLE);
	assert_string_equal(facts_text(p), "exe=/bin/prog env:A=one env:B= ");
	assert_int_equal(process_of(thread_of(11, 0))->first_fact, p->first_fact);
	assert_int_equal(process_of(thread_of(11, 0))->fact_count, 3);
	p = process_of(thread_of(11, 1));
	assert_int_equal(p->facts_state, FACTS_STATE_NONE);
	assert_int_equal(p->fact_count, 0);
	p = process_of(thread_of(11, 2));
	assert_int_equal(p->facts_state, FACTS_STATE_REFUSED);
	assert_string_equal(facts_text(p), "exe=/bin/next ");
}

static const char *program_of_pid(uint32_t pid, uint32_t life)
{
	return str(process_of(thread_of(pid, life))->program);
}

/* By what is mapped first; a life that is sampled before that is reported later, and one that maps nothing has none. */
TEST(a_life_has_the_program_mapped_first)
{
	prog();
	play("sample 10 10 5000, fork 10 10 11 11, sample 11 11 1, +0.00001, "
	     "exec 11 11 tool, sample 11 11 2, map 11 500000 //anon, "
	     "map 11 400000 /usr/bin/tool, map 11 600000 /lib/ld.so, +0.00001, "
	     "fork 11 11 12 12, exec 12 12 gone, sample 12 12 1, +0.00001, exec 11 11 far, "
	     "map 11 400000 //toolong, sample 11 11 3");
	/* read from /proc, where a library may be first */
	process(13, S / 2, true, "old");
	thread(13, 13, S / 2, 5 * S, "old");
	map(13, 0x400000, 0x1000, 0, "/lib/libc.so.6", EVENT_FROM_PROC);
	map(13, 0x500000, 0x1000, 0, "/bin/a.sort", EVENT_FROM_PROC);
	sample(13, 13, 6 * S, HERE);
	finish();
	assert_string_equal(program_of_pid(10, 0), "/bin/prog");
	assert_string_equal(program_of_pid(11, 0), "/bin/prog");
	assert_string_equal(program_of_pid(11, 1), "/usr/bin/tool");
	assert_string_equal(program_of_pid(11, 2), "//toolong");
	assert_string_equal(program_of_pid(12, 0), "");
	assert_string_equal(program_of_pid(13, 0), "/bin/a.sort");
}

/* A life is known again in the next window, with what was said about it before. */
TEST(facts_outlive_windows)
{
	uint64_t life;

	prog();
	REPORT(10, ev.now, WHOLE, "exe\0/bin/prog");
	play("sample 10 10 5000, +1");
	next_window();
	life = process_of(thread_of(10, 0))->life;
	assert_true(life);
	play("sample 10 10 5001, +1, exec 10 10 next, sample 10 10 5002");
	finish();
	assert_true(process_of(thread_of(10, 0))->life == life);
	assert_string_equal(facts_text(process_of(thread_of(10, 0))), "exe=/bin/prog ");
	assert_true(process_of(thread_of(10, 1))->life != life);
}

TEST(children_begin_in_the_control_group_of_their_parent)
{
	prog();
	cgroup(10, "/parent");
	cgroup(77, "/nobody");
	play("sample 10 10 5000, +1, fork 10 10 11 11, fork 10 10 12 12, sample 11 11 1");
	/* it was moved after its first sample, and keeps that over an execve */
	cgroup(12, "/moved");
	sample(12, 12, MS, HERE);
	cgroup(12, "/moved/again");
	cgroup(12, "/moved/again");
	play("exec 12 12 tool, sample 12 12 2");
	/* what its parent does afterwards is nothing to it */
	cgroup(10, "/elsewhere");
	sample(300, 300, MS, HERE);
	finish();
	assert_string_equal(str(process_of(thread_of(10, 0))->cgroup), "/elsewhere");
	assert_string_equal(str(process_of(thread_of(11, 0))->cgroup), "/parent");
	assert_string_equal(str(process_of(thread_of(12, 0))->cgroup), "/moved/again");
	assert_string_equal(str(process_of(thread_of(12, 1))->cgroup), "/moved/again");
	assert_int_equal(process_of(thread_of(300, 0))->cgroup.v, 0);
}

static const struct profile_memory *memory_of(uint32_t pid, unsigned int n)
{
	for (size_t i = 0; i < ev.p->memory_count; i++)
		if (ev.p->memories[i].pid == pid && n-- == 0)
			return &ev.p->memories[i];
	fail_msg("no memory of %u", pid);
	return NULL;
}

TEST(memory_is_kept_over_time_for_each_life)
{
	memory(9, 100, EVENT_RECORDER);
	prog();
	memory(10, 1000, 0);
	memory(77, 1, 0);
	ev.now += MS;
	memory(9, 200, EVENT_RECORDER);
	memory(10, 3000, 0);
	memory(10, 2000, 0); /* the last of a moment counts */
	play("fork 10 10 11 11, +1");
	memory(11, 50, 0); /* without a sample, too */
	play("exec 11 11 tool, +1");
	memory(11, 70, 0);
	exit_(11, 11);
	memory(11, 80, 0); /* it was read as it ended */
	ev.now += MS;
	stop();
	finish();
	assert_int_equal(ev.p->memory_count, 4);
	assert_true(memory_of(9, 0)->is_recorder && !memory_of(9, 0)->process.v);
	assert_int_equal(memory_of(9, 0)->count, 2);
	assert_int_equal(memory_of(9, 0)->readings[1].bytes, 200);
	assert_false(memory_of(10, 0)->is_recorder);
	assert_int_equal(memory_of(10, 0)->count, 2);
	assert_int_equal(memory_of(10, 0)->readings[0].bytes, 1000);
	assert_int_equal(memory_of(10, 0)->readings[1].bytes, 2000);
	assert_true(memory_of(10, 0)->readings[1].time == S + MS);
	assert_int_equal(memory_of(11, 0)->readings[0].bytes, 50);
	assert_int_equal(memory_of(11, 1)->count, 1);
	assert_int_equal(memory_of(11, 1)->readings[0].bytes, 70);
	assert_string_equal(str(ev.p->processes[memory_of(11, 1)->process.v].name), "tool");
}

/* The recorder is a process like any other where the whole system is recorded. */
TEST(a_sampled_recorder_is_marked_as_one)
{
	prog();
	memory(10, 100, EVENT_RECORDER);
	finish();
	assert_int_equal(ev.p->memory_count, 1);
	assert_true(memory_of(10, 0)->is_recorder && memory_of(10, 0)->process.v);
}

EACH_TEST_WITH(set_up, tear_down);
