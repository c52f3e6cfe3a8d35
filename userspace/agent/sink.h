/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sink: where windows go. It keeps sealed windows on disk or, if that fails, in memory; a thread
 * sends them, the oldest first. Passing it a window never waits for a network.
 */
#ifndef AGENT_SINK_H
#define AGENT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_window.h"
#include "agent/http.h"
#include "agent/sink_format.h"
#include "agent/spool.h"
#include "base/log.h"

struct sink;

/* Strings are copied. */
struct sink_options {
	const struct sink_format *format;
	struct http_options http;   /* dir: its url is a path */
	struct spool_options spool; /* a directory of its own; 0 bytes: 64 MiB; age 0: 50 min */
};

struct sink_stats {
	uint64_t windows_put, windows_sent;
	uint64_t series_invalid, samples_invalid; /* left out of windows that it was given */
	uint64_t cpu_ns_sent, samples_sent;
	uint64_t wall_ns, wall_bytes;		      /* of windows that it was given */
	uint64_t windows_dropped[SINK_VERDICT_COUNT]; /* by the last verdict */
	uint64_t windows_too_old, windows_no_room;    /* that left the spool unsent */
	uint64_t ambiguous;			      /* requests that may have arrived twice */
	uint64_t requests, failures, bytes;
	uint64_t push_ns; /* time that requests took, in all */
	uint64_t spool_windows, spool_bytes,
		spool_oldest; /* now; oldest: ns since the epoch, 0: none */
	uint64_t torn_files;  /* in the spool, skipped */
	bool spool_failed;    /* what is kept is in memory */
	char last_error[256]; /* "": none. No secret is in it */
};

/* Starts the thread, which sends an earlier run's spool first. 0 or negative errno, `failure`. */
int sink__new(const struct sink_options *options, struct sink **sink, struct failure *failure);

/* Takes the window, empty afterwards in any case. Any thread. Negative errno: dropped, counted. */
int sink__put(struct sink *s, struct sealed_window *window);

/* Windows that wait stay in the spool; a request under way has this long (ns). NULL is fine. */
void sink__free(struct sink *s, uint64_t patience);

/* Requests from now on go through this client, the sink's from then on. Not for a directory. */
void sink__set_client(struct sink *s, struct http_client *client);

void sink__stats(struct sink *s, struct sink_stats *stats);

/* Does such a backend answer? One request, without data. 0 or negative errno, `failure` filled. */
int sink__probe(const struct sink_options *options, struct failure *failure);

#endif
