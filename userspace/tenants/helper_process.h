/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of one helper process: its start, its progress, its end. Pools have such processes
 * (tenants/pool.h), and owners of helpers that stay. A process that waits for a hung file system
 * ignores even SIGKILL: it is left to init.
 */
#ifndef TENANTS_HELPER_PROCESS_H
#define TENANTS_HELPER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "tenants/child.h"
#include "tenants/message.h"

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

/* ---- a process ------------------------------------------------------------------------------- */

struct helper_process {
	int socket; /* -1: there is no process */
	pid_t pid;  /* 0: a keeper forks it, and it has not sent its pid */
	int pidfd;  /* -1: a child of this process, which reaps it */
	struct liveness liveness;
};
#define HELPER_PROCESS_NONE ((struct helper_process){.socket = -1, .pidfd = -1})

/* In a keeper's child: its first message. 0 or negative errno. */
int helper_process__send_start(void);

/* `keeper`: forks it, if it can, see keeper__fork(); NULL: this process does. */
int helper_process__start(struct helper_process *h, const struct helper_process *keeper,
			  const struct child_plan *plan);
/* As message__receive(), without waiting. Takes the first message of a keeper's child: -EAGAIN. */
int helper_process__receive(struct helper_process *h, struct message_buffer *buffer);
/* For a process that sends nothing else: it has ended, or sends something. */
bool helper_process__has_ended(struct helper_process *h);
/* Closes what there is of it: a keeper's child ends when it has served its last request. */
void helper_process__let_go(struct helper_process *h);
/* Kills a keeper's child. */
void helper_process__kill(const struct helper_process *h);
/* Of a child of this process: end_process(). -ESRCH: there is no process. */
int helper_process__end(struct helper_process *h, uint64_t wait_ns, int *status,
			struct rusage *usage);

#endif
