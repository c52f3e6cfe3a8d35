/* SPDX-License-Identifier: BSD-2-Clause */
/* A sink inside: sink.c makes and ends it, sender.c is its thread. Tests set another pace. */
#ifndef AGENT_SINK_PRIVATE_H
#define AGENT_SINK_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/retry.h"
#include "agent/sink.h"

struct sink_pace {
	struct retry_pace retry;
	uint64_t bytes_per_second; /* that are sent */
};

struct sink {
	const struct sink_format *format;
	struct sink_pace pace;
	char *url;
	struct spool *spool;
	struct http_client *client; /* the thread's, which takes the next one; NULL: a directory */
	pthread_t thread;
	atomic_int holders; /* the thread and the sink's creator: the last one frees */

	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	bool stopping, ended;		 /* the thread shall end; it has ended */
	bool put;			 /* a window came */
	struct http_client *next_client; /* NULL: none */
	struct sink_stats stats;

	/* the thread's own */
	unsigned int failures;	      /* one after the other */
	uint64_t few_of, few_request; /* request that is tried a few times: its window, its index */
	unsigned int few;
	uint64_t free_at; /* CLOCK_MONOTONIC ns: what was sent so far fits the pace */
};

/* sink__new() with another pace. */
int sink__new_paced(const struct sink_options *options, const struct sink_pace *pace,
		    struct sink **sink, struct failure *failure);

#endif
