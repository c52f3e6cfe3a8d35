/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the server: sockets, connections, requests. */
#ifndef SERVE_SERVER_PRIVATE_H
#define SERVE_SERVER_PRIVATE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"
#include "serve/server.h"

/* ---- tokens (server_request.c) ---------------------------------------------------------------- */

#define TOKEN_BYTES 20 /* of randomness: 160 bits */
#define TOKEN_SIZE  (2 * TOKEN_BYTES)

/* TOKEN_SIZE hexadecimal digits and NUL. 0 or negative errno. */
int token__make(char token[TOKEN_SIZE + 1]);

/* Is the text before `end` this token? Takes equally long wherever they differ. */
bool token__equal(const char token[TOKEN_SIZE + 1], const char *text, const char *end);

/* ---- sockets that listen --------------------------------------------------------------------- */

#define UNIX_PREFIX "unix:"

struct listener {
	int fds[2]; /* -1: none */
	uint16_t port;
	bool loopback;		 /* TCP that only this machine reaches: a browser among others */
	struct stat socket_file; /* of a unix socket */
	char address[sizeof(struct sockaddr_un) +
		     sizeof(UNIX_PREFIX)]; /* with the port that it got */
};

/*
 * "127.0.0.1:9090", "[::1]:9090", "unix:/run/sysprof.sock" (mode 0660). 0 or negative errno with `failure` filled; on
 * failure it is closed.
 */
int listener__open(struct listener *listener, const char *address, struct failure *failure);
/*
 * On the loopback interface and nowhere else, at `port`, 0: any that is free. [::1] is left out where there is no IPv6, or
 * another process has the port there.
 */
int listener__open_loopback(struct listener *listener, uint16_t port, struct failure *failure);
/* Removes the file of a unix socket, unless another process has replaced it. */
void listener__close(struct listener *listener);

/* Does a Host header name this machine and port? Anything else is another site's page (DNS rebinding). */
bool listener__is_our_host(const struct listener *listener, const char *host);

/*
 * The connections, and which of them to close: a crowd of idle or slow connections must not keep the browser out.
 * Peers that have not shown the token are *strangers*.
 */

#define PEERS_MAX	128
#define STRANGERS_MAX	64
#define REQUEST_SECONDS 10 /* for all of a request, however it comes */

struct peers {
	LIST_HEAD(, peer) list; /* the youngest first */
	unsigned int count, strangers;
};

/* A connection. All zero but what peers__add() sets. */
struct peer {
	struct peers *peers;
	LIST_ENTRY(peer) link;
	int fd;		/* not ours */
	uint64_t since; /* it was accepted, or its last request was answered: CLOCK_MONOTONIC ns */
	bool trusted, answered, dropped;
};

/* NULL: no memory */
struct peer *peers__add(struct peers *peers, int fd, uint64_t now);
/* It has closed; frees it. NULL is fine. */
void peer__remove(struct peer *peer);

/* Before another one is accepted: drops the oldest stranger, if there are as many as there may be. */
void peers__make_room(struct peers *peers);
/* Drops those whose request takes too long to arrive. `now` may be before the last peer__is_done(). */
void peers__drop_slow(struct peers *peers, uint64_t now);

/* It has shown the token. */
void peer__trust(struct peer *peer);
/* Its request is complete; the rest is up to us. */
void peer__is_answered(struct peer *peer);
/* The next request may come. */
void peer__is_done(struct peer *peer, uint64_t now);

/* Shared by server.c (connections, waiting, life) and server_request.c (checks, answers). */

struct server_request {
	struct server *server;
	struct peer *peer;
	LIST_ENTRY(server_request) link; /* of those that wait */
	struct MHD_Connection *connection;
	const struct route *route; /* NULL: the path has none */
	char *path;
	char *body;
	size_t body_size;
	bool preflight; /* OPTIONS of a browser */
	bool waiting;	/* suspended */
	bool started;	/* answer() was called */
	bool abandoned; /* its client has closed while it waited */
	bool replied;	/* one that waited: `reply` is for it */
	struct server_reply reply;
};

struct server {
	struct server_options options;
	struct listener listener;
	bool secret; /* with a token, on the loopback interface */
	struct MHD_Daemon *daemon;
	struct MHD_Response *not_found;
	struct peers peers;
	LIST_HEAD(, server_request) waiting;
	bool ending;
	bool entered; /* the entry has been used */
	char token[TOKEN_SIZE + 1], entry[TOKEN_SIZE + 1];
	char home[TOKEN_SIZE + sizeof("//")];
	char url[sizeof("http://127.0.0.1:65535/") + TOKEN_SIZE];
	char entry_url[sizeof("http://127.0.0.1:65535//") + TOKEN_SIZE];
};

/* The callbacks of libmicrohttpd for a request; their context is the server. */
enum MHD_Result server__on_request(void *context, struct MHD_Connection *connection,
				   const char *url, const char *method, const char *version,
				   const char *data, size_t *size, void **request_context);
void server__on_completed(void *context, struct MHD_Connection *connection, void **request_context,
			  enum MHD_RequestTerminationCode code);

/* Suspends the connection until the route has an answer. */
void server_request__wait(struct server_request *request);
/* Of one that waits: it leaves the list without an answer. */
void server_request__give_up(struct server_request *request);

#endif
