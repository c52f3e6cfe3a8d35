/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes, threads and mappings from before the recording, read from /proc, as events.
 *
 * Everything may vanish at any time. A process that is gone causes no events, or those of the part
 * that was read. Errors are -ENOMEM, what `push` returned, and a missing /proc. Events carry
 * EVENT_FROM_PROC and the CLOCK_MONOTONIC time of just before they were read; EVENT_MAPS_READ that of
 * just after.
 */
#ifndef LIVE_PROC_PROC_SNAPSHOT_H
#define LIVE_PROC_PROC_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream/event_queue.h"

struct proc_snapshot;
struct helper_pool;

/* 0, -ENOMEM, or why /proc cannot be opened. */
int proc_snapshot__new(struct proc_snapshot **snapshot);
void proc_snapshot__free(struct proc_snapshot *s);

/* What reads mappings in the place of the caller. */
struct proc_readers {
	struct helper_pool *pool; /* ends (helper_pool__end()) before the snapshot is freed */
	unsigned int service;	  /* proc_maps__serve is this service of the pool */
	/*
	 * Passes what the kernel has written until now: records of mappings to
	 * proc_snapshot__mapped(), of execve to proc_snapshot__execed(). 0, or an error of
	 * proc_snapshot__error().
	 */
	int (*catch_up)(void *context);
	/* Something of this process changed while it was read, and is not reported: read it once more. */
	void (*read_again)(void *context, uint32_t pid);
	void *context;
};

/*
 * From now on these processes read mappings: a process can block its reader. Events come later, when
 * the pool's owner takes its answers.
 */
void proc_snapshot__use_readers(struct proc_snapshot *s, const struct proc_readers *readers);
/*
 * A record of the kernel. If the process is being read, it decides since when what was found at these
 * addresses has been there.
 */
void proc_snapshot__mapped(struct proc_snapshot *s, const struct mmap_event *record);
/* A record of an execve: the name of the program that is being read may be that of either program. */
void proc_snapshot__execed(struct proc_snapshot *s, const struct comm_event *record);
/* The time of the oldest mappings being read, or UINT64_MAX. Later events must wait for them. */
uint64_t proc_snapshot__pending_since(const struct proc_snapshot *s);
/* The error of `push` or `catch_up`, or -ENOMEM, since the last call. */
int proc_snapshot__error(struct proc_snapshot *s);

/*
 * EVENT_PROCESS, _CGROUP, _THREADs, _MMAPs, EVENT_COMM with the name of the program,
 * EVENT_MAPS_READ; the last three not of kernel threads.
 */
int proc_snapshot__process(struct proc_snapshot *s, pid_t pid, bool is_target, event_push_fn push,
			   void *context);

/* Every process of the system, kernel threads included. */
int proc_snapshot__all(struct proc_snapshot *s, bool is_target, event_push_fn push, void *context);

/* EVENT_THREAD_CPU for every living thread of a process; time is that of each reading. */
int proc_snapshot__thread_cpu(struct proc_snapshot *s, pid_t pid, event_push_fn push,
			      void *context);
/* The same for every process of the system. */
int proc_snapshot__thread_cpu_all(struct proc_snapshot *s, event_push_fn push, void *context);

/*
 * All living descendants of `roots`, without the roots themselves, parents before children. Caller
 * frees *pids. A fork during the call may be missed: have the kernel follow forks first.
 */
int proc_snapshot__descendants(struct proc_snapshot *s, const pid_t *roots, size_t root_count,
			       pid_t **pids, size_t *count);

#endif
