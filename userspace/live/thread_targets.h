/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_THREAD_TARGETS_H
#define LIVE_THREAD_TARGETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct task_event;
struct thread_targets;

/* Thread `tid` of process `pid`. 0, -ENOMEM. */
int thread_targets__add(struct thread_targets *t, uint32_t tid, uint32_t pid);
void thread_targets__fini(struct thread_targets *t);

/*
 * Records are read from now on: a thread that does not run now has ended. `runs`, here and below:
 * does the thread exist, and is it no zombie?
 */
void thread_targets__begin(struct thread_targets *t, bool (*runs)(pid_t tid));
/* Takes an exit record. */
void thread_targets__exit(struct thread_targets *t, const struct task_event *event);
/*
 * Checks again at `now`; thread_targets__exit() has had all records older than `read_until`. True:
 * all threads have ended, and there was one.
 */
bool thread_targets__ended(struct thread_targets *t, bool (*runs)(pid_t tid), uint64_t now,
			   uint64_t read_until);

/* Is a thread, by its present number, requested? */
bool thread_targets__has(const struct thread_targets *t, uint32_t tid);

#endif
