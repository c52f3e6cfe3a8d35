/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket that listens on an address of the settings: a numeric one with a port, or a path. */
#ifndef SERVE_LISTENER_H
#define SERVE_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"

#define UNIX_PREFIX "unix:"

struct listener {
	int fd; /* -1: closed */
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
/* Removes the file of a unix socket, unless another process has replaced it. */
void listener__close(struct listener *listener);

#endif
