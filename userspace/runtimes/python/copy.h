/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of functions of CPython from the bytes that the kernel has copied at their first sample: no process is read,
 * so it may have ended. It is the reading of runtimes/python/code.h, from these few bytes.
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
