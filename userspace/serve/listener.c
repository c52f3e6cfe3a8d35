/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/parse.h"
#include "serve/server_private.h"

#define BACKLOG	     128
#define SOCKET_MODE  0660
#define DEFAULT_PORT 80 /* of http: browsers leave it out of the Host header */

/* The file of a socket without a listener makes bind() fail. */
static void remove_dead_socket(const struct sockaddr_un *address)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat file;

	if (fd < 0 || lstat(address->sun_path, &file) || !S_ISSOCK(file.st_mode))
		return;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
	    errno == ECONNREFUSED)
		unlink(address->sun_path);
}

static int listen_unix(struct listener *l, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	remove_dead_socket(&address);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		return -errno;
	/* before listen(), so that no client connects with the wrong mode */
	if (chmod(path, SOCKET_MODE) || lstat(path, &l->socket_file) || listen(fd, BACKLOG)) {
		int err = -errno;

		unlink(path);
		return err;
	}
	snprintf(l->address, sizeof(l->address), UNIX_PREFIX "%s", path);
	l->fds[0] = steal_fd(fd);
	return 0;
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* "1.2.3.4:80" or "[::1]:80": its size, or -EINVAL. */
static int parse_address(const char *text, union address *address)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	size_t length;

	if (!colon || (size_t)(colon - text) >= sizeof(host) ||
	    parse_u64(colon + 1, 0, UINT16_MAX, &port))
		return -EINVAL;
	length = (size_t)(colon - text);
	memcpy(host, text, length);
	host[length] = '\0';
	*address = (union address){};
	if (host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = '\0';
		address->v6.sin6_family = AF_INET6;
		address->v6.sin6_port = htons(port);
		return inet_pton(AF_INET6, host + 1, &address->v6.sin6_addr) == 1
			       ? (int)sizeof(address->v6)
			       : -EINVAL;
	}
	address->v4.sin_family = AF_INET;
	address->v4.sin_port = htons(port);
	return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1 ? (int)sizeof(address->v4)
								    : -EINVAL;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

/* Opens fds[i]. */
static int listen_tcp(struct listener *l, size_t i, const char *text)
{
	_cleanup_close_ int fd = -1;
	union address address;
	const int on = 1;
	int size = parse_address(text, &address);
	socklen_t bound = sizeof(address);

	if (size < 0)
		return size;
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* connections of a server that has just ended do not block the port */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, &address.any, (socklen_t)size) || listen(fd, BACKLOG) ||
	    getsockname(fd, &address.any, &bound))
		return -errno;
	l->loopback = is_loopback(&address);
	l->port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
							 : address.v6.sin6_port);
	snprintf(l->address, sizeof(l->address), "%.*s:%u", (int)(strrchr(text, ':') - text), text,
		 l->port);
	l->fds[i] = steal_fd(fd);
	return 0;
}

int listener__open(struct listener *l, const char *address, struct failure *failure)
{
	int err;

	*l = (struct listener){.fds = {-1, -1}};
	if (!strncmp(address, UNIX_PREFIX, strlen(UNIX_PREFIX)))
		err = listen_unix(l, address + strlen(UNIX_PREFIX));
	else
		err = listen_tcp(l, 0, address);
	if (err == -EINVAL) {
		fail(failure, err, "\"%.200s\" is no address to listen on", address);
		return fail_remedy(failure, err,
				   "give 127.0.0.1:PORT, [::1]:PORT or unix:/PATH (at most 107 "
				   "bytes)");
	}
	return err ? fail(failure, err, "cannot listen on %.200s: %s", address, strerror(-err)) : 0;
}

int listener__open_loopback(struct listener *l, uint16_t port, struct failure *failure)
{
	char address[32];
	int err;

	*l = (struct listener){.fds = {-1, -1}};
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	err = listen_tcp(l, 0, address);
	if (err) {
		fail(failure, err, "cannot listen on %s: %s", address, strerror(-err));
		return port ? fail_remedy(failure, err, "leave out --port: any free port is taken")
			    : err;
	}
	snprintf(address, sizeof(address), "[::1]:%u", l->port);
	(void)listen_tcp(l, 1, address);
	return 0;
}

bool listener__is_our_host(const struct listener *l, const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char ours[32];

		snprintf(ours, sizeof(ours), "%s:%u", names[i], l->port);
		if (!strcasecmp(ours, host) ||
		    (l->port == DEFAULT_PORT && !strcasecmp(names[i], host)))
			return true;
	}
	return false;
}

static void remove_socket(const struct listener *l)
{
	const char *path = l->address + strlen(UNIX_PREFIX);
	struct stat file;

	if (!l->socket_file.st_ino || lstat(path, &file))
		return;
	if (is_same_inode(&file, &l->socket_file))
		unlink(path);
}

void listener__close(struct listener *l)
{
	if (l->fds[0] >= 0)
		remove_socket(l);
	cleanup_close(&l->fds[0]);
	cleanup_close(&l->fds[1]);
	l->fds[0] = l->fds[1] = -1;
}
