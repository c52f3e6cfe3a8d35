/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A web server with a table of routes: `sysprof open` and the agent's endpoint. The door to libmicrohttpd.
 *
 * With options.address it listens there, and answers every client that can connect. Without, it listens on the
 * loopback interface, and answers only requests whose path begins with a token that cannot be guessed; routes are
 * below the token.
 *
 * Other users of the machine can connect, so everything that a connection can use up is bounded: the number of
 * connections, the duration of a request, the size of its headers and body (struct peers).
 *
 * One thread calls all of it; the callbacks run in server__run() and server__free().
 */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

struct server;
struct server_request; /* one that is read, answered or waits */

/* A file that is sent: a descriptor of the caller, which keeps it open until the answer has been given. */
struct server_file {
	int fd;
	uint64_t size; /* bytes */
};

struct server_reply {
	unsigned int status; /* of HTTP */
	const char *
		type; /* Content-Type; NULL: the route's if status is 200, else none; outlives the server */
	uint32_t retry_after; /* seconds; 0: no such header */
	void *body;	      /* malloc()ed, given up; NULL: empty, or `file` */
	size_t size;	      /* bytes of `body` */
	const struct server_file *file;
};

struct route {
	const char *path;		    /* below "/" or "/TOKEN/" */
	bool (*has_path)(const char *path); /* instead of `path`: several */
	bool post;			    /* POST, instead of GET and HEAD */
	const char *type;		    /* Content-Type of the answer */
	bool gzip;     /* its bytes are compressed; the browser decompresses them */
	bool download; /* the browser saves it instead of showing it */
	bool page;     /* HTML: gets a content security policy */
	/*
	 * True: *reply is the answer. False: it comes later by server__reply(), and `request` is valid until then or
	 * until options.gone. May take long: the other clients wait, and no time limit runs meanwhile.
	 */
	bool (*answer)(void *context, const struct route *route, struct server_request *request,
		       struct server_reply *reply);
};

struct server_options {
	/*
	 * "127.0.0.1:9090", "[::1]:9090" (port 0: any that is free) or "unix:/run/sysprof.sock". NULL: the loopback
	 * interface, `port`, and a token
	 */
	const char *address;
	uint16_t port; /* 0: any that is free */
	const struct route *routes;
	size_t route_count;
	const char *unknown_path;  /* the text for a path without a route; NULL: none */
	size_t header_max;	   /* bytes of a request line and its headers */
	size_t body_max;	   /* bytes of a request body */
	unsigned int idle_seconds; /* between two bytes, also of an answer that is not fetched */
	/* The client of a request that waits has closed. May be NULL if every route answers at once. */
	void (*gone)(void *context, struct server_request *request);
	void *context;
};

/* 0 or negative errno with `failure` filled. `options` are copied; routes, texts and context must outlive the server. */
int server__new(const struct server_options *options, struct server **server,
		struct failure *failure);
/* Clients that wait get 503. NULL is fine. */
void server__free(struct server *server);

/* Serves until `wake_fd` is readable (1) or `until` (CLOCK_MONOTONIC ns) has passed (0), or negative errno. */
int server__run(struct server *server, int wake_fd, uint64_t until);

/* The answer to a request that waits; *reply is given up. */
void server__reply(struct server_request *request, struct server_reply *reply);

/* Of a request, valid until it is answered: its path below "/" or "/TOKEN/", */
const char *server_request__path(const struct server_request *request);
/* an argument of the query, unescaped (NULL: not there), */
const char *server_request__argument(const struct server_request *request, const char *name);
/* and the body. */
const char *server_request__body(const struct server_request *request, size_t *size);

/* Where it listens, as in the options. The strings are valid as long as the server. */
const char *server__address(const struct server *server);
uint16_t server__port(const struct server *server);
/* With a token: the secret directory, "http://127.0.0.1:PORT/TOKEN". Append "/" and a path. */
const char *server__url(const struct server *server);
/*
 * With a token: an address that leads to the secret directory once. For command lines, which all users of the
 * machine can read: when they do, the browser has used it already.
 */
const char *server__entry_url(const struct server *server);

#endif
