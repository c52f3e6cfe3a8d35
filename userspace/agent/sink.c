/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sink's thread is waited for at the end, but not for long: it may hang in a disk or a name
 * server. Then it is left behind, and the last of its two holders frees it.
 */
#include "agent/sink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/sender.h"
#include "agent/sink_private.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/output_file.h"
#include "base/thread.h"

#define SPOOL_BYTES (UINT64_C(64) << 20)
#define SPOOL_AGE   (50 * 60 * NS_PER_SECOND)
#define GRACE	    (NS_PER_SECOND / 4) /* to see that patience is over */

static const struct sink_pace usual_pace = {
	.retry = {.least = NS_PER_SECOND / 2,
		  .most = 60 * NS_PER_SECOND,
		  .slow = 60 * NS_PER_SECOND},
	.bytes_per_second = 4u << 20, /* what Pyroscope takes */
};

/* ---- the end --------------------------------------------------------------------------------- */

static void drop_sink(struct sink *s)
{
	if (atomic_fetch_sub(&s->holders, 1) != 1)
		return;
	http_client__free(s->client);
	http_client__free(s->next_client);
	spool__free(s->spool);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	free(s->url);
	free(s);
}

static bool wait_for_end(struct sink *s, uint64_t time)
{
	struct timespec until = {time / NS_PER_SECOND, time % NS_PER_SECOND};
	bool ended;

	pthread_mutex_lock(&s->lock);
	while (!s->ended && monotonic_ns() < time)
		pthread_cond_timedwait(&s->changed, &s->lock, &until);
	ended = s->ended;
	pthread_mutex_unlock(&s->lock);
	return ended;
}

void sink__free(struct sink *s, uint64_t patience)
{
	uint64_t deadline = saturating_add_u64(monotonic_ns(), patience);

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true; /* and the thread takes no other client */
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	if (s->client)
		http_client__stop(s->client, deadline);
	if (wait_for_end(s, saturating_add_u64(deadline, GRACE))) {
		pthread_join(s->thread, NULL);
	} else {
		log_debug(LOG_AGENT, "%s: its thread hangs, and is left behind", s->url);
		pthread_detach(s->thread);
		spool__leave(s->spool);
	}
	drop_sink(s);
}

static void *run(void *sink)
{
	struct sink *s = sink;

	while (sender__turn(s))
		;
	pthread_mutex_lock(&s->lock);
	s->ended = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	drop_sink(s);
	return NULL;
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int open_directory(const char *path, struct failure *failure)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return fail(failure, -errno, "cannot make the directory %s: %s", path,
			    strerror(errno));
	if (stat(path, &st))
		return fail(failure, -errno, "%s: %s", path, strerror(errno));
	return S_ISDIR(st.st_mode) ? 0 : fail(failure, -ENOTDIR, "%s is not a directory", path);
}

/* Where it goes: a client, or a directory. */
static int open_target(struct sink *s, const struct sink_options *o, struct failure *failure)
{
	return s->format->judge_200 ? http_client__new(&o->http, &s->client, failure)
				    : open_directory(o->http.url, failure);
}

static int open_spool(struct sink *s, const struct sink_options *o, struct failure *failure)
{
	struct spool_options spool = o->spool;

	spool.bytes = spool.bytes ?: SPOOL_BYTES;
	spool.age = spool.age ?: SPOOL_AGE;
	if (s->format->oldest)
		spool.age = min_u64(spool.age, s->format->oldest);
	return spool__new(&spool, &s->spool, failure);
}

static int start_thread(struct sink *s)
{
	int err;

	atomic_store(&s->holders, 2);
	err = thread__start(&s->thread, run, s);
	if (err)
		atomic_store(&s->holders, 1);
	return err;
}

static struct sink *new_sink(const struct sink_format *format, const struct sink_pace *pace)
{
	struct sink *s = calloc(1, sizeof(*s));
	pthread_condattr_t attributes;

	if (!s)
		return NULL;
	s->format = format;
	s->pace = *pace;
	atomic_store(&s->holders, 1);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return s;
}

int sink__new_paced(const struct sink_options *o, const struct sink_pace *pace, struct sink **sink,
		    struct failure *failure)
{
	struct sink *s = new_sink(o->format, pace);
	int err;

	if (!s)
		return -ENOMEM;
	s->url = strdup(o->http.url);
	err = (s->url ? open_target(s, o, failure) : -ENOMEM)
			?: open_spool(s, o, failure)
			?: start_thread(s);
	return finish_new(err, s, drop_sink, sink);
}

