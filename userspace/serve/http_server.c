/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a request is judged, in this order:
 *
 *   1. Is the Host header ours, and is the first component of the path the token? If not: 404 without a
 *      body that depends on anything, and the connection is closed. The method, the rest of the path and
 *      the headers have not been looked at, so an answer tells nothing about them.
 *   2. From here on the client knows the token, so it is the user's browser, or a page that the user gave
 *      the address to (the Firefox Profiler): every answer has the headers that let pages of other origins
 *      read it (CORS, and Chrome's private network access).
 *   3. A method that is known, a file that is known.
 *
 * libmicrohttpd parses, buffers and answers; connections are accepted here, so that they can be counted
 * (peers.h) and dropped.
 *
 * All of it belongs to the thread that calls http_server__*(); libmicrohttpd runs inside
 * http_server__wait() only (MHD_run()).
 */
#include "serve/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "serve/loopback.h"
#include "serve/peers.h"

#define ACCEPTS_AT_ONCE	 32
#define HEADER_MEMORY	 (32 * 1024) /* of a connection: its request line and headers must fit */
#define IDLE_SECONDS	 30	     /* between two bytes, also of an answer that is not fetched */
#define SWEEP_MS	 1000
#define ECHO_MAX	 1024 /* of Access-Control-Request-Headers */
#define CONTENT_TOO_LONG 413  /* its name in libmicrohttpd depends on the version */

#define METHODS		 "GET, HEAD, POST, OPTIONS"
/* A page has everything in itself: neither it nor what hostile names might make of it reaches the network. */
#define PAGE_POLICY                                                                                \
	"default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob: data:; "          \
	"style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "                         \
	"connect-src data: blob:; worker-src blob: data:; base-uri 'none'; form-action 'none'; "   \
	"frame-ancestors 'none'"

/* A request that is read or waits for its file. */
struct request {
	struct http_server *server;
	struct peer *peer;
	struct request *next, **link; /* of those that wait */
	struct MHD_Connection *connection;
	size_t file; /* that it waits for */
	bool waiting, refused;
	char *body; /* of a POST */
	size_t body_size;
};

struct http_server {
	struct http_server_options options;
	struct loopback loopback;
	struct MHD_Daemon *daemon;
	struct MHD_Response *not_found;
	struct MHD_Response **responses; /* by file; NULL: not provided yet */
	struct peers peers;
	struct request *waiting;
	bool ending;
	bool entered; /* the entry has been used */
	char token[TOKEN_SIZE + 1], entry[TOKEN_SIZE + 1];
	char home[TOKEN_SIZE + sizeof("//")];
	char url[sizeof("http://127.0.0.1:65535/") + TOKEN_SIZE];
	char entry_url[sizeof("http://127.0.0.1:65535//") + TOKEN_SIZE];
};

/* ---- connections ----------------------------------------------------------------------------- */

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http_server *server = context;
	int fd;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
			     ->connect_fd;
		/* without memory for it, its requests are refused */
		*socket_context = peers__add(&server->peers, fd, monotonic_ns());
		return;
	}
	peer__remove(*socket_context);
	*socket_context = NULL;
}

static void accept_peers(struct http_server *server, int listener)
{
	for (int i = 0; i < ACCEPTS_AT_ONCE && server->peers.count < PEERS_MAX; i++) {
		struct sockaddr_storage address;
		socklen_t size = sizeof(address);
		int fd = accept4(listener, (struct sockaddr *)&address, &size,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		peers__make_room(&server->peers);
		/* closes it, if it fails */
		MHD_add_connection(server->daemon, fd, (struct sockaddr *)&address, size);
	}
}

/* ---- answers --------------------------------------------------------------------------------- */

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	MHD_add_response_header(response, name, value);
}

/* What every answer to someone who knows the token has. */
static void add_common_headers(struct MHD_Response *response)
{
	add_header(response, "Access-Control-Allow-Origin", "*");
	add_header(response, "Cache-Control", "no-store");
	add_header(response, "Referrer-Policy", "no-referrer");
	add_header(response, "X-Content-Type-Options", "nosniff");
}

static enum MHD_Result send_response(struct request *request, unsigned int status,
				     struct MHD_Response *response)
{
	peer__is_answered(request->peer);
	return MHD_queue_response(request->connection, status, response);
}

