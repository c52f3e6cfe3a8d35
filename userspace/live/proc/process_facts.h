/* SPDX-License-Identifier: BSD-2-Clause */
/* Small facts from /proc, as events: of a process, without blocking, and of the machine. */
#ifndef LIVE_PROC_PROCESS_FACTS_H
#define LIVE_PROC_PROCESS_FACTS_H

#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "live/proc/fact_reader.h"
#include "stream/event_queue.h"

#define CGROUP_TEXT_MAX 8192 /* more is not read: the unified hierarchy is last, but then alone */

/*
 * `dir`, `path`: the file, e.g. the directory of the process and "cgroup". If unreadable, there is
 * no event. 1: an event was pushed; 0: none; -ENOMEM, -EMFILE, -ENFILE, or what `push` returned.
 */
int process_facts__cgroup(int dir, const char *path, pid_t pid, uint64_t time, event_push_fn push,
			  void *context);
/* A process without memory of its own, such as a kernel thread, causes no event. */
int process_facts__memory(int dir, const char *path, pid_t pid, uint16_t flags, uint64_t time,
			  event_push_fn push, void *context);

/* What was read of a process from `since` on, as EVENT_FACTS. What `push` returned. */
int process_facts__push(pid_t pid, uint64_t since, enum facts_state state,
			const struct fact_text *facts, event_push_fn push, void *context);
/* The first group of <sysprof/meta_keys.h>, without unknown facts. 0, or what `push` returned. */
int machine_facts__emit(event_push_fn push, void *context, uint64_t time);

#endif
