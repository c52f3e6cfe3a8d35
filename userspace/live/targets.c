/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/targets.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
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

/* ---- targets by name ------------------------------------------------------------------------ */

static bool has_names(const struct live *live)
{
	return live->target.names.rules;
}

bool live_targets__is_requested(const struct live *live, pid_t pid)
{
	const struct task *task = tasks__find(live->tasks, pid);

	return !has_names(live) || !live->target.names.rules->include || (task && task->is_target);
}

/* By what /proc shows, and by the last reading of its service. */
static uint32_t verdict_on(const struct live *live, pid_t pid)
{
	return name_judge__process(&live->target.names, live->target.proc_fd, pid) |
	       (live->target.services ? service_names__of_process(live->target.services, pid) : 0);
}

/* A target now. */
static bool is_target_now(const struct live *live, pid_t pid)
{
	const struct name_judge *names = &live->target.names;
	uint32_t verdict = verdict_on(live, pid);
	bool is_chosen = live->target.mode == TARGET_ALL ? !names->rules->include
							 : live_targets__is_requested(live, pid);

	return !(verdict & NAME_EXCLUDED) && (is_chosen || verdict & NAME_INCLUDED);
}

size_t live__find_named(struct live *live)
{
	_cleanup_closedir_ DIR *processes = opendir("/proc");
	size_t count = 0;
	uint64_t pid;

	/* without memory some are not found yet */
	if (live->target.services)
		(void)service_names__read_all(live->target.services);
	for (struct dirent *entry; processes && (entry = readdir(processes));) {
		struct task *task;

		if (parse_u64(entry->d_name, 1, INT_MAX, &pid) || (pid_t)pid == getpid() ||
		    verdict_on(live, (pid_t)pid) != NAME_INCLUDED)
			continue;
		count++;
		task = tasks__need(live->tasks, (pid_t)pid);
		if (task)
			task->slots.is_named = true;
	}
	return count;
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
	uint32_t process;
	bool is_target; /* that process */
};

/* At the end, the CPU time of what is or was no target since its last sample is not a target's. */
static bool is_of_target(struct cpu_reading *reading, const struct thread_cpu_event *thread)
{
	uint32_t process = thread->tgid;

	if (!has_names(reading->live) || !reading->time)
		return true;
	if (process != reading->process) {
		reading->process = process;
		reading->is_target = is_target_now(reading->live, (pid_t)process);
	}
	return reading->is_target &&
	       !bpf_session__has_filtered(reading->live->session, thread->tid);
}

static int push_thread_cpu(void *context, struct event_header *event)
{
	const struct thread_cpu_event *thread = (const struct thread_cpu_event *)event;
	struct cpu_reading *reading = context;

	if (!is_of_target(reading, thread))
		return 0;
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
