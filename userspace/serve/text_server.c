/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/text_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "serve/peers.h"

#define ACCEPTS_AT_ONCE 32
#define BACKLOG		128
#define HEADER_MEMORY	(16 * 1024) /* of a connection: its request line and headers must fit */
#define IDLE_SECONDS	15	    /* between two bytes, also of an answer that is not fetched */
#define SWEEP_MS	1000
#define SOCKET_MODE	0660
#define UNIX_PREFIX	"unix:"

struct text_request {
	struct text_server *server;
	struct peer *peer;
	struct text_request *next, **link; /* of those that wait */
	struct MHD_Connection *connection;
	bool waiting;
	bool abandoned; /* its client has closed while it waited */
	bool replied;	/* one that waited: `reply` is for it */
	struct text_reply reply;
};

struct text_server {
	struct text_server_options options;
	int fd; /* that listens */
	uint16_t port;
	bool loopback;		 /* only those here can connect, over TCP: a browser among them */
	struct stat socket_file; /* of a unix socket */
	char address[sizeof(struct sockaddr_un) + sizeof(UNIX_PREFIX)];
	struct MHD_Daemon *daemon;
	struct peers peers;
	struct text_request *waiting;
	bool ending;
};

/* ---- listening ------------------------------------------------------------------------------- */

/* A socket that nobody listens on any more is in the way of the next run. */
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

static int listen_unix(struct text_server *s, const char *path)
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
	/* before it listens nobody can connect */
	if (chmod(path, SOCKET_MODE) || lstat(path, &s->socket_file) || listen(fd, BACKLOG)) {
		int err = -errno;

		unlink(path);
		return err;
	}
	snprintf(s->address, sizeof(s->address), UNIX_PREFIX "%s", path);
	s->fd = steal_fd(fd);
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

static int listen_tcp(struct text_server *s, const char *text)
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
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, &address.any, (socklen_t)size) || listen(fd, BACKLOG) ||
	    getsockname(fd, &address.any, &bound))
		return -errno;
	s->loopback = is_loopback(&address);
	s->port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
							 : address.v6.sin6_port);
	snprintf(s->address, sizeof(s->address), "%.*s:%u", (int)(strrchr(text, ':') - text), text,
		 s->port);
	s->fd = steal_fd(fd);
	return 0;
}

static int open_listener(struct text_server *s, const char *address, struct failure *failure)
{
	int err;

	if (!strncmp(address, UNIX_PREFIX, strlen(UNIX_PREFIX)))
		err = listen_unix(s, address + strlen(UNIX_PREFIX));
	else
		err = listen_tcp(s, address);
	if (err == -EINVAL) {
		fail(failure, err, "\"%.200s\" is no address to listen on", address);
		return fail_remedy(failure, err,
				   "give 127.0.0.1:PORT, [::1]:PORT or unix:/PATH (at most 107 "
				   "bytes)");
	}
	return err ? fail(failure, err, "cannot listen on %.200s: %s", address, strerror(-err)) : 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct text_server *s = context;
	int fd;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
			     ->connect_fd;
		/* without memory for it, its requests are refused */
		*socket_context = peers__add(&s->peers, fd, monotonic_ns());
		return;
	}
	peer__remove(*socket_context);
	*socket_context = NULL;
}

