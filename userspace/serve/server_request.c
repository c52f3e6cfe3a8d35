/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of a request, in this order, once its headers are there:
 *
 *   1. The Host header is ours, and the first component of the path is the token, if there is one.
 *      Otherwise a constant 404 is sent and the connection closed. The method, the rest of the path
 *      and other headers are not read before, so the answer does not depend on them.
 *   2. A client with the token is the user's browser, or a page that got the address from the user
 *      (the Firefox Profiler). So with a token every answer has the headers that let pages of other
 *      origins read it (CORS, Chrome's private network access).
 *   3. Method and announced size. An error is sent before the body, which closes the connection
 *      without reading it; other answers are sent after the body and keep the connection.
 *
 * Then the connection is suspended. The route's answer() is called between runs of libmicrohttpd,
 * so a slow one does not count as idle time of the client.
 */
#include "serve/server_request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/parse.h"
#include "serve/listener.h"
#include "serve/server_private.h"

#define ECHO_MAX	 1024 /* bytes of Access-Control-Request-Headers */
#define CONTENT_TOO_LONG 413  /* its name in libmicrohttpd depends on the version */

/* The page needs no network, and markup in a hostile name must not reach it. */
#define PAGE_POLICY                                                                                \
	"default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob: data:; "          \
	"style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "                         \
	"connect-src data: blob:; worker-src blob: data:; base-uri 'none'; form-action 'none'; "   \
	"frame-ancestors 'none'"

/* ---- tokens ---------------------------------------------------------------------------------- */

int token__make(char token[TOKEN_SIZE + 1])
{
	unsigned char bytes[TOKEN_BYTES];
	ssize_t got;

	do {
		got = getrandom(bytes, sizeof(bytes), 0);
	} while (got < 0 && errno == EINTR);
	if (got != sizeof(bytes))
		return got < 0 ? -errno : -EIO;
	put_hex_bytes(token, bytes, sizeof(bytes));
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

/* ---- sending --------------------------------------------------------------------------------- */

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	MHD_add_response_header(response, name, value);
}

static enum MHD_Result queue_response(struct server_request *request, unsigned int status,
				      struct MHD_Response *response)
{
	peer__is_answered(request->peer);
	return MHD_queue_response(request->connection, status, response);
}

/* Takes `response`; NULL: out of memory, which closes the connection. */
static enum MHD_Result send_response(struct server_request *request, unsigned int status,
				     struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	if (request->server->secret)
		add_header(response, "Access-Control-Allow-Origin", "*");
	add_header(response, "Cache-Control", "no-store");
	add_header(response, "Referrer-Policy", "no-referrer");
	add_header(response, "X-Content-Type-Options", "nosniff");
	result = queue_response(request, status, response);
	MHD_destroy_response(response);
	return result;
}

static struct MHD_Response *text_response(const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		text ? strlen(text) : 0, (void *)text, MHD_RESPMEM_MUST_COPY);

	if (response && text)
		add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
	return response;
}

static enum MHD_Result send_text(struct server_request *request, unsigned int status,
				 const char *text)
{
	return send_response(request, status, text_response(text));
}

static enum MHD_Result send_not_found(struct server_request *request)
{
	return queue_response(request, MHD_HTTP_NOT_FOUND, request->server->not_found);
}

static enum MHD_Result send_redirect(struct server_request *request, const char *location)
{
	struct MHD_Response *response = text_response(NULL);

	if (response)
		add_header(response, MHD_HTTP_HEADER_LOCATION, location);
	return send_response(request, MHD_HTTP_FOUND, response);
}

/* Only header names are echoed. */
static bool is_header_list(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_, ";

	return strlen(text) <= ECHO_MAX && !text[strspn(text, letters)];
}

static enum MHD_Result send_preflight(struct server_request *request)
{
	const char *headers = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
							  "Access-Control-Request-Headers");
	struct MHD_Response *response = text_response(NULL);

	if (response) {
		add_header(response, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
		add_header(response, "Access-Control-Max-Age", "86400");
		add_header(response, "Access-Control-Allow-Private-Network", "true");
		if (headers && is_header_list(headers))
			add_header(response, "Access-Control-Allow-Headers", headers);
	}
	return send_response(request, MHD_HTTP_NO_CONTENT, response);
}

