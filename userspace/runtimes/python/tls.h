/* SPDX-License-Identifier: BSD-2-Clause */
/* From 3.15 on: where in thread-local storage the state of a thread is. Part of cpython_thread.h. */
#ifndef RUNTIMES_PYTHON_TLS_H
#define RUNTIMES_PYTHON_TLS_H

#include <stdbool.h>

#include "runtimes/python/thread.h"

/* By the instructions of PyGILState_GetThisThreadState(). False: they are not known. The result has to be tried. */
bool cpython_tls__by_code(const struct cpython_image *image, struct target_memory *m,
			  struct cpython_thread_word *word);

/*
 * By looking at the storage of threads: the word that is the thread's state in each of them. As
 * cpython_thread_word__find(); CPYTHON_NOT_STARTED: more than one word is, at this moment.
 */
enum cpython_verdict cpython_tls__by_comparison(const struct cpython *py, struct target_memory *m,
						struct cpython_thread_word *word);

#endif
