/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reads functions of runtimes: finds processes with a runtime, and functions to read.
 *
 * If a sampled process maps a runtime, or its program may have one linked in, a reader searches it.
 * The result goes into the kernel, which then notes the function of each frame. A function noted
 * for the first time is read at once, because its memory may be reused within milliseconds.
 * Functions that only an address identifies are read again while they are sampled.
 *
 * A child has the functions of its parent at the fork: functions read from the parent before are
 * not read again; others are requested of both, because many children end before they can be read.
 */
#ifndef LIVE_CODE_H
#define LIVE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "live/part.h"
#include "stream/event_queue.h"
#include "tenants/pool.h"

struct code_options {
	struct tasks *tasks;
	struct helper_pool *readers;
	unsigned int service;	     /* code_reader__serve among theirs */
	struct outside_books *books; /* or NULL */
	event_push_fn push; /* for events that were read, which may be older than passed on ones */
	void *context;
	/* The kernel's entry of a process; NULL: removes it. 0, -E2BIG (full), other -errno. */
	int (*set_runtime)(void *context, uint32_t tgid, const struct runtime_info *info);
	void *runtime_context;
};

/*
 * 0 or -ENOMEM. `begin` looks at existing processes, if they are few; `tick` sends requests that
 * are due. The pool must have ended before `free`.
 */
int code_part__new(const struct code_options *options, struct live_part *part);

/* Does HotSpot's code keep frame pointers (-XX:+PreserveFramePointer)? False until that is read. */
bool code_keeps_frame_pointers(const struct tasks *tasks, pid_t pid);

#endif
