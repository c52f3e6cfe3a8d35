/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's endpoint:
 *
 *   /metrics               what was published last (agent/metrics.h)
 *   /healthz               200 "ok", or 503 and why: as published, or nothing was for too long
 *   /debug/pprof/profile   ?seconds=N[&pid=N|&service=NAME]: pprof of the next N seconds, for
 *                          `go tool pprof` and Parca's scraping. One at a time; others get 503
 *
 * Its thread serves it and touches nothing of the session, whose owner publishes text and checks
 * for requests for a profile. Any thread may call any function but new and free.
 */
#ifndef AGENT_ENDPOINT_H
#define AGENT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"
#include "base/log.h"

struct endpoint;

struct endpoint_options {
	const char *address;  /* as for server_options */
	uint64_t stuck_after; /* ns without a publication after which we are not well; 0: never */
	unsigned int seconds_max;      /* 0: 600 */
	void (*say)(const char *text); /* logs a line, from any thread; NULL: nowhere */
};

/* Starts the thread. 0 or negative errno with `failure` filled. */
int endpoint__new(const struct endpoint_options *options, struct endpoint **endpoint,
		  struct failure *failure);
/* Waiting requests get 503. NULL is fine. */
void endpoint__free(struct endpoint *e);

/* Where it listens. Valid as long as the endpoint. */
const char *endpoint__address(const struct endpoint *e);

/* `metrics`: malloc()ed, given up. `illness`: a sentence; NULL: we are well. 0 or -ENOMEM. */
int endpoint__publish(struct endpoint *e, char *metrics, size_t size, const char *illness);

/* ---- profiles -------------------------------------------------------------------------------- */

struct endpoint_request {
	uint64_t id;
	unsigned int seconds;
	uint32_t pid;			   /* 0: all */
	char service[LABEL_VALUE_MAX + 1]; /* "": all; UTF-8 without control characters */
};

/* Readable while there is a request that was not taken; for poll(). */
int endpoint__fd(const struct endpoint *e);
/* The next request, once. True: the caller has to answer it. */
bool endpoint__take_request(struct endpoint *e, struct endpoint_request *request);
/* Does its client still wait? */
bool endpoint__is_wanted(struct endpoint *e, uint64_t id);
/* `body`: a pprof file, malloc()ed, given up. If no request waits any more it is freed. */
void endpoint__grant(struct endpoint *e, uint64_t id, void *body, size_t size);
/* No profile: `status` (404: no such process or service; 503) and a sentence. */
void endpoint__refuse(struct endpoint *e, uint64_t id, unsigned int status, const char *why);

#endif
