/* SPDX-License-Identifier: BSD-2-Clause */
/* The targets: requested ones, the live ones with their children, and their CPU time so far. */
#ifndef LIVE_TARGETS_H
#define LIVE_TARGETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream/event_queue.h"

struct failure;
struct live;
struct live_options;

/* The held COMMAND: a target from its next execve on. After open and before begin. */
int live__add_command(struct live *live, pid_t pid, struct failure *failure);

/* Adds the requested targets to the kernel's set and to live/tasks. 0 or a reported error. */
int live_targets__add(struct live *live, const struct live_options *options,
		      struct failure *failure);
/*
 * Processes that are targets by name now. Their unwind tables are built before the first tick if
 * this is called before live__begin().
 */
size_t live__find_named(struct live *live);

/* May the profile have this process because it was requested? With names, those of -p alone. */
bool live_targets__is_requested(const struct live *live, pid_t pid);
/* Adds existing children of targets; the kernel side adds new ones. */
int live_targets__add_descendants(struct live *live, struct failure *failure);
/* Reads all targets from /proc. `first`: requested ones, which the profile has, sampled or not. */
int live_targets__snapshot(struct live *live, bool first, event_push_fn push);
/* Queues the CPU time of every thread of every target. `time` 0: the time of each reading. */
int live_targets__read_cpu(struct live *live, uint64_t time);
/* CPU time so far (ns) of the requested targets that still live, without children. */
uint64_t live_targets__cpu(const struct live *live);

#endif
