/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock guards all that threads share: what was published, and one request with its answer. The
 * serving thread sleeps in server__run() until an answer or the end wakes it.
 */
#include "agent/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "agent/metrics.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/parse.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "serve/server.h"
#include "serve/server_request.h"
#include "services/label_set.h"

#define SECONDS_DEFAULT 30
#define SECONDS_MAX	600
#define GRACE_SECONDS                                                                              \
	90 /* for the answer to a request, beyond its own time: windows are finished later */
#define HEADER_MAX   (16 * 1024)
#define IDLE_SECONDS 15
#define RETRY_MS     1000

enum profile_request_state {
	REQUEST_NONE,
	REQUEST_NEW,
	REQUEST_TAKEN, /* the owner of the session works on it */
	REQUEST_ANSWERED,
};

struct endpoint {
	struct endpoint_options options;
	struct server *server;
	struct server_request *waiting; /* the serving thread's */
	int wake_fd;			/* of the serving thread */
	int request_fd;
	pthread_t thread;
	bool runs;
	atomic_bool ending;

	pthread_mutex_t lock;
	/* under it */
	char *metrics;
	size_t metrics_size;
	char illness[512];  /* "": none */
	uint64_t published; /* CLOCK_MONOTONIC ns */
	enum profile_request_state state;
	struct endpoint_request request;
	uint64_t deadline; /* of its answer */
	struct server_reply reply;
};

/* ---- answers --------------------------------------------------------------------------------- */

static bool reply_text(struct server_reply *reply, unsigned int status, const char *text)
{
	*reply = (struct server_reply){
		.status = status, .type = "text/plain; charset=utf-8", .body = strdup(text)};
	reply->size = reply->body ? strlen(text) : 0;
	return true;
}

static void free_reply(struct server_reply *reply)
{
	free(reply->body);
	*reply = (struct server_reply){};
}

static bool answer_metrics(void *context, const struct route *route, struct server_request *request,
			   struct server_reply *reply)
{
	struct endpoint *e = context;
	(void)route;
	(void)request;
	*reply = (struct server_reply){.status = 200};
	pthread_mutex_lock(&e->lock);
	if (e->metrics)
		reply->body = malloc(e->metrics_size + 1);
	if (reply->body) {
		memcpy(reply->body, e->metrics, e->metrics_size);
		reply->size = e->metrics_size;
	}
	pthread_mutex_unlock(&e->lock);
	return reply->body ? true : reply_text(reply, 503, "nothing was measured yet\n");
}

static bool answer_health(void *context, const struct route *route, struct server_request *request,
			  struct server_reply *reply)
{
	struct endpoint *e = context;
	char why[sizeof(e->illness) + 64] = "";
	uint64_t age;

	(void)route;
	(void)request;
	pthread_mutex_lock(&e->lock);
	age = monotonic_ns() - e->published;
	if (e->options.stuck_after && age > e->options.stuck_after)
		snprintf(why, sizeof(why),
			 "the collector is stuck: nothing was measured for %llu s\n",
			 (unsigned long long)(age / NS_PER_SECOND));
	else if (*e->illness)
		snprintf(why, sizeof(why), "%s\n", e->illness);
	pthread_mutex_unlock(&e->lock);
	return reply_text(reply, *why ? 503 : 200, *why ? why : "ok\n");
}

/* NULL, or the error. */
static const char *parse_request(const struct endpoint *e, const struct server_request *request,
				 struct endpoint_request *profile)
{
	const char *seconds = server_request__argument(request, "seconds");
	const char *pid = server_request__argument(request, "pid");
	const char *service = server_request__argument(request, "service");
	uint64_t number;

	*profile = (struct endpoint_request){.seconds = SECONDS_DEFAULT};
	if (seconds && parse_u64(seconds, 1, e->options.seconds_max, &number))
		return "seconds is no number, or too large\n";
	if (seconds)
		profile->seconds = (unsigned int)number;
	if (pid && service)
		return "give pid or service, not both\n";
	if (pid && parse_u64(pid, 1, INT32_MAX, &number))
		return "pid is no number of a process\n";
	if (pid)
		profile->pid = (uint32_t)number;
	/* what is no label as it is names no service */
	if (service && (!label_value_set(profile->service, sizeof(profile->service), service) ||
			strcmp(profile->service, service)))
		return "service is no name of one\n";
	return NULL;
}

