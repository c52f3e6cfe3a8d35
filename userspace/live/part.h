/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A part of the live stream follows samples and processes, and queues events of its own.
 * live/open.c has the list of parts; callbacks run in its order, in the collector's thread. A
 * callback may be NULL. It returns 0 or a negative errno, which ends the recording. A part's data
 * about a process is in a slot of the process's task (live/tasks.h).
 */
#ifndef LIVE_PART_H
#define LIVE_PART_H

#include <stdint.h>

#include <sysprof/event.h>

#include "live/tasks.h"

struct live_part {
	void *object; /* first argument of each callback */
	int (*sampled)(void *object, struct task *task, const struct sample_event *sample);
	/* Other records of the rings that are not side-band; each is of one part. */
	int (*reported)(void *object, const struct event_header *event);
	/* Any fork, also of threads and of processes that are no targets. */
	int (*forked)(void *object, const struct task_event *fork);
	/* A mapping whose file is known, or known to be missing. */
	int (*mapped)(void *object, struct task *task, const struct mmap_event *mapping);
	/* The task's program ended. Its slots are cleared afterwards. */
	int (*execed)(void *object, struct task *task);
	int (*exited)(void *object, struct task *task);

	/* Once, after the existing processes were read. */
	int (*begin)(void *object);
	/* After the rings and the side-band were read. */
	int (*tick)(void *object, uint64_t now);
	/* Once a second, and at start and end: measures as of `time`. */
	int (*second)(void *object, uint64_t time);
	/* Sampling ends: begin nothing that takes long. A few more ticks follow. */
	void (*stop)(void *object);
	/* After the last tick, for the last events, whose time is at most `time`. */
	int (*finish)(void *object, uint64_t time);
	void (*free)(void *object);
};

/* Calls a callback of each part, up to the first error. `parts` ends with one without an object. */
#define call_parts(parts, callback, ...)                                                           \
	({                                                                                         \
		int err_ = 0;                                                                      \
                                                                                                   \
		for (const struct live_part *part_ = (parts); part_->object && !err_; part_++)     \
			if (part_->callback)                                                       \
				err_ = part_->callback(part_->object __VA_OPT__(, ) __VA_ARGS__);  \
		err_;                                                                              \
	})

#endif
