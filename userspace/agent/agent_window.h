/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the agent pass on: a closed window with its services, and a sink's requests.
 *
 *   profile of a window -> services (of each process) -> struct agent_window
 *                       -> a sink's format -> struct sealed_window: requests, byte for byte
 *                       -> spool -> sender -> the backend
 */
#ifndef AGENT_AGENT_WINDOW_H
#define AGENT_AGENT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "services/label_set.h"

struct parked;

/* Owned by its maker, valid during the call that gets it. */
struct agent_window {
	const struct profile *profile;
	uint64_t number;		       /* of the session's window */
	uint64_t start_realtime, end_realtime; /* ns since the epoch */
	const struct labeled_service *services;
	size_t service_count;
	/* By process_id: index into services; unused for [0] and processes that did nothing. */
	const uint32_t *service_of_process;
	/* NULL: there are no series of waits. Those of parked threads are left out. */
	const struct parked *parked;
};

/* Of a window with waits, ns. */
uint64_t agent_window__visit_period(const struct agent_window *w);

/* ---- sealed ---------------------------------------------------------------------------------- */

/* One request: its bytes never change, so a backend recognizes one that comes twice. */
struct sink_request {
	char *path; /* below the sink's URL, "/push.v1.PusherService/Push"; dir: a file's name */
	char *content_type;
	char *content_encoding; /* "gzip"; "": none */
	void *body;
	size_t size;
	uint64_t samples, cpu_ns; /* that are in it */
	uint32_t series;
};

void sink_request__fini(struct sink_request *r);

struct sealed_window {
	uint64_t number;
	uint64_t start_realtime, end_realtime; /* ns since the epoch */
	struct sink_request *requests;
	size_t request_count;
	/* Left out, since a backend would refuse them: validate.h has the rules. */
	uint32_t series_invalid;
	uint64_t samples_invalid;
	/* Series of waits in the requests: time; bytes before compression (OTLP: without names). */
	uint64_t wall_ns, wall_bytes;
};

/* Frees what is in it; also of one that is half filled. */
void sealed_window__fini(struct sealed_window *w);

#endif
