/* SPDX-License-Identifier: BSD-2-Clause */
/* Events that are set aside until everything older has come, and then gone through by their times. */
#ifndef SESSION_ASIDE_H
#define SESSION_ASIDE_H

#include "base/vec.h"
#include "stream/event_queue.h"

struct aside_event {
	uint64_t time;
	size_t offset;
};

struct aside {
	VEC(char) bytes; /* the events, one behind the other */
	VEC(char) spare; /* what `bytes` was before */
	VEC(struct aside_event) order;
};

void aside__fini(struct aside *a);

/* Copies the event. 0 or -ENOMEM. */
int aside__add(struct aside *a, const struct event_header *event);

/* What `push` may return: this event, and all behind it, are to stay. */
#define ASIDE_LATER 1

/*
 * Hands on the events that are older than `before`, those of equal times in the order in which they were
 * added, and forgets them. `push` may not add any. 0, or the first error of `push`, whose event counts as handed
 * on.
 */
int aside__release(struct aside *a, uint64_t before, event_push_fn push, void *context);
/* The time of the oldest event that stayed at the last release, UINT64_MAX: none. */
uint64_t aside__oldest(const struct aside *a);

#endif