int sink__new(const struct sink_options *options, struct sink **sink, struct failure *failure)
{
	return sink__new_paced(options, &usual_pace, sink, failure);
}

/* ---- between --------------------------------------------------------------------------------- */

int sink__put(struct sink *s, struct sealed_window *window)
{
	const struct sealed_window put = *window;
	int err = 0;

	if (!put.request_count)
		sealed_window__fini(window);
	else
		err = spool__put(s->spool, window);
	pthread_mutex_lock(&s->lock);
	s->stats.windows_put++;
	s->stats.series_invalid += put.series_invalid;
	s->stats.samples_invalid += put.samples_invalid;
	s->stats.wall_ns += put.wall_ns;
	s->stats.wall_bytes += put.wall_bytes;
	s->stats.windows_sent += !put.request_count; /* there is nothing to send */
	s->put = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return err;
}

void sink__set_client(struct sink *s, struct http_client *client)
{
	struct http_client *old;

	pthread_mutex_lock(&s->lock);
	old = s->next_client;
	s->next_client = client;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	http_client__free(old);
}

void sink__stats(struct sink *s, struct sink_stats *stats)
{
	struct spool_stats spool;

	spool__stats(s->spool, &spool);
	pthread_mutex_lock(&s->lock);
	*stats = s->stats;
	pthread_mutex_unlock(&s->lock);
	stats->windows_too_old = spool.too_old;
	stats->windows_no_room = spool.no_room;
	stats->spool_windows = spool.windows;
	stats->spool_bytes = spool.bytes;
	stats->spool_oldest = spool.oldest;
	stats->torn_files = spool.strange;
	stats->spool_failed = spool.error != 0;
	if (spool.error && !stats->last_error[0])
		snprintf(stats->last_error, sizeof(stats->last_error), "its spool: %s",
			 strerror(-spool.error));
}

/* ---- a request without data ------------------------------------------------------------------ */

/*
 * Pyroscope answers 400, "no profiles received", Parca and a Collector 200, Pyroscope's OTLP
 * endpoint 500, "missing profile metadata dictionary". Any answer of the format's backend will do.
 */
static int explain(const struct sink_options *o, const struct http_answer *a,
		   struct failure *failure)
{
	const char *url = o->http.url;

	if (a->credentials_unreadable)
		return fail(failure, -EACCES, "%s: %s", url, a->text);
	if (!a->status) {
		fail(failure, -EHOSTUNREACH, "%s does not answer: %s", url, a->text);
		return fail_remedy(failure, -EHOSTUNREACH,
				   "see that it runs, and that this host may reach it");
	}
	switch (sink_format__judge(o->format, a)) {
	case SINK_UNAUTHORIZED:
		fail(failure, -EACCES, "%s refuses us: %s", url, a->text);
		return fail_remedy(failure, -EACCES, "see the token or password, and the tenant");
	case SINK_NOT_A_BACKEND:
		return fail(failure, -EPROTO, "%s does not answer as %s does: %s", url,
			    o->format->name, a->text);
	case SINK_RETRY:
	case SINK_AMBIGUOUS:
		return fail(failure, -EAGAIN, "%s answers, but takes nothing now: %s", url,
			    a->text);
	default:
		return 0;
	}
}

/* Can a file be made there? */
static int probe_directory(const char *path, struct failure *failure)
{
	struct output_file *file;
	char *name;
	int err;

	if (asprintf(&name, "%s/probe", path) < 0)
		return -ENOMEM;
	err = output_file__open(name, &file);
	free(name);
	if (err)
		return fail(failure, err, "cannot write to the directory %s: %s", path,
			    strerror(-err));
	output_file__abort(file);
	return 0;
}

static int probe_backend(const struct sink_options *o, struct failure *failure)
{
	const struct http_request request = {.path = o->format->empty.path,
					     .type = o->format->empty.type,
					     .encoding = "",
					     .body = o->format->empty.body,
					     .size = strlen(o->format->empty.body)};
	struct http_client *client;
	struct http_answer answer;
	int err = http_client__new(&o->http, &client, failure);

	if (err)
		return err;
	err = http_client__post(client, &request, &answer) ?: explain(o, &answer, failure);
	http_answer__fini(&answer);
	http_client__free(client);
	return err;
}

int sink__probe(const struct sink_options *o, struct failure *failure)
{
	return o->format->judge_200 ? probe_backend(o, failure)
				    : probe_directory(o->http.url, failure);
}