static bool answer_profile(void *context, const struct route *route, struct server_request *request,
			   struct server_reply *reply)
{
	struct endpoint *e = context;
	struct endpoint_request profile;
	const char *wrong = parse_request(e, request, &profile);
	bool busy;

	(void)route;
	if (wrong)
		return reply_text(reply, 400, wrong);
	pthread_mutex_lock(&e->lock);
	busy = e->state != REQUEST_NONE;
	if (!busy) {
		profile.id = e->request.id + 1;
		e->request = profile;
		e->state = REQUEST_NEW;
		e->deadline = monotonic_ns() + (profile.seconds + GRACE_SECONDS) * NS_PER_SECOND;
		e->waiting = request;
		eventfd_write(e->request_fd, 1);
		eventfd_write(e->wake_fd, 1); /* there is a deadline now */
	}
	pthread_mutex_unlock(&e->lock);
	if (!busy)
		return false;
	reply_text(reply, 503, "busy: one profile at a time\n");
	reply->retry_after = 10;
	return true;
}

static const struct route ROUTES[] = {
	{.path = "metrics", .type = METRICS_TYPE, .answer = answer_metrics},
	{.path = "healthz", .answer = answer_health},
	{.path = "debug/pprof/profile", .answer = answer_profile},
};

/* ---- one request ----------------------------------------------------------------------------- */

/* The lock is held. */
static void clear_request(struct endpoint *e)
{
	eventfd_t count;

	e->state = REQUEST_NONE;
	e->waiting = NULL;
	free_reply(&e->reply);
	eventfd_read(e->request_fd, &count);
}

static void on_gone(void *context, struct server_request *request)
{
	struct endpoint *e = context;

	pthread_mutex_lock(&e->lock);
	if (e->waiting == request)
		clear_request(e);
	pthread_mutex_unlock(&e->lock);
}

bool endpoint__take_request(struct endpoint *e, struct endpoint_request *request)
{
	eventfd_t count;
	bool taken;

	pthread_mutex_lock(&e->lock);
	taken = e->state == REQUEST_NEW;
	eventfd_read(e->request_fd, &count);
	if (taken) {
		*request = e->request;
		e->state = REQUEST_TAKEN;
	}
	pthread_mutex_unlock(&e->lock);
	return taken;
}

bool endpoint__is_wanted(struct endpoint *e, uint64_t id)
{
	bool wanted;

	pthread_mutex_lock(&e->lock);
	wanted = e->state == REQUEST_TAKEN && e->request.id == id;
	pthread_mutex_unlock(&e->lock);
	return wanted;
}

static void give(struct endpoint *e, uint64_t id, struct server_reply *reply)
{
	pthread_mutex_lock(&e->lock);
	if (e->state == REQUEST_TAKEN && e->request.id == id) {
		e->reply = *reply;
		*reply = (struct server_reply){};
		e->state = REQUEST_ANSWERED;
		eventfd_write(e->wake_fd, 1);
	}
	pthread_mutex_unlock(&e->lock);
	free_reply(reply);
}

void endpoint__grant(struct endpoint *e, uint64_t id, void *body, size_t size)
{
	struct server_reply reply = {
		.status = 200, .type = "application/octet-stream", .body = body, .size = size};

	give(e, id, &reply);
}

void endpoint__refuse(struct endpoint *e, uint64_t id, unsigned int status, const char *why)
{
	struct server_reply reply;
	char line[600];

	snprintf(line, sizeof(line), "%.590s\n", why);
	reply_text(&reply, status, line);
	give(e, id, &reply);
}

/* ---- publishing ------------------------------------------------------------------------------ */

