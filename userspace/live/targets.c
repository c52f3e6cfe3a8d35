/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/targets.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "live/live_private.h"
#include "live/thread_targets.h"

/* ---- requests -------------------------------------------------------------------------------- */

static int add_root(struct live *live, uint32_t id)
{
	pid_t pid = live->target.mode == TARGET_THREADS ? target_process_of(id) : (pid_t)id;
	int err;

	if (pid <= 0)
		return pid < 0 ? pid : -ESRCH;
	err = live->target.mode == TARGET_THREADS
		      ? thread_targets__add(&live->target.threads, id, pid)
		      : 0;
	if (err)
		return err;
	for (size_t i = 0; i < live->target.roots.count; i++)
		if (live->target.roots.data[i] == pid)
			return 0;
	return tasks__add_target(live->tasks, pid) ?: vec_push(&live->target.roots, pid);
}

static int add_target(struct live *live, uint32_t id, bool held, struct failure *failure)
{
	int err = 0;

	if (held)
		bpf_session__hold_target(live->session, id);
	else
		err = bpf_session__add_target(live->session, id);
	if (!err)
		err = add_root(live, id);
	if (err == -E2BIG)
		return fail(failure, err, "cannot record %u: too many targets", id);
	return err ? fail(failure, err, "cannot record %u: %s", id, strerror(-err)) : 0;
}

int live__add_command(struct live *live, pid_t pid, struct failure *failure)
{
	return add_target(live, pid, true, failure);
}

int live_targets__add(struct live *live, const struct live_options *options,
		      struct failure *failure)
{
	for (size_t i = 0; i < options->id_count; i++) {
		int err = add_target(live, options->ids[i], false, failure);

		if (err)
			return err;
	}
	return bpf_session__identify_targets(live->session, failure);
}

int live_targets__add_descendants(struct live *live, struct failure *failure)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t count = 0;
	int err = proc_snapshot__descendants(live->proc, live->target.roots.data,
					     live->target.roots.count, &pids, &count);

	for (size_t i = 0; i < count && !err; i++)
		err = bpf_session__add_target(live->session, pids[i])
			      ?: tasks__add_target(live->tasks, pids[i]);
	return err ? fail(failure, err, "cannot follow child processes: %s", strerror(-err)) : 0;
}

/* ---- live targets ---------------------------------------------------------------------------- */

int live_targets__snapshot(struct live *live, bool first, event_push_fn push)
{
	_cleanup_free_ pid_t *pids = NULL;
	size_t count = 0;
	int err = live->target.everyone ? proc_snapshot__all(live->proc, first, push, live)
					: tasks__living_targets(live->tasks, &pids, &count);

	for (size_t i = 0; i < count && !err; i++)
		err = proc_snapshot__process(live->proc, pids[i], first, push, live);
	return err;
}

struct cpu_reading {
	struct live *live;
	uint64_t time; /* 0: that of each reading */
};

static int push_thread_cpu(void *context, struct event_header *event)
{
	struct cpu_reading *reading = context;

	if (reading->time)
		event->time = reading->time;
	return event_queue__push(reading->live->queue, event);
}

int live_targets__read_cpu(struct live *live, uint64_t time)
{
	struct cpu_reading reading = {.live = live, .time = time};
	_cleanup_free_ pid_t *pids = NULL;
	size_t count = 0;
	int err = live->target.everyone
			  ? proc_snapshot__thread_cpu_all(live->proc, push_thread_cpu, &reading)
			  : tasks__living_targets(live->tasks, &pids, &count);

	for (size_t i = 0; i < count && !err; i++)
		err = proc_snapshot__thread_cpu(live->proc, pids[i], push_thread_cpu, &reading);
	return err;
}

struct cpu_sum {
	const struct live *live;
	uint64_t sum;
};

static int sum_thread_cpu(void *context, struct event_header *event)
{
	const struct thread_cpu_event *thread = (const struct thread_cpu_event *)event;
	struct cpu_sum *sum = context;
	bool wanted = sum->live->target.mode != TARGET_THREADS ||
		      thread_targets__has(&sum->live->target.threads, thread->tid);

	sum->sum += wanted ? thread->cpu_time : 0;
	return 0;
}

uint64_t live_targets__cpu(const struct live *live)
{
	struct cpu_sum sum = {.live = live};

	for (size_t i = 0; i < live->target.roots.count; i++)
		proc_snapshot__thread_cpu(live->proc, live->target.roots.data[i], sum_thread_cpu,
					  &sum);
	return sum.sum;
}
