/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends children. One that waits for a hung file system ignores even SIGKILL: it is left to init. */
#ifndef TENANTS_WATCH_H
#define TENANTS_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define REAP_NS UINT64_C(1000000000)

/* Kills the child, waits up to `wait_ns`. 0: as wait4(); -ETIMEDOUT: it is left, do not reap it. */
int end_process(pid_t pid, uint64_t wait_ns, int *status, struct rusage *usage);

/* Runnable (it may wait long for a CPU) or stopped. False if it sleeps or has ended. */
bool process_is_runnable(pid_t pid);

/*
 * Progress of a child, which the caller checks repeatedly. `since`: time of its last progress
 * (CLOCK_MONOTONIC ns), 0 at first; the caller sets it after each message.
 */
struct liveness {
	uint64_t cpu_ns, since, looked;
};
/*
 * The child has used less than 1 ms of CPU time for `wait_ns` and is not runnable. The time between
 * two calls counts as at most a quarter of that: on a machine that stood still, it could not run
 * either.
 */
bool liveness__is_stuck(struct liveness *l, pid_t pid, uint64_t now, uint64_t wait_ns);

#endif
