/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_PYTHON_THREAD_H
#define RUNTIMES_PYTHON_THREAD_H

#include <stdint.h>

#include "runtimes/python/layout.h"

struct cpython_image;
struct target_memory;

/*
 * The state (PyThreadState) of a thread, by its fs base, and the states that an interpreter lists.
 *
 * A thread's current state (_Py_tss_tstate) is no help: it is NULL whenever the GIL is released.
 * The one that PyGILState_GetThisThreadState() returns stays: up to 3.14 under a pthread key, from
 * 3.15 on in a word of thread-local storage. Both are found from the fs base by a few loads.
 */

#define CPYTHON_HOPS 3u

/*
 * p = fs base; for each hop p = *(u64 *)(p + offset): p is the state, or 0. One hop: thread-local
 * storage at a constant offset, or a key below 32. Two: a larger key. Three: the storage of a
 * library that was loaded later (through the DTV). If a load fails, the thread has no state yet.
 */
struct cpython_thread_word {
	uint32_t hops;
	int64_t offset[CPYTHON_HOPS];
};

/*
 * Finds that word, and tries it on the listed threads: a state has its thread's fs base.
 * CPYTHON_OK; CPYTHON_NOT_STARTED: no thread to try it on, or too few to be sure;
 * CPYTHON_OTHER_LIBC; CPYTHON_THREADS_UNKNOWN; CPYTHON_UNREADABLE.
 */
enum cpython_verdict cpython_thread_word__find(const struct cpython *py,
					       const struct cpython_image *image,
					       struct target_memory *m,
					       struct cpython_thread_word *word);

/* 0 and the state, 0 if the thread has none; -EDQUOT, -ESRCH, -EPERM as of target_memory. */
int cpython_thread_word__state(const struct cpython_thread_word *word, struct target_memory *m,
			       uint64_t fs, uint64_t *state);

#define CPYTHON_THREADS_MAX 4096u /* that are reported of all interpreters */

struct cpython_thread {
	uint64_t state, interpreter;
	uint64_t fs; /* 0: it is not bound to a thread */
};

/*
 * Visits each thread state of each interpreter, newest first, as far as links lead. A nonzero
 * `visit` ends it and is returned. 0; -ENOENT: no interpreter; errno of the first failed read.
 */
typedef int (*cpython_thread_fn)(void *context, const struct cpython_thread *thread);
int cpython__each_thread(const struct cpython *py, struct target_memory *m, cpython_thread_fn visit,
			 void *context);

#endif