/* `response` is given up; NULL: no memory, which closes the connection */
static enum MHD_Result send_once(struct request *request, unsigned int status,
				 struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_common_headers(response);
	result = send_response(request, status, response);
	MHD_destroy_response(response);
	return result;
}

static struct MHD_Response *empty_response(void)
{
	return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result send_not_found(struct request *request)
{
	return send_response(request, MHD_HTTP_NOT_FOUND, request->server->not_found);
}

static enum MHD_Result send_redirect(struct request *request, const char *location)
{
	struct MHD_Response *response = empty_response();

	if (response)
		add_header(response, MHD_HTTP_HEADER_LOCATION, location);
	return send_once(request, MHD_HTTP_FOUND, response);
}

/* Header names only: what is not one is not echoed. */
static bool is_header_list(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_, ";

	return strlen(text) <= ECHO_MAX && !text[strspn(text, letters)];
}

static enum MHD_Result send_preflight(struct request *request)
{
	const char *headers = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
							  "Access-Control-Request-Headers");
	struct MHD_Response *response = empty_response();

	if (response) {
		add_header(response, "Access-Control-Allow-Methods", METHODS);
		add_header(response, "Access-Control-Max-Age", "86400");
		add_header(response, "Access-Control-Allow-Private-Network", "true");
		if (headers && is_header_list(headers))
			add_header(response, "Access-Control-Allow-Headers", headers);
	}
	return send_once(request, MHD_HTTP_NO_CONTENT, response);
}

static enum MHD_Result send_wrong_method(struct request *request, const char *allowed)
{
	struct MHD_Response *response = empty_response();

	if (response)
		add_header(response, MHD_HTTP_HEADER_ALLOW, allowed);
	return send_once(request, MHD_HTTP_METHOD_NOT_ALLOWED, response);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void stop_waiting(struct request *request)
{
	if (!request->waiting)
		return;
	request->waiting = false;
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	request->next = NULL;
}

static void wait_for_file(struct request *request, size_t file)
{
	struct http_server *server = request->server;

	request->file = file;
	request->waiting = true;
	peer__is_answered(request->peer);
	request->next = server->waiting;
	request->link = &server->waiting;
	if (request->next)
		request->next->link = &request->next;
	server->waiting = request;
	MHD_suspend_connection(request->connection);
}

static enum MHD_Result send_file(struct request *request, const char *name)
{
	struct http_server *server = request->server;

	for (size_t i = 0; i < server->options.file_count; i++) {
		if (strcmp(server->options.files[i].name, name))
			continue;
		if (server->responses[i])
			return send_response(request, MHD_HTTP_OK, server->responses[i]);
		if (request->refused || server->ending)
			return send_once(request, MHD_HTTP_INTERNAL_SERVER_ERROR, empty_response());
		wait_for_file(request, i);
		return MHD_YES;
	}
	return send_once(request, MHD_HTTP_NOT_FOUND, empty_response());
}

static void resume(struct request *request)
{
	stop_waiting(request);
	MHD_resume_connection(request->connection);
}

int http_server__provide(struct http_server *server, size_t file, int fd, uint64_t size)
{
	const struct http_file *f = &server->options.files[file];
	struct MHD_Response *response = MHD_create_response_from_fd64(size, fd);
	char disposition[128];

	if (!response) {
		close(fd);
		http_server__refuse(server, file);
		return -ENOMEM;
	}
	add_common_headers(response);
	add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, f->type);
	if (f->gzip)
		add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	if (f->page)
		add_header(response, "Content-Security-Policy", PAGE_POLICY);
	if (f->download) {
		snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"", f->name);
		add_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, disposition);
	}
	server->responses[file] = response;
	for (struct request *r = server->waiting, *next; r; r = next) {
		next = r->next;
		if (r->file == file)
			resume(r);
	}
	return 0;
}

