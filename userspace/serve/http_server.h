/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A web server for one reader, on the loopback interface: files under a path that cannot be guessed.
 * The door to libmicrohttpd.
 *
 *   http_server__new     listens
 *   http_server__wait    serves until a file is asked for that is not there yet
 *   http_server__provide puts it there; whoever asked is answered
 *
 * One thread, no callbacks: files are made by the caller when they are wanted. Other users of the machine
 * can connect as well, so everything that a connection can use up is bounded: their number, the size and
 * duration of a request. Whoever does not know the path gets the same answer to whatever he asks.
 */
#ifndef SERVE_HTTP_SERVER_H
#define SERVE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "serve/source_api.h"

struct http_server;

struct http_file {
	const char *name; /* below the token; "" is the front page */
	const char *type; /* Content-Type */
	bool gzip;	  /* the bytes are compressed; the browser decompresses them */
	bool download;	  /* it is to be saved, not shown */
	bool page;	  /* HTML: it gets a content security policy */
};

struct http_server_options {
	uint16_t port; /* 0: any that is free */
	const struct http_file *files;
	size_t file_count;
	struct source_list sources; /* for /source/v1 */
};

/* `options` and what it points to must outlive the server. 0 or negative errno with `failure` filled. */
int http_server__new(const struct http_server_options *options, struct http_server **server,
		     struct failure *failure);
void http_server__free(struct http_server *server);

uint16_t http_server__port(const struct http_server *server);
/* The secret directory, "http://127.0.0.1:PORT/TOKEN": append "/" and a name. Valid as long as the server. */
const char *http_server__url(const struct http_server *server);
/*
 * An address that leads to the front page once. For command lines, which all users of the machine can
 * read: when they do, the browser has used it already.
 */
const char *http_server__entry_url(const struct http_server *server);

/*
 * Serves until `until_fd` is readable, or until a file is wanted that was not provided: then *wanted is its number.
 * 1: it is wanted; 0: `until_fd` is readable; or negative errno.
 */
int http_server__wait(struct http_server *server, int until_fd, size_t *wanted);

/* The file is in `fd`, `size` bytes. The server owns it from now on, also after a failure. 0 or -ENOMEM. */
int http_server__provide(struct http_server *server, size_t file, int fd, uint64_t size);
/* It could not be made: an error for those who wait, and the next one who asks tries again. */
void http_server__refuse(struct http_server *server, size_t file);

#endif
