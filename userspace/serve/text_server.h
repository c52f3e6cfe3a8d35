/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small web server for programs that ask: a few paths, GET and HEAD, answers made by the caller. It listens on a numeric
 * address or on a unix socket. A sibling of http_server, and like that a door to libmicrohttpd.
 *
 * Everything that a client can use up is bounded as there (peers.h): connections, the time a request takes, its size.
 * Whoever waits for an answer that is not there yet (text_server__reply()) does not hold up others. On a loopback
 * address the Host header has to be ours, so that no web page can be led here by its name; who may connect may ask.
 *
 * One thread calls all of it, and the callbacks are called in text_server__run() and text_server__free().
 */
#ifndef SERVE_TEXT_SERVER_H
#define SERVE_TEXT_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

struct text_server;
struct text_request; /* one that is answered or waits */

struct text_reply {
	unsigned int status;  /* of HTTP */
	const char *type;     /* Content-Type; outlives the call */
	uint32_t retry_after; /* seconds; 0: not said */
	void *body;	      /* malloc()ed, given up; NULL: empty */
	size_t size;
};

struct text_server_options {
	const char *
		address; /* "127.0.0.1:9090", "[::1]:9090", port 0: any that is free; "unix:/run/sysprof.sock" */
	/* True: *reply is the answer. False: it comes later, `request` stays valid until then or `gone`. */
	bool (*answer)(void *context, struct text_request *request, const char *path,
		       struct text_reply *reply);
	/* The client of a request that waits has closed. */
	void (*gone)(void *context, struct text_request *request);
	void *context;
};

/* 0 or negative errno with `failure` filled. `options` are copied, but for the context. */
int text_server__new(const struct text_server_options *options, struct text_server **server,
		     struct failure *failure);
/* Those who wait are told 503. NULL is fine. */
void text_server__free(struct text_server *server);

/* Where it listens, as in the options. Valid as long as the server. */
const char *text_server__address(const struct text_server *server);

/* Serves until `wake_fd` is readable (1) or `until` (CLOCK_MONOTONIC ns) has passed (0), or negative errno. */
int text_server__run(struct text_server *server, int wake_fd, uint64_t until);

/* An argument of the query, unescaped; NULL: it is not there. Valid during `answer`. */
const char *text_request__argument(const struct text_request *request, const char *name);
/* The answer of one that waits. */
void text_server__reply(struct text_server *server, struct text_request *request,
			struct text_reply *reply);

#endif
