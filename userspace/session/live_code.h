/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes with a runtime whose functions can be named, and their functions that are to be read.
 *
 * If a sampled process maps such a runtime, or executes a program that may have one linked into it, a reader searches
 * it. The result goes into the kernel, which notes the function of each frame from then on. A function in a note for
 * the first time is read at once, because memory of functions is reused within milliseconds. Functions that are
 * identified by an address alone are read again while they are sampled.
 */
#ifndef SESSION_LIVE_CODE_H
#define SESSION_LIVE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "base/outside_books.h"
#include "helpers/pool.h"
#include "stream/event_queue.h"

struct live_code;

struct live_code_options {
	struct helper_pool *readers;
	unsigned int service;	     /* of theirs: code_reader__serve */
	struct outside_books *books; /* or NULL */
	event_push_fn push;	     /* events that were read */
	void *context;
	/* The kernel's entry of a process; NULL: removes it. 0, -ENOSPC or another negative errno. */
	int (*set_runtime)(void *context, uint32_t tgid, const struct runtime_info *info);
	void *runtime_context;
};

/* 0 or -ENOMEM. */
int live_code__new(const struct live_code_options *options, struct live_code **code);
/* The pool must have ended. NULL is fine. */
void live_code__free(struct live_code *c);

/* A process mapped a file, as far as it is known. 0 or -ENOMEM. */
int live_code__mapped(struct live_code *c, const struct mmap_event *mapping);
/*
 * A child has the functions of its parent at `time` (CLOCK_MONOTONIC): those that were read of the parent until then
 * are not read again, others are requested of both, because many children end before they can be read. 0 or -ENOMEM.
 */
int live_code__forked(struct live_code *c, uint32_t parent, uint32_t child, uint64_t time);
/* A copy of a function, before its first sample. 0, -ENOMEM, or what `push` has returned. */
int live_code__copied(struct live_code *c, const struct code_copy_event *copy);
/* 0 or -ENOMEM. */
int live_code__sampled(struct live_code *c, const struct sample_event *sample);
/* It writes down its functions itself, in a map or a dump that is followed: nothing is noted of it any more. A JVM's stacks are walked all the same. */
void live_code__reports(struct live_code *c, uint32_t pid);
/* It called execve, or has ended. */
void live_code__forget(struct live_code *c, uint32_t pid);
/* HotSpot's code keeps frame pointers in this process (-XX:+PreserveFramePointer). False until that is read. */
bool live_code__keeps_frame_pointers(const struct live_code *c, uint32_t pid);
/* Looks at the processes that are there before sampling begins, where they are few. 0 or -ENOMEM. */
int live_code__begin(struct live_code *c);
/*
 * A profile is about to end: functions that were sampled since their last reading are to be read again, because their
 * words may have been another function's at that time. 0 or -ENOMEM.
 */
int live_code__close(struct live_code *c, uint64_t now);
/* Is there a request to be made or without an answer, for a live process? */
bool live_code__waits(const struct live_code *c);
/* Is a process being looked at? Its samples have no names until that is answered. */
bool live_code__looks(const struct live_code *c);
/*
 * Time of the last first request for a function of a script, CLOCK_MONOTONIC ns; 0: never. Such requests come in
 * series.
 */
uint64_t live_code__met(const struct live_code *c);
/* When something was met last in a process that had just begun: a runtime, or a function of it. The process may be gone soon. */
uint64_t live_code__begun(const struct live_code *c);
/* Makes the requests that are due. 0, -ENOMEM, or what `push` has returned. */
int live_code__run(struct live_code *c, uint64_t now);

#endif
