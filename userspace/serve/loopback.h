/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets that listen on the loopback interface and nowhere else, and names that cannot be guessed. */
#ifndef SERVE_LOOPBACK_H
#define SERVE_LOOPBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define TOKEN_BYTES 20 /* of randomness: 160 bits */
#define TOKEN_SIZE  (2 * TOKEN_BYTES)

struct loopback {
	int fds[2]; /* 127.0.0.1; [::1], or -1 where that is impossible */
	uint16_t port;
};

/*
 * Listen on `port`, 0: any that is free. 0 or negative errno with `failure` filled. [::1] is left out where there is
 * no IPv6, or another process has the port there.
 */
int loopback__open(struct loopback *loopback, uint16_t port, struct failure *failure);
void loopback__close(struct loopback *loopback);

/* Does a Host header name this server? Anything else is another site's page (DNS rebinding). */
bool loopback__is_our_host(const struct loopback *loopback, const char *host);

/* TOKEN_SIZE hexadecimal digits and NUL. 0 or negative errno. */
int token__make(char token[TOKEN_SIZE + 1]);

/* Is the text before `end` this token? Takes equally long wherever they differ. */
bool token__equal(const char token[TOKEN_SIZE + 1], const char *text, const char *end);

#endif
