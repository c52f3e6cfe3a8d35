/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/order.h"
#include "base/vec.h"
#include "live/proc/process_facts.h"

struct memory {
	struct memory_options options;
	int proc_fd;
	pid_t self;
	VEC(pid_t) sampled; /* since the last round */
	VEC(struct task *) busy;
};

static void memory__free(void *memory)
{
	struct memory *m = memory;

	if (m->proc_fd >= 0)
		close(m->proc_fd);
	vec_free(&m->sampled);
	vec_free(&m->busy);
	free(m);
}

/* If there is no memory for the entry, the process is not read in this round. */
static int memory__sampled(void *memory, struct task *task, const struct sample_event *sample)
{
	struct memory *m = memory;

	(void)sample;
	if (!task->slots.samples && vec_push(&m->sampled, task->id.pid))
		return 0;
	task->slots.samples++;
	return 0;
}

static bool is_due(const struct memory *m, const struct task *task, uint64_t time)
{
	return !task->slots.program.has_no_memory &&
	       (!m->options.groups_only || time >= task->slots.program.cgroup_next);
}

static int read_process(struct memory *m, struct task *task, uint64_t time)
{
	uint16_t flags = task->id.pid == m->self ? EVENT_RECORDER : 0;
	char path[32];
	int pushed;

	if (!is_due(m, task, time))
		return 0;
	snprintf(path, sizeof(path), "%d/statm", task->id.pid);
	pushed = process_facts__memory(m->proc_fd, path, task->id.pid, flags, time, m->options.push,
				       m->options.context);
	if (pushed < 0)
		return pushed;
	task->slots.program.has_no_memory = !pushed;
	if (!pushed || time < task->slots.program.cgroup_next)
		return 0;
	task->slots.program.cgroup_next = time + WATCH_CGROUP_NS;
	snprintf(path, sizeof(path), "%d/cgroup", task->id.pid);
	pushed = process_facts__cgroup(m->proc_fd, path, task->id.pid, time, m->options.push,
				       m->options.context);
	return pushed < 0 ? pushed : 0;
}

DEFINE_ORDER(compare_busy, struct task *,
	     order_of((*y)->slots.samples, (*x)->slots.samples)
		     ?: order_of((*x)->id.pid, (*y)->id.pid));

/* A pid that was reused since its sample is listed twice; a task without samples has been read. */
static int find_busy(struct memory *m)
{
	int err = 0;

	m->busy.count = 0;
	for (size_t i = 0; i < m->sampled.count && !err; i++) {
		struct task *task = tasks__find(m->options.tasks, m->sampled.data[i]);

		if (task && task->slots.samples)
			err = vec_push(&m->busy, task);
	}
	m->sampled.count = 0;
	vec_sort(&m->busy, compare_busy);
	return err;
}

static int read_busy(struct memory *m, uint64_t time)
{
	unsigned int reads = 0;
	int err = find_busy(m);

	for (size_t i = 0; i < m->busy.count; i++) {
		struct task *task = m->busy.data[i];
		bool is_first = task->slots.samples > 0;

		task->slots.samples = 0;
		if (!err && is_first && reads < WATCH_MOST && is_due(m, task, time)) {
			reads++;
			err = read_process(m, task, time);
		}
	}
	return err;
}

static int read_always(struct memory *m, pid_t pid, uint64_t time)
{
	struct task *task = tasks__need(m->options.tasks, pid);

	if (!task)
		return 0;
	task->slots.samples = 0;
	return read_process(m, task, time);
}

static int memory__second(void *memory, uint64_t time)
{
	struct memory *m = memory;
	const struct pid_list *always = m->options.always;
	int err = read_always(m, m->self, time);

	for (size_t i = 0; i < always->count && i < WATCH_MOST && !err; i++)
		err = read_always(m, always->data[i], time);
	return err ? err : read_busy(m, time);
}

int memory_part__new(const struct memory_options *options, struct live_part *part)
{
	struct memory *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->options = *options;
	m->self = getpid();
	m->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->proc_fd < 0) {
		err = -errno;
		memory__free(m);
		return err;
	}
	*part = (struct live_part){.object = m,
				   .sampled = memory__sampled,
				   .second = memory__second,
				   .free = memory__free};
	return 0;
}
