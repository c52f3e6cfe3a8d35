/* SPDX-License-Identifier: BSD-2-Clause */
/* The part that follows perf maps and jitdumps, of processes that map memory for code: they may write down what it is. */
#ifndef LIVE_JIT_H
#define LIVE_JIT_H

#include "jitwatch/jit_tail.h"
#include "live/part.h"
#include "stream/event_queue.h"

struct jit_options {
	struct jit_tail *tail; /* the part frees it */
	event_push_fn push;    /* its events */
	void *context;
};

/* 0 or -ENOMEM; then the caller frees the tail. */
int jit_part__new(const struct jit_options *options, struct live_part *part);

#endif
