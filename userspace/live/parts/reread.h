/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reads processes from /proc again, because an address of theirs had no mapping or they were
 * not known at all. A process is read at once the first time, then no sooner than 100 ms, 200 ms, …
 * 12.8 s after the last; a request that comes earlier waits. execve and an exit start the waiting time anew.
 */
#ifndef LIVE_REREAD_H
#define LIVE_REREAD_H

#include "live/part.h"
#include "procfs/proc_snapshot.h"
#include "stream/event_queue.h"

struct reread_options {
	struct tasks *tasks;
	struct proc_snapshot *snapshot;
	event_push_fn push; /* what is read */
	void *context;
};

/* 0 or -ENOMEM. */
int reread_part__new(const struct reread_options *options, struct live_part *part);

/*
 * Notes the wish; reads nothing, so it may be called while events are passed on. Has the shape of
 * event_source_requests.reread_process; `reread` is the part's object. Without memory the request is dropped.
 */
void reread_part__request(void *reread, __u32 pid);

#endif