void http_server__refuse(struct http_server *server, size_t file)
{
	for (struct request *r = server->waiting, *next; r; r = next) {
		next = r->next;
		if (r->file != file)
			continue;
		r->refused = true;
		resume(r);
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum MHD_Result count_host(void *context, enum MHD_ValueKind kind, const char *key,
				  const char *value)
{
	unsigned int *count = context;

	(void)kind;
	(void)value;
	*count += key && !strcasecmp(key, MHD_HTTP_HEADER_HOST);
	return MHD_YES;
}

static bool host_is_ours(struct request *request)
{
	const char *host = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_HOST);
	unsigned int hosts = 0;

	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_host, &hosts);
	return host && hosts == 1 && loopback__is_our_host(&request->server->loopback, host);
}

static enum MHD_Result take_body(struct request *request, const char *data, size_t *size)
{
	char *body = realloc(request->body, request->body_size + *size);

	if (!body)
		return MHD_NO;
	memcpy(body + request->body_size, data, *size);
	request->body = body;
	request->body_size += *size;
	*size = 0;
	return MHD_YES;
}

static enum MHD_Result send_too_long(struct request *request)
{
	return send_once(request, CONTENT_TOO_LONG, empty_response());
}

/* The length is refused where it is announced; one that is not announced, where it is exceeded. */
static bool announces_too_much(struct request *request)
{
	const char *length = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);

	return length && strtoull(length, NULL, 10) > API_REQUEST_MAX;
}

static enum MHD_Result answer_api(struct request *request, const char *name)
{
	struct MHD_Response *response;
	char *answer;
	size_t size;

	if (source_api__answer(&request->server->options.sources, name,
			       request->body ? request->body : "", request->body_size, &answer,
			       &size))
		return MHD_NO;
	response = MHD_create_response_from_buffer(size, answer, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(answer);
		return MHD_NO;
	}
	add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	return send_once(request, MHD_HTTP_OK, response);
}

/*
 * `name`: what is behind the token and its slash. An error is sent before the body, which closes the
 * connection and spares us the body; anything else after it, which keeps the connection.
 */
static enum MHD_Result answer_known(struct request *request, const char *method, const char *name,
				    bool first)
{
	bool api = source_api__knows(name), preflight = !strcmp(method, MHD_HTTP_METHOD_OPTIONS);
	bool allowed = api ? !strcmp(method, MHD_HTTP_METHOD_POST)
			   : !strcmp(method, MHD_HTTP_METHOD_GET) ||
				       !strcmp(method, MHD_HTTP_METHOD_HEAD);

	if (!allowed && !preflight)
		return send_wrong_method(request, api ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
	if (first)
		return announces_too_much(request) ? send_too_long(request) : MHD_YES;
	if (preflight)
		return send_preflight(request);
	return api ? answer_api(request, name) : send_file(request, name);
}

/* Judges it as the essay at the top says. `first`: before the body. */
static enum MHD_Result answer(struct request *request, const char *method, const char *url,
			      bool first)
{
	struct http_server *server = request->server;
	const char *token = *url == '/' ? url + 1 : url;
	const char *end = strchrnul(token, '/');
	bool host = host_is_ours(request);
	bool known = token__equal(server->token, token, end);
	bool entry = token__equal(server->entry, token, end);

	if (!host || !(known || (entry && !server->entered)))
		return send_not_found(request);
	peer__trust(request->peer);
	if (entry) {
		server->entered = true;
		return send_redirect(request, server->home);
	}
	if (!*end) /* links on the page are relative to the directory */
		return send_redirect(request, server->home);
	return answer_known(request, method, end + 1, first);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **request_context)
{
	struct request *request = *request_context;
	struct peer *peer;

	(void)version;
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
		return answer(request, method, url, true);
	}
	if (*size) {
		if (request->body_size + *size > API_REQUEST_MAX)
			return MHD_NO;
		return take_body(request, data, size);
	}
	return answer(request, method, url, false);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **request_context,
			 enum MHD_RequestTerminationCode code)
{
	struct request *request = *request_context;

	(void)context;
	(void)connection;
	(void)code;
	if (!request)
		return;
	*request_context = NULL;
	stop_waiting(request);
	peer__is_done(request->peer, monotonic_ns());
	free(request->body);
	free(request);
}

/* Paths are compared as they came: a token has nothing to escape. */
static size_t keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context;
	(void)connection;
	return strlen(text);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int start_daemon(struct http_server *server)
{
	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		on_request, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_UNESCAPE_CALLBACK,
		keep_escapes, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)PEERS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_SECONDS,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	return server->daemon ? 0 : -ENOMEM;
}