static enum MHD_Result send_wrong_method(struct server_request *request)
{
	bool post = request->route && request->route->post;
	struct MHD_Response *response;
	char allowed[32], text[64];

	snprintf(allowed, sizeof(allowed), "%s%s", post ? "POST" : "GET, HEAD",
		 request->server->secret ? ", OPTIONS" : "");
	snprintf(text, sizeof(text), "allowed methods: %s\n", allowed);
	response = text_response(text);
	if (response)
		add_header(response, MHD_HTTP_HEADER_ALLOW, allowed);
	return send_response(request, MHD_HTTP_METHOD_NOT_ALLOWED, response);
}

static struct MHD_Response *reply_response(const struct server_reply *reply)
{
	struct MHD_Response *response;
	int fd;

	if (!reply->file) {
		response = MHD_create_response_from_buffer(reply->size, reply->body,
							   reply->body ? MHD_RESPMEM_MUST_FREE
								       : MHD_RESPMEM_PERSISTENT);
		if (!response)
			free(reply->body);
		return response;
	}
	fd = fcntl(reply->file->fd, F_DUPFD_CLOEXEC, 0);
	response = fd < 0 ? NULL : MHD_create_response_from_fd64(reply->file->size, fd);
	if (!response && fd >= 0)
		close(fd);
	return response;
}

static void add_route_headers(struct MHD_Response *response, const struct route *route)
{
	char disposition[128];

	if (route->gzip)
		add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	if (route->page)
		add_header(response, "Content-Security-Policy", PAGE_POLICY);
	if (route->download) {
		snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"",
			 route->path);
		add_header(response, MHD_HTTP_HEADER_CONTENT_DISPOSITION, disposition);
	}
}

static enum MHD_Result send_reply(struct server_request *request)
{
	const struct server_reply *reply = &request->reply;
	struct MHD_Response *response = reply_response(reply);
	bool ok = reply->status == MHD_HTTP_OK;
	const char *type = reply->type ?: ok ? request->route->type : NULL;
	char number[16];

	request->replied = false;
	if (!response)
		return MHD_NO;
	if (type)
		add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (ok)
		add_route_headers(response, request->route);
	if (reply->retry_after) {
		snprintf(number, sizeof(number), "%u", reply->retry_after);
		add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, number);
	}
	return send_response(request, reply->status, response);
}

/* ---- checking requests ----------------------------------------------------------------------- */

static enum MHD_Result count_host(void *context, enum MHD_ValueKind kind, const char *key,
				  const char *value)
{
	unsigned int *count = context;

	(void)kind;
	(void)value;
	*count += key && !strcasecmp(key, MHD_HTTP_HEADER_HOST);
	return MHD_YES;
}

/*
 * Another name is that of another site's page (DNS rebinding). Without a token, a client without a
 * Host is no browser, and only the loopback interface is checked: names for other machines are
 * unknown.
 */
static bool host_is_ours(const struct server_request *request)
{
	const struct server *s = request->server;
	const char *host = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_HOST);
	unsigned int hosts = 0;

	if (!s->secret && !s->listener.loopback)
		return true;
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_host, &hosts);
	if (!hosts)
		return !s->secret;
	if (!host || hosts > 1)
		return false;
	return listener__is_our_host(&s->listener, host) ||
	       (!s->secret && !strcasecmp(host, s->listener.address));
}

static const struct route *find_route(const struct server *s, const char *path)
{
	for (size_t i = 0; i < s->options.route_count; i++) {
		const struct route *route = &s->options.routes[i];

		if (route->has_path ? route->has_path(path) : !strcmp(route->path, path))
			return route;
	}
	return NULL;
}

/* An unannounced length is checked in take_body(). */
static bool announces_too_much(const struct server_request *request)
{
	const char *length = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_LENGTH);

	return length && strtoull(length, NULL, 10) > request->server->options.body_max;
}

