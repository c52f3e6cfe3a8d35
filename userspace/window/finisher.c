/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector appends copies of events and closed windows to two lists under one lock. The thread
 * takes both at once and works without the lock, events first. So a window has all earlier events,
 * and later ones as well: a jitdump is late by what its writer buffers.
 *
 * The collector never waits. If the copies take PENDING_MAX, further bytes of JIT files are
 * dropped, and earlier entries of the file are in doubt.
 */
#include "window/finisher.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/thread.h"
#include "jit/names/jit_names.h"
#include "jit/names/jit_sources.h"
#include "stream/event_decode.h"
#include "window/symbols.h"
#include "world/wall_states.h"

#define PENDING_MAX  (256u << 20)
#define LATE_SAMPLES 1000000000ull /* ns */
#define FREE_KEPT    (2u << 20)	   /* free bytes that malloc keeps between two windows */
#define EVENTS_KEPT  (1u << 20)	   /* bytes of a list that stay allocated */
#define EVENTS_WAKE  (64u << 10)   /* bytes of events that wake the thread without a window */

struct finisher_work {
	VEC(char) events; /* consecutive */
	VEC(struct window *) windows;
};

struct finisher {
	struct finisher_options options;

	/* used by the thread, or by the caller if there is none */
	struct symbolizer *symbolizer;
	struct jit_sources *jit;
	_Atomic bool symbols_only, put_off_new, put_off_rare;
	_Atomic uint64_t put_off; /* addresses so far */
	_Atomic bool wants_modules;
	_Atomic int err; /* the first error, set by both threads */

	/* under the lock */
	pthread_mutex_t lock;
	pthread_cond_t wake, idle;
	struct finisher_work waiting;
	size_t working; /* windows that the thread has taken */
	bool ending;
	bool draining; /* a caller waits until nothing is left */

	bool runs; /* the thread */
	pthread_t thread;
};

/* ---- the work -------------------------------------------------------------------------------- */

static int take_kallsyms(struct finisher *f, const struct kallsyms_event *e)
{
	const struct kallsyms_piece piece = {
		.time = e->header.time,
		.is_reading = e->header.flags & EVENT_KALLSYMS_MODULES,
		.has_gone = e->header.flags & EVENT_KALLSYMS_REMOVED,
		.begins = !e->piece,
		.ends = e->header.flags & EVENT_KALLSYMS_LAST,
		.text = e->text,
		.size = e->text_size,
	};

	if (e->header.flags & (EVENT_KALLSYMS_MODULES | EVENT_KALLSYMS_ADDED))
		return symbolizer__change_kallsyms(f->symbolizer, &piece);
	return symbolizer__add_kallsyms(f->symbolizer, e->text, e->text_size);
}

static int take_event(struct finisher *f, const struct event_header *event)
{
	if (event->type == EVENT_KALLSYMS)
		return take_kallsyms(f, (const struct kallsyms_event *)event);
	return jit_sources__event(f->jit, event);
}

static bool is_wanted(const struct event_header *event)
{
	switch (event->type) {
	case EVENT_KALLSYMS:
	case EVENT_CLOCK_ANCHOR:
	case EVENT_JIT_FILE:
	case EVENT_JIT_BYTES:
	case EVENT_JIT_CLOCK:
		return true;
	default:
		return false;
	}
}

static void note_error(struct finisher *f, int err)
{
	if (err && !f->err)
		f->err = err;
}

int finisher__symbolize(struct finisher *f, struct window *window,
			const struct symbolizer_options *options, struct symbolizer_counts *counts,
			event_sink_fn sink, void *context)
{
	return symbolize_window(window, f->symbolizer, options, counts, sink, context);
}

int finisher__finish(struct finisher *f, struct window *window, const struct profile **profile,
		     struct failure *failure)
{
	char why[256] = "";
	int err = f->err
			?: name_kernel_versions(window, f->symbolizer)
			?: name_jit_code(window->builder, f->jit, window->jit_processes.data,
					 window->jit_processes.count)
			?: wall_states__settle(window->builder);

