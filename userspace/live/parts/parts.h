/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the live stream (live/part.h) that have nothing but a constructor. */
#ifndef LIVE_PARTS_PARTS_H
#define LIVE_PARTS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helpers/pool.h"
#include "jitwatch/jit_tail.h"
#include "live/part.h"
#include "procfs/proc_snapshot.h"
#include "stream/event_queue.h"

/* ---- jit.c: follows perf maps and jitdumps of processes that map memory for code -------------- */

struct jit_options {
	struct jit_tail *tail; /* the part frees it */
	event_push_fn push;    /* its events */
	void *context;
};

/* 0 or -ENOMEM; then the caller frees the tail. */
int jit_part__new(const struct jit_options *options, struct live_part *part);

/*
 * The part that reads processes from /proc again, because an address of theirs had no mapping or they were
 * not known at all. A process is read at once the first time, then no sooner than 100 ms, 200 ms, …
 * 12.8 s after the last; a request that comes earlier waits. execve and an exit start the waiting time anew.
 */

struct reread_options {
	struct tasks *tasks;
	struct proc_snapshot *snapshot;
	event_push_fn push; /* what is read */
	void *context;
};

/* 0 or -ENOMEM. */
int reread_part__new(const struct reread_options *options, struct live_part *part);

/*
 * Notes the request; reads nothing, so it may be called while events are passed on. Has the shape of
 * event_source_requests.reread_process; `reread` is the part's object. Without memory the request is dropped.
 */
void reread_part__request(void *reread, __u32 pid);

/*
 * The part that reads facts of processes (program, control group, environment): of a process that was sampled, once
 * for each program that it runs. Facts that the process cannot block (the path of its program, its control group) are
 * reported at once; the rest comes from a reader process. OpenTelemetry's libraries publish their context after a
 * program has begun, so one that is sampled again later is read again, three times at most.
 *
 * The rates of both are limited (base/quota.h), whatever runs: in a storm of new processes most wait, and end before their turn.
 */

#define FACT_WAITING_MAX 4096u

struct facts_options {
	struct tasks *tasks;
	struct helper_pool *readers;
	unsigned int service; /* of theirs: fact_reader__serve */
	/* Variables that are wanted beside those of environment_names; copied. */
	const char *const *names;
	size_t name_count;
	event_push_fn push; /* EVENT_FACTS and EVENT_CGROUP */
	void *context;
};

/*
 * 0, -EINVAL: an invalid name, or too many; -ENOMEM, or why /proc cannot be opened. The pool must have ended before `free`.
 * `tick` returns 0, -ENOMEM, or what `push` has returned since the last call.
 */
int facts_part__new(const struct facts_options *options, struct live_part *part);

struct facts_stats {
	uint64_t requested, answered;
	uint64_t refused; /* without an answer */
	uint64_t dropped; /* too many waited */
};
void facts_part__stats(const struct live_part *part, struct facts_stats *stats);

/*
 * The part that reads, from time to time, how much memory processes have and which control group they are in.
 *
 * A process that does not run does not change, so a round reads the processes that were sampled since the last one,
 * at most WATCH_MOST of them, the busiest first. The control group is read in the first round, after an execve (a
 * container's first process is moved before that), unless facts just were, and then every WATCH_CGROUP_NS. So the cost of a round is bounded,
 * and a fork costs nothing.
 */

#define WATCH_MOST	64u
#define WATCH_CGROUP_NS 16000000000ull

struct pid_list {
	pid_t *data;
	size_t count, capacity;
};

struct memory_options {
	struct tasks *tasks;
	/* Memory is only read together with the control group, since that shows which threads are the kernel's. */
	bool groups_only;
	const struct pid_list *always; /* read in each round, WATCH_MOST at most */
	event_push_fn push;	       /* EVENT_MEMORY and EVENT_CGROUP */
	void *context;
};

/* 0, -ENOMEM, or why /proc cannot be opened. `second` returns 0, -ENOMEM, -EMFILE, -ENFILE, or what `push` returned. */
int memory_part__new(const struct memory_options *options, struct live_part *part);

#endif
