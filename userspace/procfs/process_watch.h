/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks at processes from time to time: how much memory they have, and which control group they are in.
 *
 * Whatever does not run does not change, so a round looks at the processes that were sampled since the last
 * one, at most WATCH_MOST of them, the busiest first. The control group is read in the first round, after an
 * execve (a container's first process is moved before that) and then every WATCH_CGROUP_NS.
 * So the cost of a round is bounded, and a fork costs nothing.
 */
#ifndef PROCFS_PROCESS_WATCH_H
#define PROCFS_PROCESS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream/event_queue.h"

#define WATCH_MOST	64u
#define WATCH_CGROUP_NS 16000000000ull

struct process_watch;

/*
 * `groups_only`: memory is not asked for, but for once together with the control group, since that tells threads of the
 * kernel. 0, -ENOMEM, or why /proc cannot be opened.
 */
int process_watch__new(bool groups_only, struct process_watch **watch);
void process_watch__free(struct process_watch *w);

/* A sample of this process was taken. */
void process_watch__sampled(struct process_watch *w, pid_t pid);
/* It called execve: its control group is read again. */
void process_watch__exec(struct process_watch *w, pid_t pid);
/* It has ended. */
void process_watch__forget(struct process_watch *w, pid_t pid);

/*
 * EVENT_MEMORY and EVENT_CGROUP as of `time`: of this program, of the processes `always` (at most
 * WATCH_MOST), and of those that were sampled since the last call. 0, -ENOMEM, -EMFILE, -ENFILE, or what
 * `push` returned.
 */
int process_watch__look(struct process_watch *w, const pid_t *always, size_t count, uint64_t time,
			event_push_fn push, void *context);

#endif
