/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SERVE_LISTENER_H
#define SERVE_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

struct failure;
struct listener;

/*
 * "127.0.0.1:9090", "[::1]:9090", "unix:/run/sysprof.sock" (mode 0660). 0 or negative errno with
 * `failure` filled, and nothing open.
 */
int listener__open(struct listener *listener, const char *address, struct failure *failure);
/*
 * On the loopback interface only, at `port` (0: any free one). Without [::1] if there is no IPv6 or
 * another process has the port there.
 */
int listener__open_loopback(struct listener *listener, uint16_t port, struct failure *failure);
/* Removes the file of a unix socket, unless another process has replaced it. */
void listener__close(struct listener *listener);

/* A Host header is for this machine and port, not another site's (DNS rebinding). */
bool listener__is_our_host(const struct listener *listener, const char *host);

#endif
