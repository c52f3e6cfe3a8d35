/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by server.c (connections, waiting, life) and server_request.c (checks, answers). */
#ifndef SERVE_SERVER_PRIVATE_H
#define SERVE_SERVER_PRIVATE_H

#include <microhttpd.h>

#include "serve/listener.h"
#include "serve/loopback.h"
#include "serve/peers.h"
#include "serve/server.h"

struct server_request {
	struct server *server;
	struct peer *peer;
	struct server_request *next, **link; /* of those that wait */
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
	struct loopback loopback; /* with a token */
	struct listener listener; /* without */
	bool secret;		  /* with a token */
	int fds[2];		  /* that listen, of one of the two; -1: none */
	struct MHD_Daemon *daemon;
	struct MHD_Response *not_found;
	struct peers peers;
	struct server_request *waiting;
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
