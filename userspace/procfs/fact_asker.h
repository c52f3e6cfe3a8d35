/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is asked about himself, and when: a process that was sampled, once in each of its lives. At once is told what it
 * cannot hold up (the path of its program, its control group); the rest comes from a reader process. OpenTelemetry's
 * libraries publish their context when a program has begun, so one that is sampled again later is asked for that, three
 * times at most.
 *
 * So many processes may be looked at and asked a second (base/quota.h), whatever runs: what begins in a storm waits, and mostly ends
 * before its turn.
 */
#ifndef PROCFS_FACT_ASKER_H
#define PROCFS_FACT_ASKER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "readers/reader_pool.h"
#include "stream/event_queue.h"

#define FACT_WAITING_MAX 4096u

struct fact_asker;

struct fact_asker_options {
	struct reader_pool *readers;
	unsigned int service; /* of theirs: fact_reader__serve */
	/* Variables that are wanted beside those of environment_names; copied. */
	const char *const *names;
	size_t name_count;
	event_push_fn push; /* EVENT_FACTS and EVENT_CGROUP */
	void *context;
};

/* 0, -EINVAL: a name that is none, or too many; -ENOMEM, or why /proc cannot be opened. */
int fact_asker__new(const struct fact_asker_options *options, struct fact_asker **asker);
/* The pool must have ended. NULL is fine. */
void fact_asker__free(struct fact_asker *a);

/* A sample of this process was taken, at this time (CLOCK_MONOTONIC ns). Reads nothing. */
void fact_asker__sampled(struct fact_asker *a, pid_t pid, uint64_t time);
/* It called execve, or has ended: there is another life. */
void fact_asker__forget(struct fact_asker *a, pid_t pid);

/* Asks those whose turn it is. 0, -ENOMEM, or what `push` has returned since the last call. */
int fact_asker__run(struct fact_asker *a, uint64_t now);

struct fact_asker_stats {
	uint64_t asked, answered;
	uint64_t refused; /* nobody answered */
	uint64_t dropped; /* too many waited */
};
void fact_asker__stats(const struct fact_asker *a, struct fact_asker_stats *stats);

#endif
