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

#include "base/outside_books.h"
#include "helpers/pool.h"
#include "live/part.h"
#include "stream/event_queue.h"

struct code_options {
	struct tasks *tasks;
	struct helper_pool *readers;
	unsigned int service;	     /* code_reader__serve among theirs */
	struct outside_books *books; /* or NULL */
	event_push_fn push;	     /* for events that were read */
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

/*
 * The process's functions are in a map or dump that is followed: its frames get no notes any more,
 * except in a JVM, whose map lacks interpreted methods and those compiled after it was written.
 */
void code_part__reports(const struct live_part *part, pid_t pid);
/* Perf maps are not read while paused: frames of processes with a map get notes like others. */
void code_part__pause_maps(const struct live_part *part, bool pause);
/*
 * A profile is about to end: requests functions again that were sampled since their last reading,
 * because their words may have been another function's then. 0 or -ENOMEM.
 */
int code_part__close(const struct live_part *part, uint64_t now);
/* Does a live process have a request that is due or unanswered? */
bool code_part__waits(const struct live_part *part);
/* Is a look at a process under way? Until its answer, samples of it have no names. */
bool code_part__looks(const struct live_part *part);
/*
 * When a function of a script was last requested for the first time, CLOCK_MONOTONIC ns; 0: never.
 * Such requests come in series.
 */
uint64_t code_part__met(const struct live_part *part);
/* When a runtime or function was last met in a process that had just begun: it may be gone soon. */
uint64_t code_part__begun(const struct live_part *part);

/* Does HotSpot's code keep frame pointers (-XX:+PreserveFramePointer)? False until that is read. */
bool code_keeps_frame_pointers(const struct tasks *tasks, pid_t pid);

#endif
