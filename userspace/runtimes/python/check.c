/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtimes/python/code.h"
#include "runtimes/python/thread.h"
#include "runtimes/python/walk.h"

#define FRAMES_MAX  512u
#define GROUPS_MAX  128u
#define PASSED_MAX  1024u
#define THREADS_MAX 16u
#define ATTEMPTS    3 /* it runs meanwhile */

struct check {
	const struct cpython *py;
	struct target_memory *m;
	struct cpython_frame frames[FRAMES_MAX];
	struct cpython_group groups[GROUPS_MAX];
	struct managed_function function;
	uint32_t threads, with_frames;
	bool good;
};

static bool is_outermost(const char *name)
{
	static const char *const names[] = {"<module>", "Thread._bootstrap", "_bootstrap"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool is_stack_good(struct check *c, uint64_t state)
{
	struct cpython_stack stack = {.frames = c->frames,
				      .frames_max = FRAMES_MAX,
				      .groups = c->groups,
				      .groups_max = GROUPS_MAX,
				      .passed_max = PASSED_MAX};
	const struct cpython_frame *last;

	cpython__walk(c->py, c->m, state, &stack);
	if (!stack.frame_count) {
		c->with_frames += stack.end != CPYTHON_END_ROOT;
		return false;
	}
	c->with_frames++;
	last = &c->frames[stack.frame_count - 1];
	c->function.rows.count = 0;
	return stack.end == CPYTHON_END_ROOT &&
	       cpython_code__read(c->py, c->m, last->code, &last->identity, &c->function) ==
		       CPYTHON_CONFIRMED &&
	       is_outermost(c->function.name) && c->function.file[0];
}

static int check_thread(void *context, const struct cpython_thread *thread)
{
	struct check *c = context;

	for (int i = 0; i < ATTEMPTS && !c->good; i++)
		c->good = is_stack_good(c, thread->state);
	return c->good || ++c->threads == THREADS_MAX;
}

enum cpython_verdict cpython__self_check(const struct cpython *py, struct target_memory *m)
{
	_cleanup_free_ struct check *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return CPYTHON_UNREADABLE;
	c->py = py;
	c->m = m;
	err = cpython__each_thread(py, m, check_thread, c);
	managed_function__fini(&c->function);
	if (c->good)
		return CPYTHON_OK;
	if (err == -EDQUOT || err == -ESRCH || err == -EPERM)
		return CPYTHON_UNREADABLE;
	return c->with_frames || err == -ENODATA ? CPYTHON_BAD_TABLE : CPYTHON_NOT_STARTED;
}
