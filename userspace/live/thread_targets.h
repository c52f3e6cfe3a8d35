/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requested threads, each by its present number, and whether it has ended.
 *
 * A thread that calls execve gets the number of its process's leader: its own is gone, and it goes on. A number
 * that is gone is that of a thread that has ended only if an exit record was seen; since records arrive later than
 * /proc changes, this is decided when all records of that moment have been read.
 */
#ifndef LIVE_THREAD_TARGETS_H
#define LIVE_THREAD_TARGETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "base/vec.h"

struct thread_target {
	uint32_t tid, pid;
	bool ended;
	uint64_t gone; /* CLOCK_MONOTONIC ns when /proc had it no more; 0: it had */
};

struct thread_targets {
	VEC(struct thread_target) threads;
};

/* Thread `tid` of process `pid`. 0, -ENOMEM. */
int thread_targets__add(struct thread_targets *t, uint32_t tid, uint32_t pid);
void thread_targets__fini(struct thread_targets *t);

/*
 * Records come from now on: a thread that does not run by now has ended. `runs`, here and below: does the thread with
 * this number exist, and is no zombie?
 */
void thread_targets__begin(struct thread_targets *t, bool (*runs)(pid_t tid));
/* An exit record. */
void thread_targets__exit(struct thread_targets *t, const struct task_event *event);
/*
 * Look again, at time `now`; all records older than `read_until` have been handed to thread_targets__exit(). True: all
 * have ended, and there was one.
 */
bool thread_targets__ended(struct thread_targets *t, bool (*runs)(pid_t tid), uint64_t now,
			   uint64_t read_until);

/* Is a thread requested, by its present number? */
bool thread_targets__has(const struct thread_targets *t, uint32_t tid);

#endif
