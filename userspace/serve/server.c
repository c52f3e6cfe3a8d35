/* SPDX-License-Identifier: BSD-2-Clause */
/* libmicrohttpd parses and sends. Connections are accepted here, to count and drop them. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clocks.h"
#include "base/cleanup.h"
#include "base/minmax.h"
#include "serve/listener.h"
#include "serve/server_private.h"

#define ACCEPTS_AT_ONCE 32
#define SWEEP_MS	1000
#define NO_ROOM_NS	100000000ull /* without accepting, if there is no descriptor or memory */
#define POLL_MAX_MS	3600000

/* ---- peers ----------------------------------------------------------------------------------- */

/*
 * With too many strangers, the oldest is dropped, not the newest: the browser is a stranger for a
 * millisecond, until its request is read. Dropping shuts the socket down; libmicrohttpd reads the
 * end of the stream and closes it.
 */
struct peer *peers__add(struct peers *peers, int fd, uint64_t now)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	*peer = (struct peer){.peers = peers, .fd = fd, .since = now};
	LIST_INSERT_HEAD(&peers->list, peer, link);
	peers->count++;
	peers->strangers++;
	return peer;
}

static bool is_stranger(const struct peer *peer)
{
	return !peer->trusted && !peer->dropped;
}

void peer__remove(struct peer *peer)
{
	if (!peer)
		return;
	LIST_REMOVE(peer, link);
	peer->peers->count--;
	peer->peers->strangers -= is_stranger(peer);
	free(peer);
}

static void drop(struct peer *peer)
{
	if (peer->dropped)
		return;
	peer->peers->strangers -= is_stranger(peer);
	peer->dropped = true;
	shutdown(peer->fd, SHUT_RDWR);
}

void peers__make_room(struct peers *peers)
{
	struct peer *oldest = NULL, *peer;

	if (peers->strangers < STRANGERS_MAX)
		return;
	for (peer = LIST_FIRST(&peers->list); peer; peer = LIST_NEXT(peer, link))
		if (is_stranger(peer))
			oldest = peer;
	if (oldest)
		drop(oldest);
}

void peers__drop_slow(struct peers *peers, uint64_t now)
{
	struct peer *peer;

	for (peer = LIST_FIRST(&peers->list); peer; peer = LIST_NEXT(peer, link))
		if (!peer->answered && now > peer->since + REQUEST_SECONDS * 1000000000ull)
			drop(peer);
}

void peer__trust(struct peer *peer)
{
	peer->peers->strangers -= is_stranger(peer);
	peer->trusted = true;
}

void peer__is_answered(struct peer *peer)
{
	peer->answered = true;
}

void peer__is_done(struct peer *peer, uint64_t now)
{
	peer->answered = false;
	peer->since = now;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *s = context;
	int fd;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
			     ->connect_fd;
		/* NULL: its requests are refused */
		*socket_context = peers__add(&s->peers, fd, monotonic_ns());
		return;
	}
	peer__remove(*socket_context);
	*socket_context = NULL;
}

/* The connection stays in the socket's queue, so poll() would return at once. */
static void wait_for_room(struct server *s, int error)
{
	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return;
	s->accept_at = monotonic_ns() + NO_ROOM_NS;
	log_debug(LOG_AGENT, "cannot accept connections for now: %s", strerror(error));
}

static bool may_accept(const struct server *s)
{
	return s->peers.count < PEERS_MAX && monotonic_ns() >= s->accept_at;
}

static void accept_peers(struct server *s, int listener)
{
	for (int i = 0; i < ACCEPTS_AT_ONCE && s->peers.count < PEERS_MAX; i++) {
		struct sockaddr_storage address = {};
		socklen_t size = sizeof(address);
		int fd = accept4(listener, (struct sockaddr *)&address, &size,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			wait_for_room(s, errno);
			return;
		}
		peers__make_room(&s->peers);
		/* closes it on failure */
		MHD_add_connection(s->daemon, fd, (struct sockaddr *)&address, size);
	}
}

/* ---- waiting requests ------------------------------------------------------------------------ */

void server_request__wait(struct server_request *request)
{
	struct server *s = request->server;

	request->waiting = true;
	peer__is_answered(request->peer);
	LIST_INSERT_HEAD(&s->waiting, request, link);
	MHD_suspend_connection(request->connection);
}

static void stop_waiting(struct server_request *request)
{
	request->waiting = false;
	LIST_REMOVE(request, link);
}

void server_request__give_up(struct server_request *request)
{
	const struct server_options *options = &request->server->options;

	stop_waiting(request);
	if (options->gone)
		options->gone(options->context, request);
}

void server__reply(struct server_request *request, struct server_reply *reply)
{
	stop_waiting(request);
	request->replied = true;
	request->reply = *reply;
	*reply = (struct server_reply){};
	MHD_resume_connection(request->connection);
}

/* Calls answer() for newly complete requests. True: libmicrohttpd has answers to send. */
static bool answer_requests(struct server *s)
{
	bool answered = false;

	for (struct server_request *request = LIST_FIRST(&s->waiting), *next; request;
	     request = next) {
		struct server_reply reply = {};

		next = LIST_NEXT(request, link);
		if (request->started)
			continue;
		request->started = true;
		if (request->route->answer(s->options.context, request->route, request, &reply)) {
			server__reply(request, &reply);
			answered = true;
		} else {
			/* do not drop it for new connections: the caller limits waiting ones */
			peer__trust(request->peer);
		}
	}
	return answered;
}