int endpoint__publish(struct endpoint *e, char *metrics, size_t size, const char *illness)
{
	char *old;

	if (!metrics)
		return -ENOMEM;
	pthread_mutex_lock(&e->lock);
	old = e->metrics;
	e->metrics = metrics;
	e->metrics_size = size;
	utf8_sanitize(e->illness, sizeof(e->illness), illness ? illness : "");
	e->published = monotonic_ns();
	pthread_mutex_unlock(&e->lock);
	free(old);
	return 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Sends the answer, or 503 after the deadline. Returns when to look again. */
static uint64_t settle_request(struct endpoint *e)
{
	struct server_request *request = NULL;
	uint64_t until = UINT64_MAX;
	struct server_reply reply = {};

	pthread_mutex_lock(&e->lock);
	if (e->state != REQUEST_NONE && e->state != REQUEST_ANSWERED) {
		until = e->deadline;
		if (monotonic_ns() >= until) {
			reply_text(&e->reply, 503, "no profile was made in time\n");
			e->state = REQUEST_ANSWERED;
			until = UINT64_MAX;
		}
	}
	if (e->state == REQUEST_ANSWERED) {
		request = e->waiting;
		reply = e->reply;
		e->reply = (struct server_reply){};
		clear_request(e);
	}
	pthread_mutex_unlock(&e->lock);
	if (request)
		server__reply(request, &reply);
	return until;
}

/* Logs the first of several errors, and waits before the next try. */
static void note_error(struct endpoint *e, int error, bool is_first)
{
	struct pollfd fd = {.fd = e->wake_fd, .events = POLLIN};
	char text[256];

	snprintf(text, sizeof(text), "cannot serve %s: %s; trying again every second",
		 server__address(e->server), strerror(-error));
	if (is_first && e->options.say)
		e->options.say(text);
	poll(&fd, 1, RETRY_MS);
}

static void *serve(void *context)
{
	struct endpoint *e = context;
	int result = 0, last;

	prctl(PR_SET_NAME, "sysprof-http");
	while (!atomic_load(&e->ending)) {
		eventfd_t count;

		last = result;
		result = server__run(e->server, e->wake_fd, settle_request(e));
		if (result < 0)
			note_error(e, result, last >= 0);
		eventfd_read(e->wake_fd, &count);
	}
	return NULL;
}

int endpoint__new(const struct endpoint_options *options, struct endpoint **endpoint,
		  struct failure *failure)
{
	struct endpoint *e = calloc(1, sizeof(*e));
	const struct server_options server = {
		.address = options->address,
		.routes = ROUTES,
		.route_count = sizeof(ROUTES) / sizeof(*ROUTES),
		.unknown_path = "there is /metrics, /healthz and /debug/pprof/profile\n",
		.header_max = HEADER_MAX,
		.idle_seconds = IDLE_SECONDS,
		.gone = on_gone,
		.context = e,
	};
	int err;

	if (!e)
		return fail(failure, -ENOMEM, "cannot start the endpoint: out of memory");
	e->options = *options;
	e->options.address = NULL;
	e->options.seconds_max = options->seconds_max ?: SECONDS_MAX;
	pthread_mutex_init(&e->lock, NULL);
	e->published = monotonic_ns();
	e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = e->wake_fd < 0 || e->request_fd < 0
		      ? fail(failure, -errno, "cannot start the endpoint: %s", strerror(errno))
		      : server__new(&server, &e->server, failure);
	if (!err) {
		err = thread__start(&e->thread, serve, e);
		e->runs = !err;
		if (err)
			fail(failure, err, "cannot start the endpoint's thread: %s",
			     strerror(-err));
	}
	return finish_new(err, e, endpoint__free, endpoint);
}

void endpoint__free(struct endpoint *e)
{
	if (!e)
		return;
	if (e->runs) {
		atomic_store(&e->ending, true);
		eventfd_write(e->wake_fd, 1);
		pthread_join(e->thread, NULL);
	}
	server__free(e->server);
	free_reply(&e->reply);
	free(e->metrics);
	cleanup_close(&e->wake_fd);
	cleanup_close(&e->request_fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

const char *endpoint__address(const struct endpoint *e)
{
	return server__address(e->server);
}

int endpoint__fd(const struct endpoint *e)
{
	return e->request_fd;
}
