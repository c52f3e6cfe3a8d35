/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of functions of CPython from what the kernel has copied of them at their first sample: no process is read, and who made
 * them may be gone. It is the reading of runtimes/python/code.h, of the few bytes that are there.
 */
#ifndef RUNTIMES_PYTHON_COPY_H
#define RUNTIMES_PYTHON_COPY_H

#include <sysprof/event.h>

#include "runtimes/answers.h"
#include "runtimes/python/layout.h"

/*
 * Adds its EVENT_CODE_FUNCTION. The copy was checked (event_check). 0; -ENODATA: it does not have all that is needed, or the
 * layout is not sound; -ENOMEM.
 */
int code_copy__send(struct code_answers *answers, const struct code_copy_event *copy,
		    const struct cpython_layout *layout);

#endif
