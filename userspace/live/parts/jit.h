/* SPDX-License-Identifier: BSD-2-Clause */
/* The part that follows perf maps and jitdumps of processes with memory for code. */
#ifndef LIVE_PARTS_JIT_H
#define LIVE_PARTS_JIT_H

#include "jit/follow/jit_tail.h"
#include "live/part.h"
#include "stream/event_queue.h"

struct jit_options {
	struct jit_tail *tail; /* owned by the part */
	event_push_fn push;    /* for its events */
	void *context;
};

/* 0 or -ENOMEM; then the caller still owns the tail. */
int jit_part__new(const struct jit_options *options, struct live_part *part);

#endif
