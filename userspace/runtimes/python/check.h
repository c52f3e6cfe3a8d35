/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a layout that is not known for this version of CPython holds: it is used, and what it gives is looked at. */
#ifndef RUNTIMES_PYTHON_CHECK_H
#define RUNTIMES_PYTHON_CHECK_H

#include "runtimes/python/layout.h"
#include "runtimes/target_memory.h"

/*
 * One thread must have a stack that ends at its root, all of code objects of the one type, the outermost of which is
 * named as such are ("<module>", "Thread._bootstrap"). CPYTHON_OK; CPYTHON_NOT_STARTED: no thread has a frame;
 * CPYTHON_BAD_TABLE: what there is does not pass; CPYTHON_UNREADABLE.
 */
enum cpython_verdict cpython__self_check(const struct cpython *py, struct target_memory *m);

#endif
