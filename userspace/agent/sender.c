/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sink's thread: the oldest window first, request by request. A request's state is written before
 * and after it is sent, so after a crash the next sender continues there and recognizes the request
 * that may have arrived.
 *
 * A request that is sent again has the same bytes. One whose answer was lost may arrive twice: it
 * counts as ambiguous when it is sent again, and once more only if that answer is lost too.
 */
#include "agent/sender.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "agent/sink_private.h"
#include "agent/spool_file.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/output_file.h"
#include "base/utf8.h"

#define FEW	     3			 /* tries */
#define BURST	     (NS_PER_SECOND / 2) /* of the pace: 2 MiB at 4 MiB/s */
#define MEMORY_PAUSE (1 * NS_PER_SECOND) /* there may be some then */

/* The result of an attempt. */
struct outcome {
	bool again;	/* after a pause */
	bool torn;	/* the window cannot be read */
	uint64_t pause; /* ns */
};

/* ---- waiting --------------------------------------------------------------------------------- */

static uint64_t random_bits(void)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits))
		return monotonic_ns() * UINT64_C(0x9e3779b97f4a7c15);
	return bits;
}

/* Until then (CLOCK_MONOTONIC), another client, or the end of the sink. */
static void wait_until(struct sink *s, uint64_t time)
{
	struct timespec until = {time / NS_PER_SECOND, time % NS_PER_SECOND};

	pthread_mutex_lock(&s->lock);
	while (!s->stopping && !s->next_client && monotonic_ns() < time)
		pthread_cond_timedwait(&s->changed, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
}

static void wait_for_window(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	while (!s->stopping && !s->put)
		pthread_cond_wait(&s->changed, &s->lock);
	s->put = false;
	pthread_mutex_unlock(&s->lock);
}

static void take_next_client(struct sink *s)
{
	struct http_client *old = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->next_client && !s->stopping) {
		old = s->client;
		s->client = s->next_client;
		s->next_client = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	http_client__free(old);
}

static bool is_stopping(struct sink *s)
{
	bool stopping;

	pthread_mutex_lock(&s->lock);
	stopping = s->stopping;
	pthread_mutex_unlock(&s->lock);
	return stopping;
}

/* Limits the rate, so that windows that have waited do not overload a backend that comes back. */
static void keep_pace(struct sink *s, uint64_t bytes)
{
	uint64_t now = monotonic_ns();

	if (s->free_at > now + BURST)
		wait_until(s, s->free_at - BURST);
	s->free_at = max_u64(s->free_at, monotonic_ns()) +
		     bytes * NS_PER_SECOND / s->pace.bytes_per_second;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static void report_error(struct sink *s, const char *text)
{
	struct sink_stats *stats = &s->stats;
	char line[512];

	snprintf(line, sizeof(line), "%.100s: %s", s->url, text);
	pthread_mutex_lock(&s->lock);
	utf8_sanitize(stats->last_error, sizeof(stats->last_error), line);
	pthread_mutex_unlock(&s->lock);
	log_debug(LOG_AGENT, "%s: %s", s->url, text);
}

static void count_attempt(struct sink *s, const struct sink_request *r, uint64_t duration,
			  bool accepted)
{
	pthread_mutex_lock(&s->lock);
	s->stats.requests++;
	s->stats.push_ns += duration;
	s->stats.bytes += r->size;
	s->stats.failures += !accepted;
	if (accepted) {
		s->stats.cpu_ns_sent += r->cpu_ns;
		s->stats.samples_sent += r->samples;
	}
	pthread_mutex_unlock(&s->lock);
}

static void count_ambiguous(struct sink *s)
{
	pthread_mutex_lock(&s->lock);
	s->stats.ambiguous++;
	pthread_mutex_unlock(&s->lock);
}

/* A request of a window that is taken. */
struct spooled_request {
	struct spool_window *window;
	size_t index;
};

/* From now on it may have arrived, whatever happens to us. */
static void note_sending(void *context)
{
	const struct spooled_request *p = context;

	spool_file__set_state(p->window->file, p->index, REQUEST_UNSURE);
}

struct attempt {
	enum sink_verdict verdict;
	uint64_t after; /* ns to wait, from the backend */
	bool sent;	/* a part of it at least */
	bool unsure;	/* it may have been taken, without an answer */
};

/* 0, -ENOMEM: it was not tried. */
static int post(struct sink *s, const struct sink_request *r, struct spooled_request place,
		struct attempt *attempt)
{
	const struct http_request request = {
		.path = r->path,
		.type = r->content_type,
		.encoding = r->content_encoding,
		.body = r->body,
		.size = r->size,
		.sending = note_sending,
		.context = &place,
	};
	struct http_answer answer;
	uint64_t begin = monotonic_ns();
	int err = http_client__post(s->client, &request, &answer);

	if (err) {
		http_answer__fini(&answer);
		return err;
	}
	*attempt = (struct attempt){.verdict = sink_format__judge(s->format, &answer),
				    .after = answer.retry_after,
				    .sent = answer.sent};
	attempt->unsure = answer.sent && (attempt->verdict == SINK_AMBIGUOUS || !answer.status);
	if (!answer.credentials_unreadable)
		count_attempt(s, r, monotonic_ns() - begin, attempt->verdict == SINK_ACCEPTED);
	if (attempt->verdict != SINK_ACCEPTED)
		report_error(s, answer.text);
	http_answer__fini(&answer);
	return 0;
}

/* ---- a directory: a file for each request, and nothing in it is ever deleted ----------------- */

/* The name has been on disk since it was made. */
static bool is_file_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/');
}

static void cleanup_place(struct output_place **place)
{
	output_place__free(*place);
}

/* Writes a request's body as a file, whole or not at all. 0; -EINVAL: no file name; other errno. */
static int write_to_directory(const char *directory, const struct sink_request *r)
{
	_cleanup_(cleanup_place) struct output_place *place = NULL;
	_cleanup_free_ char *path = NULL;
	struct output_file *file;
	int err;

	if (!is_file_name(r->path))
		return -EINVAL;
	if (asprintf(&path, "%s/%s", directory, r->path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	err = output_place__open(path, OUTPUT_CHOSEN, &place) ?: output_file__open_at(place, &file);
	if (err)
		return err;
	if (r->size)
		fwrite(r->body, 1, r->size, output_file__stream(file));
	return output_file__commit(file);
}

static enum sink_verdict write_file(struct sink *s, const struct sink_request *r)
{
	uint64_t begin = monotonic_ns();
	int err = write_to_directory(s->url, r);

	count_attempt(s, r, monotonic_ns() - begin, !err);
	if (err)
		report_error(s, strerror(-err));
	return !err ? SINK_ACCEPTED : err == -EINVAL ? SINK_REJECTED : SINK_RETRY;
}

/* ---- what follows from it -------------------------------------------------------------------- */

static struct outcome later(struct sink *s, uint64_t at_least)
{
	uint64_t pause = retry_delay(&s->pace.retry, ++s->failures, random_bits());

	return (struct outcome){.again = true, .pause = at_least + pause};
}

static struct outcome much_later(struct sink *s)
{
	uint64_t slow = s->pace.retry.slow;

	return (struct outcome){.again = true, .pause = slow + random_bits() % (slow / 8 + 1)};
}

static struct outcome drop(struct sink *s, struct spool_window *w, size_t i,
			   enum sink_verdict verdict)
{
	s->failures = 0; /* the backend is well */
	spool_file__set_state(w->file, i, REQUEST_DROPPED + verdict);
	return (struct outcome){};
}

/* Is this the last of the few tries of this request? */
static bool last_of_few(struct sink *s, const struct spool_window *w, size_t i)
{
	if (s->few_of != w->number || s->few_request != i)
		s->few = 0;
	s->few_of = w->number;
	s->few_request = i;
	return ++s->few >= FEW;
}

static struct outcome follow(struct sink *s, struct spool_window *w, size_t i,
			     enum sink_verdict verdict, uint64_t after)
{
	switch (verdict) {
	case SINK_ACCEPTED:
		s->failures = 0;
		spool_file__set_state(w->file, i, REQUEST_ACCEPTED);
		return (struct outcome){};
	case SINK_REJECTED:
	case SINK_TOO_OLD:
	case SINK_TOO_BIG:
		return drop(s, w, i, verdict);
	case SINK_RETRY_FEW:
		if (last_of_few(s, w, i))
			return drop(s, w, i, SINK_REJECTED);
		break;
	default:
		break;
	}
	return verdict == SINK_UNAUTHORIZED || verdict == SINK_NOT_A_BACKEND ? much_later(s)
									     : later(s, after);
}

/* ---- a window -------------------------------------------------------------------------------- */

static bool is_done(uint8_t state)
{
	return state == REQUEST_ACCEPTED ||
	       (state >= REQUEST_DROPPED && state < REQUEST_DROPPED + SINK_VERDICT_COUNT);
}

/* If it is sent again: was it taken before, perhaps? */
static uint8_t state_after(uint8_t before, const struct attempt *attempt)
{
	if (!attempt->sent)
		return before;
	if (attempt->unsure)
		return REQUEST_UNSURE;
	return before == REQUEST_UNSENT ? REQUEST_UNSENT : REQUEST_RESENT;
}

static struct outcome send_request(struct sink *s, struct spool_window *w, size_t i,
				   const struct sink_request *r)
{
	uint8_t before = spool_file__state(w->file, i);
	struct outcome outcome;
	struct attempt attempt;

	if (!s->client)
		return follow(s, w, i, write_file(s, r), 0);
	keep_pace(s, r->size);
	if (is_stopping(s) && !w->in_memory)
		return (struct outcome){.again = true};
	if (post(s, r, (struct spooled_request){w, i}, &attempt))
		return (struct outcome){.again = true, .pause = MEMORY_PAUSE};
	if (attempt.sent && before != REQUEST_UNSENT && before != REQUEST_RESENT)
		count_ambiguous(s);
	/* no state in between: after a crash it would look like one that was never sent */
	outcome = follow(s, w, i, attempt.verdict, attempt.after);
	if (outcome.again)
		spool_file__set_state(w->file, i, state_after(before, &attempt));
	return outcome;
}

static struct outcome send_window(struct sink *s, struct spool_window *w)
{
	for (size_t i = 0; i < spool_file__head(w->file)->count; i++) {
		struct sink_request request;
		struct outcome outcome;
		int err;

		if (is_done(spool_file__state(w->file, i)))
			continue;
		err = spool_file__read(w->file, i, &request);
		if (err)
			return (struct outcome){
				.again = true, .torn = err != -ENOMEM, .pause = MEMORY_PAUSE};
		outcome = send_request(s, w, i, &request);
		sink_request__fini(&request);
		if (outcome.again)
			return outcome;
	}
	return (struct outcome){};
}

/* All of its requests are accepted, or never will be. */
static void count_window(struct sink *s, const struct spool_window *w)
{
	uint8_t last = REQUEST_ACCEPTED;

	for (size_t i = 0; i < spool_file__head(w->file)->count; i++)
		if (spool_file__state(w->file, i) >= REQUEST_DROPPED)
			last = spool_file__state(w->file, i);
	pthread_mutex_lock(&s->lock);
	if (last == REQUEST_ACCEPTED)
		s->stats.windows_sent++;
	else
		s->stats.windows_dropped[last - REQUEST_DROPPED]++;
	pthread_mutex_unlock(&s->lock);
}

bool sender__turn(struct sink *s)
{
	struct spool_window *w;
	struct outcome outcome;
	int err;

	take_next_client(s);
	err = spool__take(s->spool, &w);
	if (err == -ENOENT) {
		if (is_stopping(s))
			return false;
		wait_for_window(s);
		return true;
	}
	if (err) {
		wait_until(s, monotonic_ns() + MEMORY_PAUSE);
		return !is_stopping(s);
	}
	if (is_stopping(s) && !w->in_memory) {
		spool__give_back(s->spool, w, false);
		return false;
	}
	outcome = send_window(s, w);
	if (!outcome.again)
		count_window(s, w);
	if (outcome.torn)
		spool__set_aside(s->spool, w);
	else
		spool__give_back(s->spool, w, !outcome.again);
	if (outcome.pause && !outcome.torn)
		wait_until(s, monotonic_ns() + outcome.pause);
	return !outcome.again || !is_stopping(s);
}