	if (!err && f->options.full_names)
		profile_builder__show_full_names(window->builder);
	if (!err)
		err = profile_builder__finish(window->builder, profile, why, sizeof(why));
	if (err == -EINVAL)
		return fail(failure, err, "inconsistent profile (this is a bug): %s", why);
	return err ? fail(failure, err, "cannot make the profile: %s", strerror(-err)) : 0;
}

/* Returns memory to the system: otherwise that of the largest window would stay for good. */
static void give_back(void)
{
	if (mallinfo2().fordblks > FREE_KEPT)
		malloc_trim(FREE_KEPT);
}

static void finish_window(struct finisher *f, struct window *window)
{
	struct finished_window finished = {.number = window->number};
	struct symbolizer_options symbols = f->options.symbols;
	uint64_t begin = monotonic_ns(), forget;

	symbols.symbols_only |= f->symbols_only;
	symbols.put_off_new = f->put_off_new;
	symbols.put_off_rare = f->put_off_rare;
	if (f->options.symbolize && !window->has_symbols)
		finished.err = finisher__symbolize(f, window, &symbols, &finished.symbols, NULL,
						   NULL);
	f->put_off += finished.symbols.put_off;
	if (finished.err)
		fail(&finished.failure, finished.err, "cannot read symbols: %s",
		     strerror(-finished.err));
	else
		finished.err = finisher__finish(f, window, &finished.profile, &finished.failure);
	log_debug(LOG_SESSION, "window %llu is finished: %s, %.1f ms",
		  (unsigned long long)window->number,
		  finished.err ? finished.failure.what : "complete",
		  (monotonic_ns() - begin) / 1e6);
	if (f->options.finished)
		f->options.finished(f->options.context, &finished);
	jit_sources__keep(f->jit, window->jit_files.data, window->jit_files.count,
			  window->last_jit_file);
	/* samples of the next window may be a little older than this one's end */
	forget = window->last_time - min_u64(window->last_time, LATE_SAMPLES);
	if (symbolizer__end_window(f->symbolizer, forget))
		f->wants_modules = true;
	if (forget)
		note_error(f, jit_sources__forget(f->jit, forget));
	window__free(window);
	if (f->runs)
		give_back();
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Under the lock. A few events can wait: they are needed when a window ends. */
static bool has_work(const struct finisher *f)
{
	const struct finisher_work *waiting = &f->waiting;

	return waiting->windows.count || waiting->events.count >= EVENTS_WAKE ||
	       (waiting->events.count && (f->draining || f->ending));
}

/* Waits for work. False: no more will come. */
static bool take_work(struct finisher *f, struct finisher_work *work)
{
	struct finisher_work done = *work;

	pthread_mutex_lock(&f->lock);
	f->working = 0;
	while (!has_work(f) && !f->ending) {
		pthread_cond_broadcast(&f->idle);
		pthread_cond_wait(&f->wake, &f->lock);
	}
	/* both lists keep their memory, except the large one of kallsyms at the start */
	if (done.events.capacity > EVENTS_KEPT)
		vec_free(&done.events);
	*work = f->waiting;
	f->waiting = done;
	f->waiting.events.count = f->waiting.windows.count = 0;
	f->working = work->windows.count;
	pthread_mutex_unlock(&f->lock);
	return work->events.count || work->windows.count;
}

static void do_work(struct finisher *f, const struct finisher_work *work)
{
	for (size_t at = 0; at < work->events.count;) {
		const struct event_header *event = (const void *)(work->events.data + at);

		note_error(f, take_event(f, event));
		at += event->size;
	}
	for (size_t i = 0; i < work->windows.count; i++) {
		finish_window(f, work->windows.data[i]);
		pthread_mutex_lock(&f->lock);
		f->working--;
		pthread_mutex_unlock(&f->lock);
	}
}

static void *run_finisher(void *finisher)
{
	struct finisher *f = finisher;
	struct finisher_work work = {};

	prctl(PR_SET_NAME, "sysprof-finish");
	while (take_work(f, &work))
		do_work(f, &work);
	vec_free(&work.events);
	vec_free(&work.windows);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int finisher__new(const struct finisher_options *options, struct finisher **finisher)
{
	struct finisher *f = calloc(1, sizeof(*f));
	int err = -ENOMEM;

	if (!f)
		return -ENOMEM;
	f->options = *options;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->wake, NULL);
	pthread_cond_init(&f->idle, NULL);
	f->symbolizer = symbolizer__new();
	f->jit = jit_sources__new();
	if (f->jit && options->jit_text)
		jit_sources__keep_text(f->jit);
	if (f->jit && options->jit_memory)
		jit_sources__limit(f->jit, options->jit_memory / 2, options->jit_memory);
	/* without root a keeper's children cannot set oom_score_adj: they are not dumpable */
	if (f->symbolizer && (options->symbols.remember || !geteuid()))
		symbolizer__start_helpers(f->symbolizer, options->symbols.remember);
	if (f->symbolizer && f->jit)
		err = options->threaded ? thread__start(&f->thread, run_finisher, f) : 0;
	f->runs = options->threaded && !err;
	return finish_new(err, f, finisher__free, finisher);
}

static void end_thread(struct finisher *f)
{
	if (!f->runs)
		return;
	pthread_mutex_lock(&f->lock);
	f->ending = true;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	f->runs = false;
}

void finisher__free(struct finisher *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->waiting.windows.count; i++)
		window__free(f->waiting.windows.data[i]);
	f->waiting.windows.count = 0;
	f->waiting.events.count = 0;
	pthread_mutex_unlock(&f->lock);
	end_thread(f);
	symbolizer__free(f->symbolizer);
	jit_sources__free(f->jit);
	vec_free(&f->waiting.events);
	vec_free(&f->waiting.windows);
	pthread_cond_destroy(&f->wake);
	pthread_cond_destroy(&f->idle);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* ---- input ----------------------------------------------------------------------------------- */

/* Replaces dropped bytes of a file, and marks the gap. */
static void say_lost(struct jit_bytes_event *e, const struct event_header *event)
{
	*e = *(const struct jit_bytes_event *)event;
	e->header.size = sizeof(*e);
	e->size = 0;
	e->flags |= JIT_BYTES_LOST;
}

/* A small limit on JIT memory also limits waiting bytes. */
static size_t pending_most(const struct finisher *f)
{
	return f->options.jit_memory ? min_u64(f->options.jit_memory / 2, PENDING_MAX)
				     : PENDING_MAX;
}

int finisher__event(struct finisher *f, const struct event_header *event)
{
	struct jit_bytes_event instead;
	int err = 0;

	if (!is_wanted(event))
		return 0;
	err = event_check(event, event->size);
	if (err)
		return err;
	if (!f->runs)
		return take_event(f, event);
	pthread_mutex_lock(&f->lock);
	if (event->type == EVENT_JIT_BYTES &&
	    f->waiting.events.count + event->size > pending_most(f)) {
		say_lost(&instead, event);
		event = &instead.header;
	}
	err = vec_append(&f->waiting.events, event, event->size);
	if (has_work(f))
		pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	return err;
}

size_t finisher__waiting(struct finisher *f)
{
	size_t waiting;

	pthread_mutex_lock(&f->lock);
	waiting = f->waiting.windows.count + f->working;
	pthread_mutex_unlock(&f->lock);
	return waiting;
}

void finisher__add(struct finisher *f, struct window *window)
{
	int err = 0;

	if (!f->runs) {
		finish_window(f, window);
		return;
	}
	pthread_mutex_lock(&f->lock);
	err = vec_push(&f->waiting.windows, window);
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	if (err) {
		note_error(f, err);
		window__free(window);
	}
}

bool finisher__wants_modules(struct finisher *f)
{
	return atomic_exchange(&f->wants_modules, false);
}

uint64_t finisher__put_off(const struct finisher *f)
{
	return f->put_off;
}

void finisher__save_symbols(struct finisher *f, bool symbols_only, bool put_off_new,
			    bool put_off_rare)
{
	f->symbols_only = symbols_only;
	f->put_off_new = put_off_new;
	f->put_off_rare = put_off_rare;
}

void finisher__drain(struct finisher *f)
{
	if (!f->runs)
		return;
	pthread_mutex_lock(&f->lock);
	f->draining = true;
	pthread_cond_signal(&f->wake);
	while (f->waiting.events.count || f->waiting.windows.count || f->working)
		pthread_cond_wait(&f->idle, &f->lock);
	pthread_mutex_unlock(&f->lock);
	end_thread(f);
}
