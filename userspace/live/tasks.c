/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/tasks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/minmax.h"
#include "tenants/owner.h"

#define SWEEP_INTERVAL 1000000000ull /* ns */
#define FREE_AFTER     2000000000ull /* ns from the exit of a leader until its entry is freed */
/* ns between two searches for processes that ended without a record, of two sweeps each */
#define SEARCH_INTERVAL 8000000000ull
/* An owner is read again after a second; each time that it is the same, the interval doubles. */
#define OWNER_KEPT	1000000000ull /* ns */
#define OWNER_KEPT_MOST (16 * OWNER_KEPT)
#define NEVER		UINT64_MAX

MAP_TYPE(task_map, struct task *);
MAP_KEY(task_map, struct task *, pid_t, (*entry)->id.pid)
MAP_FUNCTIONS(task_map, struct task *, pid_t, task_map__key, map_hash_number, map_same_number);

struct tasks {
	struct tasks_options options;
	struct task_map all;
	size_t unknown; /* entries with is_unknown */
	uint64_t serial, swept, searched;
};

struct tasks *tasks__new(const struct tasks_options *options)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (t)
		t->options = *options;
	return t;
}

void tasks__free(struct tasks *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->all.count; i++)
		free(t->all.data[i]);
	task_map__fini(&t->all);
	free(t);
}

/* ---- entries --------------------------------------------------------------------------------- */

struct task *tasks__find(const struct tasks *t, pid_t pid)
{
	struct task **known = task_map__find(&t->all, pid);

	return known ? *known : NULL;
}

struct task *tasks__get(const struct tasks *t, struct task_id id)
{
	struct task *task = tasks__find(t, id.pid);

	return task && task->id.serial == id.serial ? task : NULL;
}

/* The entry of a pid, added if there is none. NULL: out of memory. */
static struct task *add(struct tasks *t, pid_t pid)
{
	struct task *task = tasks__find(t, pid);

	if (task)
		return task;
	task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	*task = (struct task){.id = {pid, ++t->serial}, .until = NEVER, .ended = NEVER};
	if (task_map__need(&t->all, &task, NULL))
		return task;
	free(task);
	return NULL;
}

static void set_known(struct tasks *t, struct task *task)
{
	t->unknown -= task->is_unknown;
	task->is_unknown = false;
}

struct task *tasks__need(struct tasks *t, pid_t pid)
{
	struct task *task = tasks__find(t, pid);

	if (task || pid <= 0 || t->unknown >= TASKS_UNKNOWN_MAX)
		return task;
	task = add(t, pid);
	if (task)
		task->is_unknown = ++t->unknown;
	return task;
}

struct task *tasks__need_program(struct tasks *t, pid_t pid, uint64_t time)
{
	struct task *task = tasks__need(t, pid);

	return task && time >= task->execed ? task : NULL;
}

uint64_t task__read_owner(struct task *task, uint64_t now)
{
	struct task_program *program = &task->slots.program;
	uint64_t owner = helper_owner(task->id.pid);

	if (!program->owner_kept || owner != program->owner)
		program->owner_kept = OWNER_KEPT;
	else if (now >= program->owner_until)
		program->owner_kept = min_u64(2 * program->owner_kept, OWNER_KEPT_MOST);
	program->owner = owner;
	program->owner_until = now + program->owner_kept;
	return owner;
}

uint64_t task__owner(struct task *task, uint64_t now)
{
	const struct task_program *program = &task->slots.program;

	return now < program->owner_until ? program->owner : task__read_owner(task, now);
}

/* ---- targets --------------------------------------------------------------------------------- */

int tasks__add_target(struct tasks *t, pid_t pid)
{
	struct task *task = add(t, pid);

	if (!task)
		return -ENOMEM;
	set_known(t, task);
	task->is_target = true;
	task->since = 0;
	task->until = task->ended = NEVER;
	return 0;
}

int tasks__add_parent(struct tasks *t, pid_t pid, pid_t parent)
{
	struct task *task = add(t, pid);

	if (!task)
		return -ENOMEM;
	set_known(t, task);
	if (task->parent.pid != parent)
		task->parent = (struct task_id){.pid = parent};
	return 0;
}

static bool was_target(const struct tasks *t, pid_t pid, uint64_t time)
{
	const struct task *task = tasks__find(t, pid);

	return task && task->is_target && time >= task->since && time < task->until;
}

bool tasks__is_target(const struct tasks *t, pid_t pid, uint64_t time)
{
	return t->options.everyone || was_target(t, pid, time);
}

pid_t tasks__parent(const struct tasks *t, pid_t pid)
{
	const struct task *task = tasks__find(t, pid);

	return task ? task->parent.pid : 0;
}

