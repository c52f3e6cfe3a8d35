/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reads functions of runtimes: which processes have one, and which of their functions are to be read.
 *
 * If a sampled process maps such a runtime, or executes a program that may have one linked into it, a reader searches
 * it. The result goes into the kernel, which notes the function of each frame from then on. A function in a note for
 * the first time is read at once, because memory of functions is reused within milliseconds. Functions that are
 * identified by an address alone are read again while they are sampled.
 *
 * A child has the functions of its parent at the fork: those that were read of the parent until then are not read
 * again, others are requested of both, because many children end before they can be read.
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
	unsigned int service;	     /* of theirs: code_reader__serve */
	struct outside_books *books; /* or NULL */
	event_push_fn push;	     /* events that were read */
	void *context;
	/* The kernel's entry of a process; NULL: removes it. 0, -ENOSPC or another negative errno. */
	int (*set_runtime)(void *context, uint32_t tgid, const struct runtime_info *info);
	void *runtime_context;
};

/*
 * 0 or -ENOMEM. The pool must have ended before `free`. `begin` looks at the processes that are there, if they are few.
 * `tick` makes the requests that are due.
 */
int code_part__new(const struct code_options *options, struct live_part *part);

/*
 * It writes down its functions itself, in a map or a dump that is followed: nothing is noted of it any more, except in a JVM, whose
 * map has neither interpreted methods nor those that were compiled after it was written.
 */
void code_part__reports(const struct live_part *part, pid_t pid);
/* Perf maps are not read: what processes with a map have is noted meanwhile, as in others. */
void code_part__pause_maps(const struct live_part *part, bool pause);
/*
 * A profile is about to end: functions that were sampled since their last reading are to be read again, because their
 * words may have been another function's at that time. 0 or -ENOMEM.
 */
int code_part__close(const struct live_part *part, uint64_t now);
/* Is there a request to be made or without an answer, for a live process? */
bool code_part__waits(const struct live_part *part);
/* Is a process being looked at? Its samples have no names until that is answered. */
bool code_part__looks(const struct live_part *part);
/*
 * Time of the last first request for a function of a script, CLOCK_MONOTONIC ns; 0: never. Such requests come in
 * series.
 */
uint64_t code_part__met(const struct live_part *part);
/* When something was met last in a process that had just begun: a runtime, or a function of it. The process may be gone soon. */
uint64_t code_part__begun(const struct live_part *part);

/* HotSpot's code keeps frame pointers in this process (-XX:+PreserveFramePointer). False until that is read. */
bool code_keeps_frame_pointers(const struct tasks *tasks, pid_t pid);

#endif
