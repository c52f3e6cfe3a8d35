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

#include "serve/server.h"
#include "serve/server_request.h"

/* ---- listening sockets ----------------------------------------------------------------------- */

#define UNIX_PREFIX "unix:"

struct listener {
	int fds[2]; /* -1: none */
	uint16_t port;
	bool loopback;		 /* TCP on the loopback interface: browsers can connect */
	struct stat socket_file; /* of a unix socket */
	char address[sizeof(struct sockaddr_un) + sizeof(UNIX_PREFIX)]; /* with the real port */
};

/*
 * Connections, and which of them to close: idle or slow ones must not keep the browser out. Peers
 * that have not sent the token are *strangers*.
 */

#define PEERS_MAX	128
#define STRANGERS_MAX	64
#define REQUEST_SECONDS 10 /* until a request is complete */

struct peers {
	LIST_HEAD(, peer) list; /* the youngest first */
	unsigned int count, strangers;
};

/* A connection. */
struct peer {
	struct peers *peers;
	LIST_ENTRY(peer) link;
	int fd;		/* not ours */
	uint64_t since; /* when accepted, or its last request was answered; CLOCK_MONOTONIC ns */
	bool trusted, answered, dropped;
};

/* NULL: no memory */
struct peer *peers__add(struct peers *peers, int fd, uint64_t now);
/* Frees a closed connection. NULL is fine. */
void peer__remove(struct peer *peer);

/* Call before accepting: drops the oldest stranger if there are STRANGERS_MAX. */
void peers__make_room(struct peers *peers);
/* Drops peers whose request takes too long. `now` may precede the last peer__is_done(). */
void peers__drop_slow(struct peers *peers, uint64_t now);

/* It has sent the token. */
void peer__trust(struct peer *peer);
/* Its request is complete, so its time limit ends. */
void peer__is_answered(struct peer *peer);
/* The next request may come. */
void peer__is_done(struct peer *peer, uint64_t now);

/* Shared by server.c (connections, waiting, life) and server_request.c (checks, answers). */

struct server_request {
	struct server *server;
	struct peer *peer;
	LIST_ENTRY(server_request) link; /* in server.waiting */
	struct MHD_Connection *connection;
	const struct route *route; /* NULL: the path has none */
	char *path;
	char *body;
	size_t body_size;
	bool preflight; /* OPTIONS of a browser */
	bool waiting;	/* suspended */
	bool started;	/* answer() was called */
	bool abandoned; /* its client closed while it waited */
	bool replied;	/* `reply` is to be sent */
	struct server_reply reply;
};

struct server {
	struct server_options options;
	struct listener listener;
	bool secret; /* with a token, on the loopback interface */
	struct MHD_Daemon *daemon;
	struct MHD_Response *not_found;
	struct peers peers;
	uint64_t accept_at; /* CLOCK_MONOTONIC ns; until then there is no room for a connection */
	LIST_HEAD(, server_request) waiting;
	bool ending;
	bool entered; /* the entry has been used */
	char token[TOKEN_SIZE + 1], entry[TOKEN_SIZE + 1];
	char home[TOKEN_SIZE + sizeof("//")];
	char url[sizeof("http://127.0.0.1:65535/") + TOKEN_SIZE];
	char entry_url[sizeof("http://127.0.0.1:65535//") + TOKEN_SIZE];
};

/* Callbacks of libmicrohttpd; the context is the server. */
enum MHD_Result server__on_request(void *context, struct MHD_Connection *connection,
				   const char *url, const char *method, const char *version,
				   const char *data, size_t *size, void **request_context);
void server__on_completed(void *context, struct MHD_Connection *connection, void **request_context,
			  enum MHD_RequestTerminationCode code);

/* Suspends the connection until the route has an answer. */
void server_request__wait(struct server_request *request);
/* Takes a waiting request from the list without an answer. */
void server_request__give_up(struct server_request *request);

#endif
