/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GIL: the thread that holds it, in all versions; threads that wait for it, from 3.15 on. Threads are named by
 * their PyThreadState.
 */
#ifndef RUNTIMES_PYTHON_GIL_H
#define RUNTIMES_PYTHON_GIL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/python/layout.h"
#include "runtimes/target_memory.h"

/*
 * The thread that holds the GIL of an interpreter, 0: none does. Interpreters may share one; where each has its own, the
 * answer is for this. 0; -ENOENT: it has no GIL (yet); negative errno of a read.
 */
int cpython_gil__holder(const struct cpython *py, struct target_memory *m, uint64_t interpreter,
			uint64_t *thread_state);

/* The same for the interpreter that a thread is of: does this thread hold it? One read from 3.14 on, four before. */
int cpython_gil__holds(const struct cpython *py, struct target_memory *m, uint64_t thread_state,
		       bool *holds);

/*
 * The GIL of the main interpreter: where it has {PyThreadState *holder; int locked}, and which interpreter that is (0: all share
 * one, 3.11). 0; -ENOENT: there is none (yet), or it is laid out otherwise; negative errno of a read.
 */
struct cpython_main_gil {
	uint64_t address, interpreter;
};
int cpython_gil__of_main(const struct cpython *py, struct target_memory *m,
			 struct cpython_main_gil *main);

/* Whether a thread waits for the GIL. -ENOTSUP before 3.15. */
int cpython_gil__waits(const struct cpython *py, struct target_memory *m, uint64_t thread_state,
		       bool *waits);

#endif
