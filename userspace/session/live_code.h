/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes have a runtime whose functions can be named, and which of their functions are to be read.
 *
 * A process that maps such a runtime, or executes a program that may have one linked into it, is looked at by a reader when it is sampled; what it finds goes into the kernel, which
 * notes from then on which function each frame is of. What a note has for the first time is read at once: memory of functions
 * that are gone is used again within milliseconds. Functions that are known by an address alone are read again while they are sampled.
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
	/* What the kernel has to know of a process; NULL: nothing any more. 0, -ENOSPC or another negative errno. */
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
 * A child has what its parent had, at `time` (CLOCK_MONOTONIC): functions that were read of the parent until then are not read
 * again, others are asked of both, since many children are gone before they can be asked. 0 or -ENOMEM.
 */
int live_code__forked(struct live_code *c, uint32_t parent, uint32_t child, uint64_t time);
/* What names a function, before the sample that has it first. 0, -ENOMEM, or what `push` has returned. */
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
 * A profile is about to end: functions that were sampled since they were read are to be asked about again, since their words may
 * have been another one's then. 0 or -ENOMEM.
 */
int live_code__close(struct live_code *c, uint64_t now);
/* Is something to be asked, or asked and not answered, of a process that lives? */
bool live_code__waits(const struct live_code *c);
/* Is a process being looked at? Its samples have no names until that is answered. */
bool live_code__looks(const struct live_code *c);
/* When a function of a script was asked about last for the first time, CLOCK_MONOTONIC ns; 0: never. Where there was one, there is another. */
uint64_t live_code__met(const struct live_code *c);
/* When something was met last in a process that had just begun: a runtime, or a function of it. The process may be gone soon. */
uint64_t live_code__begun(const struct live_code *c);
/* Asks what is to be asked. 0, -ENOMEM, or what `push` has returned. */
int live_code__run(struct live_code *c, uint64_t now);

#endif
