/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/thread_targets.h"

#include "base/order.h"
#include "live/live_private.h"

int thread_targets__add(struct thread_targets *t, uint32_t tid, uint32_t pid)
{
	const struct thread_target thread = {.tid = tid, .pid = pid};

	return vec_push(&t->threads, thread);
}

void thread_targets__fini(struct thread_targets *t)
{
	vec_free(&t->threads);
}

void thread_targets__begin(struct thread_targets *t, bool (*runs)(pid_t tid))
{
	for (size_t i = 0; i < t->threads.count; i++)
		t->threads.data[i].ended = !runs(t->threads.data[i].tid);
}

/*
 * Ignores leaders: another thread that calls execve takes over a leader's number, and while its
 * process has other threads an ended leader is seen as a zombie.
 */
void thread_targets__exit(struct thread_targets *t, const struct task_event *event)
{
	for (size_t i = 0; i < t->threads.count; i++) {
		struct thread_target *thread = &t->threads.data[i];

		if (thread->tid == event->tid && thread->pid == event->pid &&
		    thread->tid != thread->pid)
			thread->ended = true;
	}
}

static void look(struct thread_target *thread, bool (*runs)(pid_t tid), uint64_t now,
		 uint64_t read_until)
{
	if (runs(thread->tid)) {
		thread->gone = 0;
		return;
	}
	if (thread->tid == thread->pid) {
		thread->ended = true;
		return;
	}
	if (!thread->gone)
		thread->gone = now;
	if (read_until <= thread->gone)
		return;
	/* it has not ended, but called execve */
	thread->tid = thread->pid;
	thread->ended = !runs(thread->tid);
}

bool thread_targets__ended(struct thread_targets *t, bool (*runs)(pid_t tid), uint64_t now,
			   uint64_t read_until)
{
	bool all = true;

	for (size_t i = 0; i < t->threads.count; i++) {
		struct thread_target *thread = &t->threads.data[i];

		if (!thread->ended)
			look(thread, runs, now, read_until);
		all &= thread->ended;
	}
	return all && t->threads.count;
}

bool thread_targets__has(const struct thread_targets *t, uint32_t tid)
{
	return any_of(t->threads.data, t->threads.count, thread, thread->tid == tid);
}
