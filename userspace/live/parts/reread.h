/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that reads processes from /proc again, because an address had no mapping or the process
 * was unknown. The first reading is at once, the next at least 100 ms, 200 ms, … 12.8 s after the
 * last; earlier requests wait. execve and exit reset this.
 */
#ifndef LIVE_PARTS_REREAD_H
#define LIVE_PARTS_REREAD_H

#include <linux/types.h>

#include "live/part.h"
#include "live/proc/proc_snapshot.h"
#include "stream/event_queue.h"

struct reread_options {
	struct tasks *tasks;
	struct proc_snapshot *snapshot;
	event_push_fn push; /* for what is read */
	void *context;
};

/* 0 or -ENOMEM. */
int reread_part__new(const struct reread_options *options, struct live_part *part);

/*
 * Notes a request without reading, so it may be called while events are passed on. An
 * event_source_requests.reread_process; `reread` is the part's object. Dropped if out of memory.
 */
void reread_part__request(void *reread, __u32 pid);

#endif
