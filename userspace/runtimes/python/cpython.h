/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython in the memory of a process: layout, code objects, the runtime, threads. */
#ifndef RUNTIMES_PYTHON_CPYTHON_H
#define RUNTIMES_PYTHON_CPYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sysprof/event.h>

#include "runtimes/answers.h"
#include "runtimes/target_memory.h"

#endif
