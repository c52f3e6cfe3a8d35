/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/gil.h"

#include <errno.h>

int cpython_gil__holder(const struct cpython *py, struct target_memory *m, uint64_t interpreter,
			uint64_t *thread_state)
{
	const struct cpython_layout *l = &py->layout;
	uint64_t gil = py->runtime;
	uint32_t locked;
	int err = 0;

	*thread_state = 0;
	if (l->interp_gil)
		err = target_memory__word(m, &gil, interpreter + l->interp_gil);
	if (!err && !gil)
		return -ENOENT;
	if (!err)
		err = target_memory__u32(m, &locked, gil + l->gil_locked);
	if (err || locked == 0)
		return err;
	if (locked != 1) /* -1: not made yet */
		return -ENOENT;
	/* it keeps the last holder when it is free: that is why `locked` is read first */
	return target_memory__word(m, thread_state, gil + l->gil_holder);
}

/* runtime.interpreters: the newest one, and behind it the main one. */
#define MAIN_INTERPRETER 8u

int cpython_gil__of_main(const struct cpython *py, struct target_memory *m,
			 struct cpython_main_gil *main)
{
	const struct cpython_layout *l = &py->layout;
	uint64_t gil = py->runtime;
	int err = 0;

	*main = (struct cpython_main_gil){};
	if (l->gil_locked != l->gil_holder + sizeof(uint64_t))
		return -ENOENT;
	if (l->interp_gil)
		err = target_memory__word(m, &main->interpreter,
					  py->runtime + l->interpreters + MAIN_INTERPRETER);
	if (!err && l->interp_gil)
		err = main->interpreter
			      ? target_memory__word(m, &gil, main->interpreter + l->interp_gil)
			      : -ENOENT;
	if (!err && gil)
		main->address = gil + l->gil_holder;
	return err || main->address ? err : -ENOENT;
}

int cpython_gil__holds(const struct cpython *py, struct target_memory *m, uint64_t thread_state,
		       bool *holds)
{
	const struct cpython_layout *l = &py->layout;
	uint64_t interpreter, holder = 0;
	uint32_t flag;
	int err;

	*holds = false;
	if (l->thread_holds_gil) {
		err = target_memory__u32(m, &flag, thread_state + l->thread_holds_gil);
		*holds = !err && flag;
		return err;
	}
	err = target_memory__word(m, &interpreter, thread_state + l->thread_interp);
	if (!err)
		err = cpython_gil__holder(py, m, interpreter, &holder);
	*holds = !err && holder == thread_state;
	return err;
}

int cpython_gil__waits(const struct cpython *py, struct target_memory *m, uint64_t thread_state,
		       bool *waits)
{
	uint32_t flag;
	int err;

	*waits = false;
	if (!py->layout.thread_requests_gil)
		return -ENOTSUP;
	err = target_memory__u32(m, &flag, thread_state + py->layout.thread_requests_gil);
	*waits = !err && flag;
	return err;
}
