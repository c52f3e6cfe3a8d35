/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ending a child that may not end: one that waits for a file system which does not answer takes no signal, not even
 * SIGKILL. It is left behind then, for init.
 */
#ifndef HELPERS_WATCH_H
#define HELPERS_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define REAP_NS UINT64_C(1000000000)

/*
 * Kill the child and wait for it, `wait_ns` at most. 0, and the results of wait4(); -ETIMEDOUT: it is abandoned, and
 * must not be waited for any more.
 */
int end_process(pid_t pid, uint64_t wait_ns, int *status, struct rusage *usage);

/*
 * Is it runnable, or stopped? On a busy host it may wait for a CPU for long. False of one that sleeps or has ended.
 */
bool process_is_runnable(pid_t pid);

/*
 * Does a child make progress? The caller checks repeatedly. `since` is the time of the child's last progress
 * (CLOCK_MONOTONIC ns), 0 at first; the caller sets it after each message.
 */
struct liveness {
	uint64_t cpu_ns, since, looked;
};
/*
 * True: for `wait_ns` it has neither run nor been runnable. The time between two calls counts as a quarter of that at
 * most: if the machine stood still, the child could not run either.
 */
bool liveness__is_stuck(struct liveness *l, pid_t pid, uint64_t now, uint64_t wait_ns);

#endif
