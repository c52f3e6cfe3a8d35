/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that are read from /proc again, because an address of theirs had no mapping or they were
 * not known at all. A process is read at once the first time, then no sooner than 100 ms, 200 ms, …
 * 12.8 s after the last; a request that comes earlier waits.
 */
#ifndef PROCFS_PROC_REREAD_H
#define PROCFS_PROC_REREAD_H

#include "procfs/proc_snapshot.h"
#include "stream/event_queue.h"

struct proc_reread;

/* Uses `s`, which must live longer. NULL: no memory. */
struct proc_reread *proc_reread__new(struct proc_snapshot *s, event_push_fn push, void *context);
void proc_reread__free(struct proc_reread *r);

/* Note the wish; reads nothing, so it may be called while events are handed on. Has the shape of
 * event_source_requests.reread_process. */
void proc_reread__request(void *reread, __u32 pid);
/* Read the processes whose turn it is. 0 or negative errno. Call it once a drain. */
int proc_reread__run(struct proc_reread *r);
/* The process exited or called execve: its waiting time starts anew. */
void proc_reread__forget(struct proc_reread *r, __u32 pid);

#endif
