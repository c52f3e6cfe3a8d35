/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A part of the live stream follows samples and processes, and queues events of its own.
 * live/open.c has the list of parts; callbacks run in its order, in the collector's thread. A
 * callback may be NULL. It returns 0 or a negative errno, which ends the recording. A part's data
 * about a process is in a slot of the process's task (live/tasks.h).
 */
#ifndef LIVE_PART_H
#define LIVE_PART_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "live/tasks.h"

struct bpf_session;

/* What a part expects, for the pace of ticks. */
struct live_expectation {
	/*
	 * When a function of a script was last requested for the first time, CLOCK_MONOTONIC ns; 0: never.
	 * Such requests come in series.
	 */
	uint64_t met;
	/* When something was last met in a process that had just begun: it may be gone soon. */
	uint64_t begun;
	/* A look at a process is under way: until its answer, samples of it have no names. */
	bool looks;
};

struct live_part {
	void *object; /* first argument of each callback */
	int (*sampled)(void *object, struct task *task, const struct sample_event *sample);
	/*
	 * Other records of the rings that are not side-band, tentative samples, and EVENT_JIT_FILE;
	 * each is of one part.
	 */
	int (*reported)(void *object, const struct event_header *event);
	/* Any fork, also of threads and of processes that are no targets. */
	int (*forked)(void *object, const struct task_event *fork);
	/* A mapping whose file is known, or known to be missing. */
	int (*mapped)(void *object, struct task *task, const struct mmap_event *mapping);
	/* The task's program ended. Its slots are cleared afterwards. */
	int (*execed)(void *object, struct task *task);
	int (*exited)(void *object, struct task *task);

	/* The kernel side is there, before any record of it. */
	void (*opened)(void *object, struct bpf_session *session);
	/* Once, after the existing processes were read. */
	int (*begin)(void *object);
	/* Sampling has begun. */
	void (*started)(void *object);
	/* After the rings and the side-band were read. */
	int (*tick)(void *object, uint64_t now);
	/* Once a second, and at start and end: measures as of `time`. */
	int (*second)(void *object, uint64_t time);
	/* A profile is about to end: requests what it needs of what was sampled up to now. */
	int (*close)(void *object, uint64_t now);
	/* Is such a request due or unanswered? */
	bool (*waits)(const void *object);
	/* The time of the oldest event that the part holds back, or UINT64_MAX: later ones wait. */
	uint64_t (*pending_since)(const void *object);
	/* Later events are of the next window. */
	void (*window_ended)(void *object);

	/* Raises what the others expect. */
	void (*expect)(const void *object, struct live_expectation *e);
	/* Perf maps and jitdumps are not read while paused. */
	void (*pause_jit)(void *object, bool pause);
	/* Which control groups are wanted may have changed. */
	int (*judge_groups)(void *object);
	/* The next visits also account for threads that have not run: they have waited until then. */
	void (*look_at_waits)(void *object);
	/* Visits a second and their budget, millionths of a CPU, from now on. Both are > 0. */
	void (*set_visits)(void *object, unsigned int hz, unsigned int budget);
	/* Why it does nothing, or no more; NULL: it does, or will. */
	const char *(*refused)(const void *object);

	/* Sampling ends: begin nothing that takes long. A few more ticks follow. */
	void (*stop)(void *object);
	/* After the last tick, for the last events, whose time is at most `time`. */
	int (*finish)(void *object, uint64_t time);
	void (*free)(void *object);
	bool uses_kernel; /* it is freed before the kernel side is */
};

/* The parts that have this callback. */
#define each_part_with(parts, part, callback)                                                      \
	for (const struct live_part *part = (parts); part->object; part++)                         \
		if (part->callback)

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
