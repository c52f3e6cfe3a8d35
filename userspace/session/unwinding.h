/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects the world and the kernel's unwind tables in a live session: changes of processes are published to
 * the kernel side, and samples from there are completed or truncated before they are passed on.
 *
 * It observes the world. All functions are called by the collector thread.
 */
#ifndef SESSION_UNWINDING_H
#define SESSION_UNWINDING_H

#include <stdbool.h>

#include <sysprof/unwind_memory.h>

#include "process/world.h"
#include "procfs/dso_opener.h"
#include "unwind/unwind_feed.h"

struct tasks;
struct unwinding;

struct unwinding_options {
	const struct unwind_memory *memory; /* read by the eBPF programs; copied */
	unsigned int max_depth;		    /* of user stacks that are unwound here */
	bool cache;			    /* use the on-disk cache of tables */
	struct helper_pool *readers;	    /* with the services of live/readers.h */
	struct helper_pool *builders;	    /* of unwind tables */
	_Atomic int64_t *large_children;    /* as in unwind_feed_options */
	const struct tasks *tasks;	    /* live/parts/code: the memory of JVMs; outlives it */
	struct outside_books *books;	    /* for what is left out; outlive it. Or NULL */
};

/* World and opener must outlive it. 0 or -ENOMEM. */
int unwinding__new(const struct unwinding_options *options, struct world *world,
		   struct dso_opener *opener, struct unwinding **unwinding);
void unwinding__free(struct unwinding *u);

/*
 * A stage of the queue (event_stage_fn) whose context is the unwinding. It brings a sample into its final
 * form: frames unwound with mappings that have since changed are truncated, and a sample with a copy of its
 * stack is unwound by tables, which it may have to wait for.
 */
int unwinding__settle(void *unwinding, const struct event_header **event);

/* After an event has been recorded. 0 or -ENOMEM. */
int unwinding__recorded(struct unwinding *u, const struct event_header *event);

/*
 * Called before and after each piece of the stream: publishes new tables and changes to the kernel side. It
 * also notes from when on tables are in use. 0 or -ENOMEM.
 */
int unwinding__update(struct unwinding *u);
/* Requests the tables of all files that targets have mapped so far. 0 or -ENOMEM. */
int unwinding__prepare(struct unwinding *u);

/* As unwind_feed__set_cached_only(). */
void unwinding__set_cached_only(struct unwinding *u, bool cached_only);

/* Readable when tables have been built, so that waiting events can be passed on. */
int unwinding__fd(const struct unwinding *u);
bool unwinding__is_building(const struct unwinding *u);
/* The stream ends: from now on no event waits for a table. */
void unwinding__end(struct unwinding *u);

/* image_table__forget()'s: false while the image's file is being read. */
bool unwinding__forget_image(void *unwinding, struct image_id image, bool full);

void unwinding__stats(const struct unwinding *u, struct unwind_feed_stats *stats);

#endif