static void accept_peers(struct text_server *s)
{
	for (int i = 0; i < ACCEPTS_AT_ONCE && s->peers.count < PEERS_MAX; i++) {
		struct sockaddr_storage address = {};
		socklen_t size = sizeof(address);
		int fd = accept4(s->fd, (struct sockaddr *)&address, &size,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		peers__make_room(&s->peers);
		/* closes it, if it fails */
		MHD_add_connection(s->daemon, fd, (struct sockaddr *)&address, size);
	}
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum MHD_Result send_reply(struct text_request *request, struct text_reply *reply)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		reply->size, reply->body,
		reply->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;
	char number[16];

	if (!response) {
		free(reply->body);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (reply->retry_after) {
		snprintf(number, sizeof(number), "%u", reply->retry_after);
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, number);
	}
	if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	peer__is_answered(request->peer);
	result = MHD_queue_response(request->connection, reply->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_text(struct text_request *request, unsigned int status,
				 const char *text)
{
	struct text_reply reply = {.status = status, .type = "text/plain", .body = strdup(text)};

	if (!reply.body)
		return MHD_NO;
	reply.size = strlen(text);
	return send_reply(request, &reply);
}

static void stop_waiting(struct text_request *request)
{
	if (!request->waiting)
		return;
	request->waiting = false;
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
}

/* Nobody drops it for one that comes later: the caller bounds how many wait. */
static void wait_for_reply(struct text_request *request)
{
	struct text_server *s = request->server;

	request->waiting = true;
	peer__trust(request->peer);
	peer__is_answered(request->peer);
	request->next = s->waiting;
	request->link = &s->waiting;
	if (request->next)
		request->next->link = &request->next;
	s->waiting = request;
	MHD_suspend_connection(request->connection);
}

void text_server__reply(struct text_server *s, struct text_request *request,
			struct text_reply *reply)
{
	(void)s;
	stop_waiting(request);
	request->replied = true;
	request->reply = *reply;
	*reply = (struct text_reply){};
	MHD_resume_connection(request->connection);
}

/* libmicrohttpd does not look at connections that are suspended. */
static void drop_abandoned(struct text_server *s)
{
	for (struct text_request *request = s->waiting, *next; request; request = next) {
		char byte;

		next = request->next;
		if (recv(request->peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT))
			continue;
		stop_waiting(request);
		request->abandoned = true;
		s->options.gone(s->options.context, request);
		MHD_resume_connection(request->connection);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

const char *text_request__argument(const struct text_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

/* Any name but ours is another site's page. A program that sends none is not a browser. */
static bool host_is_ours(const struct text_request *request)
{
	static const char *const NAMES[] = {"127.0.0.1", "localhost", "[::1]"};
	const struct text_server *s = request->server;
	const char *host = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_HOST);
	char ours[64];

	if (!s->loopback || !host || !strcasecmp(host, s->address))
		return true;
	for (size_t i = 0; i < sizeof(NAMES) / sizeof(*NAMES); i++) {
		snprintf(ours, sizeof(ours), "%s:%u", NAMES[i], s->port);
		if (!strcasecmp(host, ours))
			return true;
	}
	return false;
}

static enum MHD_Result answer(struct text_request *request, const char *method, const char *url)
{
	struct text_server *s = request->server;
	struct text_reply reply = {};

	if (!host_is_ours(request))
		return send_text(request, MHD_HTTP_NOT_FOUND, "not found\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return send_text(request, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD alone\n");
	if (s->ending)
		return send_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "the program ends\n");
	if (s->options.answer(s->options.context, request, url, &reply))
		return send_reply(request, &reply);
	wait_for_reply(request);
	return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **request_context)
{
	struct text_request *request = *request_context;
	struct peer *peer;

	(void)version;
	(void)data;
	if (!request) {
		peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
			       ->socket_context;
		request = peer ? calloc(1, sizeof(*request)) : NULL;
		if (!request)
			return MHD_NO;
		request->server = context;
		request->peer = peer;
		request->connection = connection;
		*request_context = request;
		return MHD_YES;
	}
	if (*size || request->abandoned) /* nobody has anything to tell us */
		return MHD_NO;
	if (request->replied) {
		request->replied = false;
		return send_reply(request, &request->reply);
	}
	return answer(request, method, url);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request_context,
			 enum MHD_RequestTerminationCode code)
{
	struct text_server *s = context;
	struct text_request *request = *request_context;

	(void)connection;
	(void)code;
	if (!request)
		return;
	*request_context = NULL;
	if (request->waiting)
		s->options.gone(s->options.context, request);
	stop_waiting(request);
	if (request->replied)
		free(request->reply.body);
	peer__is_done(request->peer, monotonic_ns());
	free(request);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int start_daemon(struct text_server *s)
{
	s->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		on_request, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)PEERS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_SECONDS,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	return s->daemon ? 0 : -ENOMEM;
}

int text_server__new(const struct text_server_options *options, struct text_server **server,
		     struct failure *failure)
{
	struct text_server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return fail(failure, -ENOMEM, "cannot start the server: out of memory");
	s->options = *options;
	s->options.address = NULL;
	s->fd = -1;
	err = open_listener(s, options->address, failure);
	if (err)
		goto err_out;
	err = start_daemon(s);
	if (err) {
		fail(failure, err, "cannot start the server: %s", strerror(-err));
		goto err_out;
	}
	*server = s;
	return 0;
err_out:
	text_server__free(s);
	return err;
}

/* Ours, if nobody has put another one there since. */
static void remove_socket(const struct text_server *s)
{
	const char *path = s->address + strlen(UNIX_PREFIX);
	struct stat file;

	if (!s->socket_file.st_ino || lstat(path, &file))
		return;
	if (file.st_ino == s->socket_file.st_ino && file.st_dev == s->socket_file.st_dev)
		unlink(path);
}

void text_server__free(struct text_server *s)
{
	if (!s)
		return;
	s->ending = true;
	while (s->waiting) {
		struct text_request *request = s->waiting;

		/* libmicrohttpd does not stop while connections are suspended */
		stop_waiting(request);
		s->options.gone(s->options.context, request);
		MHD_resume_connection(request->connection);
	}
	if (s->daemon) {
		MHD_run(s->daemon);
		MHD_stop_daemon(s->daemon);
	}
	if (s->fd >= 0)
		close(s->fd);
	remove_socket(s);
	free(s);
}

const char *text_server__address(const struct text_server *s)
{
	return s->address;
}

/* ms; -1: for ever. */
static int poll_timeout(struct text_server *s, uint64_t until)
{
	uint64_t now = monotonic_ns(), left = UINT64_MAX;
	MHD_UNSIGNED_LONG_LONG timeout;

	if (until != UINT64_MAX)
		left = until > now ? (until - now) / 1000000 + 1 : 0;
	if (s->peers.count)
		left = min_u64(left, SWEEP_MS);
	if (s->peers.count && MHD_get_timeout(s->daemon, &timeout) == MHD_YES)
		left = min_u64(left, timeout);
	return left == UINT64_MAX ? -1 : (int)min_u64(left, 3600000);
}

int text_server__run(struct text_server *s, int wake_fd, uint64_t until)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[] = {
		{.fd = wake_fd, .events = POLLIN},
		{.fd = s->fd, .events = POLLIN},
		{.fd = info->epoll_fd, .events = POLLIN},
	};
	int n;

	for (;;) {
		if (MHD_run(s->daemon) != MHD_YES)
			return -EIO;
		/* a full house leaves new connections in the queue of the socket */
		fds[1].events = s->peers.count < PEERS_MAX ? POLLIN : 0;
		n = poll(fds, sizeof(fds) / sizeof(fds[0]), poll_timeout(s, until));
		if (n < 0 && errno != EINTR)
			return -errno;
		drop_abandoned(s);
		if (n > 0 && fds[0].revents)
			return 1;
		if (n > 0 && fds[1].revents & POLLIN)
			accept_peers(s);
		peers__drop_slow(&s->peers, monotonic_ns());
		if (monotonic_ns() >= until)
			return 0;
	}
}
