/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PARTS_REREAD_H
#define LIVE_PARTS_REREAD_H

#include <linux/types.h>

struct live_part;
struct reread_options;

/* 0 or -ENOMEM. */
int reread_part__new(const struct reread_options *options, struct live_part *part);

/*
 * Notes a request without reading, so it may be called while events are passed on. An
 * event_source_requests.reread_process; `reread` is the part's object. Dropped if out of memory.
 */
void reread_part__request(void *reread, __u32 pid);

#endif