int tasks__living_targets(const struct tasks *t, pid_t **pids, size_t *count)
{
	pid_t *list = calloc(t->all.count + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < t->all.count; i++) {
		const struct task *task = t->all.data[i];

		if (task->is_target && task->until == NEVER)
			list[n++] = task->id.pid;
	}
	*pids = list;
	*count = n;
	return 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static int release(struct tasks *t, struct task *task, enum task_end how)
{
	int err = t->options.released ? t->options.released(t->options.context, task, how) : 0;

	if (how != TASK_EXECED)
		task->slots = (struct task_slots){};
	else
		task->slots.program = (struct task_program){};
	task->id.serial = ++t->serial;
	return err;
}

/* Has another process the pid now? A task without a fork record may be this process. */
static bool has_lost_exit(const struct task *task, uint64_t forked)
{
	return task->since && task->since < forked && task->ended == NEVER;
}

int tasks__fork(struct tasks *t, const struct task_event *event)
{
	pid_t pid = (pid_t)event->pid, parent = (pid_t)event->ppid;
	const struct task *known;
	struct task *task = tasks__find(t, pid);
	bool is_target;
	int err = 0;

	if (pid == parent) {
		if (task)
			task->has_threads = true;
		return 0;
	}
	if (task && has_lost_exit(task, event->header.time))
		err = release(t, task, TASK_EXITED);
	is_target = t->options.inherit && was_target(t, parent, event->header.time);
	if (!is_target && !t->options.everyone) {
		if (task)
			task->until = event->header.time;
		return err;
	}
	task = add(t, pid);
	if (!task)
		return -ENOMEM;
	set_known(t, task);
	known = tasks__find(t, parent);
	task->parent = (struct task_id){parent, known ? known->id.serial : 0};
	task->is_target = is_target;
	task->has_threads = false;
	task->since = event->header.time;
	task->until = task->ended = NEVER;
	return err;
}

int tasks__exit(struct tasks *t, const struct task_event *event)
{
	struct task *task = event->pid == event->tid ? tasks__find(t, (pid_t)event->pid) : NULL;

	if (!task || task->ended != NEVER || event->header.time < task->since)
		return 0;
	task->ended = event->header.time;
	return release(t, task, TASK_EXITED);
}

int tasks__exec(struct tasks *t, pid_t pid, uint64_t time)
{
	struct task *task = tasks__find(t, pid);

	if (!task)
		return 0;
	task->execed = time;
	return release(t, task, TASK_EXECED);
}

/* ---- ended tasks ----------------------------------------------------------------------------- */

static bool exists(const struct tasks *t, const struct task *task)
{
	return t->options.exists && t->options.exists(task->id.pid);
}

/*
 * Has it ended without a record? Searched twice, by this sweep and the next one: until then the
 * record of its end may come, or that of its fork.
 */
static bool has_gone(const struct tasks *t, struct task *task)
{
	bool was_missed = task->is_missed;

	task->is_missed = !exists(t, task);
	return task->is_missed && was_missed;
}

/* May other threads have outlived it? With -a it is known if the recording has its fork. */
static bool may_have_threads(const struct tasks *t, const struct task *task)
{
	return !t->options.everyone || !task->since || task->has_threads;
}

/* The entry stays while threads outlive their leader, unless a non-target reused the pid. */
static int sweep_ended(struct tasks *t, struct task **entry, uint64_t now)
{
	struct task *task = *entry;
	int err;

	if (now < task->ended + FREE_AFTER)
		return 0;
	if (task->until == NEVER && may_have_threads(t, task) && exists(t, task)) {
		task->ended = now;
		return 0;
	}
	err = release(t, task, TASK_EXITED); /* clears what late records put into its slots */
	set_known(t, task);
	task_map__remove(&t->all, entry);
	free(task);
	return err;
}

int tasks__sweep(struct tasks *t, uint64_t now)
{
	bool search = t->options.exists && now >= t->searched + SEARCH_INTERVAL;
	int err = 0;

	if (now < t->swept + SWEEP_INTERVAL)
		return 0;
	t->swept = now;
	t->searched = search ? now : t->searched;
	for (size_t i = t->all.count; i-- > 0;) {
		struct task *task = t->all.data[i];
		int failed = 0;

		if (task->ended != NEVER) {
			failed = sweep_ended(t, &t->all.data[i], now);
		} else if ((search || task->is_missed) && has_gone(t, task)) {
			task->ended = now;
			failed = release(t, task, TASK_GONE);
		}
		err = err ? err : failed;
	}
	return err;
}