/* libmicrohttpd does not notice that a suspended connection was closed. */
static void drop_abandoned(struct server *s)
{
	for (struct server_request *request = LIST_FIRST(&s->waiting), *next; request;
	     request = next) {
		char byte;

		next = LIST_NEXT(request, link);
		if (recv(request->peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT))
			continue;
		request->abandoned = true;
		server_request__give_up(request);
		MHD_resume_connection(request->connection);
	}
}

/* ---- the server ------------------------------------------------------------------------------ */

/* A path with a token is compared as received: a token has nothing to escape. */
static size_t unescape(void *context, struct MHD_Connection *connection, char *text)
{
	const struct server *s = context;

	(void)connection;
	return s->secret ? strlen(text) : MHD_http_unescape(text);
}

static int start_daemon(struct server *s)
{
	s->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		server__on_request, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
		MHD_OPTION_NOTIFY_COMPLETED, server__on_completed, s, MHD_OPTION_UNESCAPE_CALLBACK,
		unescape, s, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)PEERS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->options.header_max,
		MHD_OPTION_CONNECTION_TIMEOUT, s->options.idle_seconds,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	return s->daemon ? 0 : -ENOMEM;
}

static int make_not_found(struct server *s)
{
	static const char text[] = "not found\n";

	s->not_found = MHD_create_response_from_buffer(sizeof(text) - 1, (void *)text,
						       MHD_RESPMEM_PERSISTENT);
	if (!s->not_found)
		return -ENOMEM;
	MHD_add_response_header(s->not_found, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
	MHD_add_response_header(s->not_found, MHD_HTTP_HEADER_CONNECTION, "close");
	return 0;
}

static int open_sockets(struct server *s, const struct server_options *options,
			struct failure *failure)
{
	int err;

	if (!s->secret)
		return listener__open(&s->listener, options->address, failure);
	err = listener__open_loopback(&s->listener, options->port, failure);
	snprintf(s->home, sizeof(s->home), "/%s/", s->token);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u/%s", s->listener.port, s->token);
	snprintf(s->entry_url, sizeof(s->entry_url), "http://127.0.0.1:%u/%s/", s->listener.port,
		 s->entry);
	return err;
}

int server__new(const struct server_options *options, struct server **server,
		struct failure *failure)
{
	struct server *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return fail(failure, -ENOMEM, "cannot start the server: out of memory");
	s->options = *options;
	s->options.address = NULL;
	s->secret = !options->address;
	s->listener.fds[0] = s->listener.fds[1] = -1;
	err = token__make(s->token)
		      ?: token__make(s->entry)
		      ?: make_not_found(s)
		      ?: start_daemon(s);
	if (err)
		fail(failure, err, "cannot start the server: %s", strerror(-err));
	else
		err = open_sockets(s, options, failure);
	return finish_new(err, s, server__free, server);
}

void server__free(struct server *s)
{
	if (!s)
		return;
	s->ending = true;
	while (!LIST_EMPTY(&s->waiting)) {
		struct server_request *request = LIST_FIRST(&s->waiting);

		/* libmicrohttpd does not stop while connections are suspended */
		server_request__give_up(request);
		MHD_resume_connection(request->connection);
	}
	if (s->daemon) {
		MHD_run(s->daemon);
		MHD_stop_daemon(s->daemon);
	}
	listener__close(&s->listener);
	if (s->not_found)
		MHD_destroy_response(s->not_found);
	free(s);
}

const char *server__address(const struct server *s)
{
	return s->listener.address;
}

uint16_t server__port(const struct server *s)
{
	return s->listener.port;
}

const char *server__url(const struct server *s)
{
	return s->url;
}

const char *server__entry_url(const struct server *s)
{
	return s->entry_url;
}

/* Milliseconds; -1: until a connection comes. */
static int poll_timeout(struct server *s, uint64_t until)
{
	uint64_t now = monotonic_ns(), left = UINT64_MAX;
	MHD_UNSIGNED_LONG_LONG timeout;

	if (now < s->accept_at)
		until = min_u64(until, s->accept_at);
	if (until != UINT64_MAX)
		left = until > now ? (until - now) / 1000000 + 1 : 0;
	if (s->peers.count)
		left = min_u64(left, SWEEP_MS);
	if (s->peers.count && MHD_get_timeout(s->daemon, &timeout) == MHD_YES)
		left = min_u64(left, timeout);
	return left == UINT64_MAX ? -1 : (int)min_u64(left, POLL_MAX_MS);
}

static int run_daemon(struct server *s)
{
	do {
		if (MHD_run(s->daemon) != MHD_YES)
			return -EIO;
	} while (answer_requests(s));
	return 0;
}

int server__run(struct server *s, int wake_fd, uint64_t until)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[] = {
		{.fd = wake_fd, .events = POLLIN},
		{.fd = s->listener.fds[0], .events = POLLIN},
		{.fd = s->listener.fds[1], .events = POLLIN},
		{.fd = info->epoll_fd, .events = POLLIN},
	};
	int n;

	for (;;) {
		uint64_t now = monotonic_ns();

		if (run_daemon(s))
			return -EIO;
		/* `now` is before run_daemon(), so a slow answer() makes no other request slow */
		peers__drop_slow(&s->peers, now);
		if (monotonic_ns() >= until)
			return 0;
		/* otherwise new connections stay in the socket's queue */
		for (size_t i = 1; i <= 2; i++)
			fds[i].events = may_accept(s) ? POLLIN : 0;
		n = poll(fds, sizeof(fds) / sizeof(fds[0]), poll_timeout(s, until));
		if (n < 0 && errno != EINTR)
			return -errno;
		drop_abandoned(s);
		if (n > 0 && fds[0].revents)
			return 1;
		for (size_t i = 1; n > 0 && i <= 2; i++)
			if (fds[i].revents & POLLIN)
				accept_peers(s, fds[i].fd);
	}
}
