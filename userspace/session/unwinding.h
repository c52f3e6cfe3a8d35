/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the world and the kernel's unwind tables, in a live session: what is learned of processes is
 * published to the kernel side, and samples that come from there are settled before they go on.
 *
 * It listens to the world. All of it is the collector thread's.
 */
#ifndef SESSION_UNWINDING_H
#define SESSION_UNWINDING_H

#include <stdbool.h>

#include <sysprof/unwind_memory.h>

#include "process/world.h"
#include "procfs/dso_opener.h"
#include "unwind/unwind_feed.h"

struct unwinding;

struct unwinding_options {
	const struct unwind_memory *memory; /* that the kernel's programs read; copied */
	unsigned int max_depth;		    /* of user stacks that are walked here */
	bool cache; /* tables of former recordings are used, and some kept */
};

/* World and opener must outlive it. 0 or -ENOMEM. */
int unwinding__new(const struct unwinding_options *options, struct world *world,
		   struct dso_opener *opener, struct unwinding **unwinding);
void unwinding__free(struct unwinding *u);

/*
 * A stage of the queue (event_stage_fn), whose context is the unwinding: a sample that comes next becomes
 * what it would be in a recording. What was walked by mappings that are not those of its time is cut, and
 * one with a copy of its stack is walked by tables, for which it may have to wait.
 */
int unwinding__settle(void *unwinding, const struct event_header **event);

/* After an event has been recorded. 0 or -ENOMEM. */
int unwinding__recorded(struct unwinding *u, const struct event_header *event);

/*
 * Before and after each piece of the stream: what was built and what has changed gets to the kernel side. From when
 * on tables are in use is told by this too. 0 or -ENOMEM.
 */
int unwinding__update(struct unwinding *u);
/* Ask for the tables of everything that targets have mapped so far. 0 or -ENOMEM. */
int unwinding__prepare(struct unwinding *u);

/* Readable when there are tables to take, and so reason to hand events on again. */
int unwinding__fd(const struct unwinding *u);
bool unwinding__is_building(const struct unwinding *u);
/* From now on no event has to wait: the stream ends. */
void unwinding__end(struct unwinding *u);

/* image_table__forget()'s: false while the image's file is being read. */
bool unwinding__forget_image(void *unwinding, struct image_id image);

void unwinding__stats(const struct unwinding *u, struct unwind_feed_stats *stats);

#endif
