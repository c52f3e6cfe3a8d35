/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython in the memory of a process: layout, code objects, the runtime, threads. */
#ifndef RUNTIMES_PYTHON_CPYTHON_H
#define RUNTIMES_PYTHON_CPYTHON_H

#include <sysprof/event.h>

#endif
