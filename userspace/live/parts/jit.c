/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/jit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clocks.h"
#include "base/proc_task.h"
#include "jit/follow/jit_find.h"

#define START_PATIENCE 100000000ull  /* ns: to read what there is before sampling begins */
#define STOP_PATIENCE  1000000000ull /* ns: to read all once more */

static int follow_process(struct jit_tail *tail, struct task *task)
{
	if (task->slots.program.has_jit)
		return 0;
	task->slots.program.has_jit = true;
	return jit_tail__follow(tail, task->id.pid);
}

static int jit__mapped(void *jit, struct task *task, const struct mmap_event *mmap)
{
	const struct jit_options *j = jit;
	int err;

	if (!jit_is_dump(mmap->path))
		return mapping_is_run_time_code(mmap->path, mmap->build_id_size > 0,
						mmap->file_state != FILE_STATE_NONE)
			       ? follow_process(j->tail, task)
			       : 0;
	err = follow_process(j->tail, task);
	return err ? err
		   : jit_tail__follow_dump(j->tail, task->id.pid, mmap->path, mmap->start,
					   mmap->start + mmap->length);
}

static int jit__ended(void *jit, struct task *task)
{
	const struct jit_options *j = jit;

	return task->slots.program.has_jit ? jit_tail__gone(j->tail, task->id.pid) : 0;
}

static int jit__tick(void *jit, uint64_t now)
{
	const struct jit_options *j = jit;

	return jit_tail__take(j->tail, now, j->push, j->context);
}

static int jit__begin(void *jit)
{
	const struct jit_options *j = jit;

	jit_tail__settle(j->tail, START_PATIENCE);
	return jit__tick(jit, monotonic_ns());
}

static int jit__finish(void *jit, uint64_t time)
{
	const struct jit_options *j = jit;

	jit_tail__finish(j->tail, STOP_PATIENCE);
	return jit__tick(jit, time);
}

static void jit__pause(void *jit, bool pause)
{
	const struct jit_options *j = jit;

	jit_tail__pause(j->tail, pause);
}

static void jit__free(void *jit)
{
	const struct jit_options *j = jit;

	jit_tail__free(j->tail);
	free(jit);
}

int jit_part__new(const struct jit_options *options, struct live_part *part)
{
	struct jit_options *j = malloc(sizeof(*j));

	if (!j)
		return -ENOMEM;
	*j = *options;
	*part = (struct live_part){.object = j,
				   .mapped = jit__mapped,
				   .execed = jit__ended,
				   .exited = jit__ended,
				   .begin = jit__begin,
				   .tick = jit__tick,
				   .finish = jit__finish,
				   .pause_jit = jit__pause,
				   .free = jit__free};
	return 0;
}