static int make_not_found(struct http_server *server)
{
	static const char text[] = "not found\n";

	server->not_found = MHD_create_response_from_buffer(sizeof(text) - 1, (void *)text,
							    MHD_RESPMEM_PERSISTENT);
	if (!server->not_found)
		return -ENOMEM;
	add_header(server->not_found, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
	add_header(server->not_found, MHD_HTTP_HEADER_CONNECTION, "close");
	return 0;
}

int http_server__new(const struct http_server_options *options, struct http_server **result,
		     struct failure *failure)
{
	struct http_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return fail(failure, -ENOMEM, "cannot start the server: out of memory");
	server->options = *options;
	server->loopback.fds[0] = server->loopback.fds[1] = -1;
	server->responses = calloc(options->file_count, sizeof(*server->responses));
	err = server->responses ? 0 : -ENOMEM;
	if (!err)
		err = token__make(server->token);
	if (!err)
		err = token__make(server->entry);
	if (!err)
		err = make_not_found(server);
	if (!err)
		err = start_daemon(server);
	if (err) {
		fail(failure, err, "cannot start the server: %s", strerror(-err));
		goto err_out;
	}
	err = loopback__open(&server->loopback, options->port, failure);
	if (err)
		goto err_out;
	snprintf(server->home, sizeof(server->home), "/%s/", server->token);
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u/%s", server->loopback.port,
		 server->token);
	snprintf(server->entry_url, sizeof(server->entry_url), "http://127.0.0.1:%u/%s/",
		 server->loopback.port, server->entry);
	*result = server;
	return 0;
err_out:
	http_server__free(server);
	return err;
}

void http_server__free(struct http_server *server)
{
	if (!server)
		return;
	/* libmicrohttpd does not stop while connections are suspended */
	server->ending = true;
	while (server->waiting)
		resume(server->waiting);
	if (server->daemon) {
		MHD_run(server->daemon);
		MHD_stop_daemon(server->daemon);
	}
	loopback__close(&server->loopback);
	for (size_t i = 0; server->responses && i < server->options.file_count; i++)
		if (server->responses[i])
			MHD_destroy_response(server->responses[i]);
	if (server->not_found)
		MHD_destroy_response(server->not_found);
	free(server->responses);
	free(server);
}

uint16_t http_server__port(const struct http_server *server)
{
	return server->loopback.port;
}

const char *http_server__url(const struct http_server *server)
{
	return server->url;
}

const char *http_server__entry_url(const struct http_server *server)
{
	return server->entry_url;
}

/* Milliseconds until something is due; -1: nothing is before a connection comes. */
static int poll_timeout(struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG timeout;

	if (!server->peers.count)
		return -1;
	if (MHD_get_timeout(server->daemon, &timeout) != MHD_YES)
		return SWEEP_MS;
	return (int)min_u64(timeout, SWEEP_MS);
}

int http_server__wait(struct http_server *server, int until_fd, size_t *wanted)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon,
							       MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[] = {
		{.fd = until_fd, .events = POLLIN},
		{.fd = server->loopback.fds[0], .events = POLLIN},
		{.fd = server->loopback.fds[1], .events = POLLIN},
		{.fd = info->epoll_fd, .events = POLLIN},
	};
	int n;

	for (;;) {
		/* first: those who waited for a file can go on */
		if (MHD_run(server->daemon) != MHD_YES)
			return -EIO;
		if (server->waiting) {
			*wanted = server->waiting->file;
			return 1;
		}
		/* a full house leaves new connections in the queue of the socket */
		for (size_t i = 1; i <= 2; i++)
			fds[i].events = server->peers.count < PEERS_MAX ? POLLIN : 0;
		n = poll(fds, sizeof(fds) / sizeof(fds[0]), poll_timeout(server));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && fds[0].revents)
			return 0;
		for (size_t i = 1; n > 0 && i <= 2; i++)
			if (fds[i].revents & POLLIN)
				accept_peers(server, fds[i].fd);
		peers__drop_slow(&server->peers, monotonic_ns());
	}
}
