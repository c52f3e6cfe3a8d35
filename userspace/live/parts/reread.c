/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/reread.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

#define REREAD_FIRST	  100000000ULL /* ns */
#define REREAD_STEPS	  7u
#define REREADS_PER_ROUND 32u

struct reread {
	struct reread_options options;
	VEC(pid_t) waiting;
};

static void reread__free(void *reread)
{
	struct reread *r = reread;

	vec_free(&r->waiting);
	free(r);
}

void reread_part__request(void *reread, __u32 pid)
{
	struct reread *r = reread;
	struct task *task = tasks__need(r->options.tasks, (pid_t)pid);

	if (task && !task->slots.rereads)
		task->slots.rereads = !vec_push(&r->waiting, task->id.pid);
}

/* The file may be found by then. */
static int reread__mapped(void *reread, struct task *task, const struct mmap_event *mapping)
{
	if (mapping->file_state == FILE_STATE_LATE)
		reread_part__request(reread, (__u32)task->id.pid);
	return 0;
}

/* Reading may add requests to the end of the list. */
static int reread__tick(void *reread, uint64_t now)
{
	struct reread *r = reread;
	unsigned int reads = 0;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < r->waiting.count; i++) {
		pid_t pid = r->waiting.data[i];
		struct task *task = tasks__find(r->options.tasks, pid);
		struct task_program *program = task ? &task->slots.program : NULL;

		/* it has ended since */
		if (!task || !task->slots.rereads)
			continue;
		if (program->reread_next > now || reads == REREADS_PER_ROUND || err) {
			r->waiting.data[kept++] = pid;
			continue;
		}
		reads++;
		task->slots.rereads = false;
		program->reread_next = now + (REREAD_FIRST << program->reread_times);
		program->reread_times += program->reread_times < REREAD_STEPS;
		err = proc_snapshot__process(r->options.snapshot, pid, false, r->options.push,
					     r->options.context);
	}
	r->waiting.count = kept;
	return err;
}

int reread_part__new(const struct reread_options *options, struct live_part *part)
{
	struct reread *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->options = *options;
	*part = (struct live_part){
		.object = r, .mapped = reread__mapped, .tick = reread__tick, .free = reread__free};
	return 0;
}
