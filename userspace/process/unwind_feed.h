/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the kernel's unwind tables up to what is known of processes: the files of a process that is
 * sampled get tables, and its mappings are published, again whenever they have changed.
 */
#ifndef PROCESS_UNWIND_FEED_H
#define PROCESS_UNWIND_FEED_H

#include <stdint.h>

#include <sysprof/event.h>
#include <sysprof/profile.h>

#include "process/mapping_table.h"
#include "unwind/table_store.h"

struct unwind_feed;

struct unwind_feed_options {
	struct table_store *store;
	/* The file of a dso, which stays the callee's; -1: not to be had. */
	int (*file)(void *context, struct dso_id dso);
	void *context;
};

/* NULL: no memory. */
struct unwind_feed *unwind_feed__new(const struct unwind_feed_options *options);
void unwind_feed__free(struct unwind_feed *f);

/* What a process has mapped at `as_of` (CLOCK_MONOTONIC ns). 0 or -ENOMEM: no room is no error. */
int unwind_feed__publish(struct unwind_feed *f, uint32_t tgid, const struct mapping_table *maps,
			 uint64_t as_of);
/*
 * A stack of a process that has this mapped, of which the kernel kept a copy: by tables, as it
 * would have been. Frames are packed; *count is how many, `max` at most.
 */
enum stack_end unwind_feed__walk(struct unwind_feed *f, const struct mapping_table *maps,
				 const struct stack_copy *copy, uint64_t *frames, size_t max,
				 size_t *count);
/* It has ended. */
void unwind_feed__withdraw(struct unwind_feed *f, uint32_t tgid);

#endif
