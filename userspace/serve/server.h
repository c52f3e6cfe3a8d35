/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A web server with a table of routes, for `sysprof open` and the agent's endpoint. Only this room
 * uses libmicrohttpd.
 *
 * With options.address it listens there and answers every client. Without, it listens on the
 * loopback interface and only answers requests whose path begins with a secret token.
 *
 * Other users of the machine can connect, so the number of connections, the duration of a request
 * and the size of its headers and body are bounded (struct peers).
 *
 * One thread calls all functions; callbacks run in server__run() and server__free().
 */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

struct server;
struct server_request; /* being read, waiting or being answered */

/* A file to send. The caller keeps the descriptor open until the answer is given. */
struct server_file {
	int fd;
	uint64_t size; /* bytes */
};

struct server_reply {
	unsigned int status; /* of HTTP */
	const char *
		type; /* Content-Type, outlives the server; NULL: route's for 200, otherwise none */
	uint32_t retry_after; /* seconds; 0: no such header */
	void *body;	      /* malloc()ed, the server frees it; NULL: empty, or `file` */
	size_t size;	      /* bytes of `body` */
	const struct server_file *file;
};

struct route {
	const char *path;		    /* below "/" or "/TOKEN/" */
	bool (*has_path)(const char *path); /* instead of `path`: several */
	bool post;			    /* POST, instead of GET and HEAD */
	const char *type;		    /* Content-Type of the answer */
	bool gzip;			    /* the body is compressed */
	bool download;			    /* the browser saves it instead of showing it */
	bool page;			    /* HTML: gets a content security policy */
	/*
	 * True: *reply is the answer. False: server__reply() gives it later; `request` is valid
	 * until then or options.gone(). While this runs, other clients wait and no time limit runs.
	 */
	bool (*answer)(void *context, const struct route *route, struct server_request *request,
		       struct server_reply *reply);
};

struct server_options {
	/*
	 * "127.0.0.1:9090", "[::1]:9090" (port 0: any free one) or "unix:/run/sysprof.sock". NULL:
	 * the loopback interface, `port`, and a token.
	 */
	const char *address;
	uint16_t port; /* 0: any free one */
	const struct route *routes;
	size_t route_count;
	const char *unknown_path;  /* text for a path without a route; NULL: none */
	size_t header_max;	   /* bytes of a request line and its headers */
	size_t body_max;	   /* bytes of a request body */
	unsigned int idle_seconds; /* between two bytes, also of an unread answer */
	/* The client of a waiting request has closed. May be NULL if all routes answer at once. */
	void (*gone)(void *context, struct server_request *request);
	void *context;
};

/* Copies the options, but not routes, texts and context. 0 or negative errno, `failure` filled. */
int server__new(const struct server_options *options, struct server **server,
		struct failure *failure);
/* Waiting clients get 503. NULL is fine. */
void server__free(struct server *server);

/* Serves. 1: `wake_fd` is readable; 0: `until` (CLOCK_MONOTONIC ns) has passed; negative errno. */
int server__run(struct server *server, int wake_fd, uint64_t until);

/* Answers a waiting request; takes *reply. */
void server__reply(struct server_request *request, struct server_reply *reply);

/* Where it listens, as in the options. The strings are the server's. */
const char *server__address(const struct server *server);
uint16_t server__port(const struct server *server);
/* With a token: "http://127.0.0.1:PORT/TOKEN". Append "/" and a path. */
const char *server__url(const struct server *server);
/*
 * With a token: an address that redirects to that once. For command lines, which all users can
 * read: by then the browser has used it.
 */
const char *server__entry_url(const struct server *server);

#endif