static enum MHD_Result check_route(struct server_request *request, const char *method,
				   const char *path)
{
	const struct server *s = request->server;
	bool post;

	request->path = strdup(path);
	if (!request->path)
		return MHD_NO;
	request->route = find_route(s, path);
	request->preflight = s->secret && !strcmp(method, MHD_HTTP_METHOD_OPTIONS);
	post = request->route && request->route->post;
	if (!request->preflight &&
	    (post ? strcmp(method, MHD_HTTP_METHOD_POST)
		  : strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD)))
		return send_wrong_method(request);
	return announces_too_much(request) ? send_text(request, CONTENT_TOO_LONG, NULL) : MHD_YES;
}

static enum MHD_Result check_secret(struct server_request *request, const char *method,
				    const char *url)
{
	struct server *s = request->server;
	const char *token = *url == '/' ? url + 1 : url;
	const char *end = strchrnul(token, '/');
	bool host = host_is_ours(request);
	bool known = token__equal(s->token, token, end);
	bool entry = token__equal(s->entry, token, end);

	if (!host || !(known || (entry && !s->entered)))
		return send_not_found(request);
	peer__trust(request->peer);
	if (entry) {
		s->entered = true;
		return send_redirect(request, s->home);
	}
	if (!*end) /* links on the page are relative to the directory */
		return send_redirect(request, s->home);
	return check_route(request, method, end + 1);
}

static enum MHD_Result check_headers(struct server_request *request, const char *method,
				     const char *url)
{
	if (request->server->secret)
		return check_secret(request, method, url);
	if (!host_is_ours(request))
		return send_not_found(request);
	return check_route(request, method, *url == '/' ? url + 1 : url);
}

static enum MHD_Result take_body(struct server_request *request, const char *data, size_t *size)
{
	char *body;

	if (*size > request->server->options.body_max - request->body_size)
		return MHD_NO;
	body = realloc(request->body, request->body_size + *size);
	if (!body)
		return MHD_NO;
	memcpy(body + request->body_size, data, *size);
	request->body = body;
	request->body_size += *size;
	*size = 0;
	return MHD_YES;
}

/* The body is complete. */
static enum MHD_Result finish_request(struct server_request *request)
{
	const struct server *s = request->server;

	if (request->preflight)
		return send_preflight(request);
	if (!request->route)
		return send_text(request, MHD_HTTP_NOT_FOUND, s->options.unknown_path);
	if (s->ending)
		return send_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "the program ends\n");
	server_request__wait(request);
	return MHD_YES;
}

static struct server_request *new_request(struct server *s, struct MHD_Connection *connection)
{
	struct peer *peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
				    ->socket_context;
	struct server_request *request = peer ? calloc(1, sizeof(*request)) : NULL;

	if (!request)
		return NULL;
	request->server = s;
	request->peer = peer;
	request->connection = connection;
	return request;
}

enum MHD_Result server__on_request(void *context, struct MHD_Connection *connection,
				   const char *url, const char *method, const char *version,
				   const char *data, size_t *size, void **request_context)
{
	struct server_request *request = *request_context;

	(void)version;
	if (!request) {
		request = *request_context = new_request(context, connection);
		return request ? check_headers(request, method, url) : MHD_NO;
	}
	if (request->abandoned)
		return MHD_NO;
	if (*size)
		return take_body(request, data, size);
	return request->replied ? send_reply(request) : finish_request(request);
}

void server__on_completed(void *context, struct MHD_Connection *connection, void **request_context,
			  enum MHD_RequestTerminationCode code)
{
	struct server_request *request = *request_context;

	(void)context;
	(void)connection;
	(void)code;
	if (!request)
		return;
	*request_context = NULL;
	if (request->waiting)
		server_request__give_up(request);
	if (request->replied)
		free(request->reply.body);
	peer__is_done(request->peer, monotonic_ns());
	free(request->path);
	free(request->body);
	free(request);
}

const char *server_request__path(const struct server_request *request)
{
	return request->path;
}

const char *server_request__argument(const struct server_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *server_request__body(const struct server_request *request, size_t *size)
{
	*size = request->body_size;
	return request->body ?: "";
}
