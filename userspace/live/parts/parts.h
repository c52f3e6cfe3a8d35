/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the live stream (live/part.h) with little more than a constructor. */
#ifndef LIVE_PARTS_PARTS_H
#define LIVE_PARTS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/outside_books.h"
#include "helpers/pool.h"
#include "jitwatch/jit_tail.h"
#include "live/part.h"
#include "procfs/proc_snapshot.h"
#include "stream/event_queue.h"

/* ---- jit.c: follows perf maps and jitdumps of processes with memory for code ----------------- */

struct jit_options {
	struct jit_tail *tail; /* owned by the part */
	event_push_fn push;    /* for its events */
	void *context;
};

/*
 * The part that reads processes from /proc again, because an address had no mapping or the process
 * was unknown. The first reading is at once, the next at least 100 ms, 200 ms, … 12.8 s after the
 * last; earlier requests wait. execve and exit reset this.
 */

struct reread_options {
	struct tasks *tasks;
	struct proc_snapshot *snapshot;
	event_push_fn push; /* for what is read */
	void *context;
};

/*
 * The part that reads facts (program, control group, environment) of sampled processes, once per
 * program. Facts that the process cannot block (program's path, control group) are reported at
 * once; the rest comes from a reader process. OpenTelemetry's libraries publish their context after
 * a program's start, so one that is sampled again later is read again, three times at most.
 *
 * Both rates are limited (base/quota.h): in a storm of new processes most end before their turn.
 */

#define FACT_WAITING_MAX 4096u

struct facts_options {
	struct tasks *tasks;
	struct helper_pool *readers;
	unsigned int service; /* fact_reader__serve among theirs */
	/* Variables to read beside environment_names; copied. */
	const char *const *names;
	size_t name_count;
	struct outside_books *books; /* counts what limits leave out; or NULL */
	event_push_fn push;	     /* for EVENT_FACTS and EVENT_CGROUP */
	void *context;
};

/*
 * The part that reads memory and control groups of processes, once a second.
 *
 * A process that does not run does not change, so a round reads the processes sampled since the
 * last one, at most WATCH_MOST, the busiest first. The control group is read in a program's first
 * round (a container's first process is moved before its execve), unless facts just were, and then
 * every WATCH_CGROUP_NS. So a round has a bounded cost, and a fork costs nothing.
 */

#define WATCH_MOST	64u
#define WATCH_CGROUP_NS 16000000000ull

struct pid_list {
	pid_t *data;
	size_t count, capacity;
};

struct memory_options {
	struct tasks *tasks;
	/* Read memory only with the control group: it shows which threads are the kernel's. */
	bool groups_only;
	const struct pid_list *always; /* read in each round, WATCH_MOST at most */
	event_push_fn push;	       /* for EVENT_MEMORY and EVENT_CGROUP */
	void *context;
};

#endif
