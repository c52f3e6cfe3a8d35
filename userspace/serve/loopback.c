/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/server_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define BACKLOG	     64
#define DEFAULT_PORT 80 /* of http: browsers leave it out of the Host header */

static int listen_on(const struct sockaddr *address, socklen_t size)
{
	_cleanup_close_ int fd = socket(address->sa_family,
					SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	if (fd < 0)
		return -errno;
	/* connections of a server that has just ended do not keep the port */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (address->sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)))
		return -errno;
	if (bind(fd, address, size) || listen(fd, BACKLOG))
		return -errno;
	return steal_fd(fd);
}

static int listen_ipv4(uint16_t port)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	return listen_on((const struct sockaddr *)&address, sizeof(address));
}

static int listen_ipv6(uint16_t port)
{
	const struct sockaddr_in6 address = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};

	return listen_on((const struct sockaddr *)&address, sizeof(address));
}

int loopback__open(struct loopback *loopback, uint16_t port, struct failure *failure)
{
	_cleanup_close_ int fd = listen_ipv4(port);
	struct sockaddr_in bound;
	socklen_t size = sizeof(bound);

	if (fd < 0) {
		fail(failure, fd, "cannot listen on 127.0.0.1:%u: %s", port, strerror(-fd));
		return port ? fail_remedy(failure, fd, "leave out --port: any free port is taken")
			    : fd;
	}
	if (getsockname(fd, (struct sockaddr *)&bound, &size))
		return fail(failure, -errno, "cannot listen on 127.0.0.1: %s", strerror(errno));
	loopback->port = ntohs(bound.sin_port);
	loopback->fds[0] = steal_fd(fd);
	loopback->fds[1] = listen_ipv6(loopback->port);
	if (loopback->fds[1] < 0)
		loopback->fds[1] = -1;
	return 0;
}

void loopback__close(struct loopback *loopback)
{
	for (size_t i = 0; i < sizeof(loopback->fds) / sizeof(loopback->fds[0]); i++)
		if (loopback->fds[i] >= 0)
			close(steal_fd(loopback->fds[i]));
}

bool loopback__is_our_host(const struct loopback *loopback, const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char ours[32];

		snprintf(ours, sizeof(ours), "%s:%u", names[i], loopback->port);
		if (!strcasecmp(ours, host))
			return true;
		if (loopback->port == DEFAULT_PORT && !strcasecmp(names[i], host))
			return true;
	}
	return false;
}

int token__make(char token[TOKEN_SIZE + 1])
{
	unsigned char bytes[TOKEN_BYTES];
	ssize_t got;

	do {
		got = getrandom(bytes, sizeof(bytes), 0);
	} while (got < 0 && errno == EINTR);
	if (got != sizeof(bytes))
		return got < 0 ? -errno : -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

bool token__equal(const char token[TOKEN_SIZE + 1], const char *text, const char *end)
{
	unsigned char difference = 0;

	if (end - text != TOKEN_SIZE)
		return false;
	for (size_t i = 0; i < TOKEN_SIZE; i++)
		difference |= (unsigned char)token[i] ^ (unsigned char)text[i];
	return !difference;
}
