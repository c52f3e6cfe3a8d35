/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbolizes closed windows and freezes their profiles, in a thread of its own, while the next window is
 * filled. It also keeps the contents of perf maps and jitdumps, since no other code needs them.
 *
 * The collector hands it closed windows and copies of events. All functions are called by the collector
 * thread, unless noted.
 */
#ifndef SESSION_FINISHER_H
#define SESSION_FINISHER_H

#include <stdbool.h>

#include <sysprof/symbolizer.h>

#include "base/log.h"
#include "session/window.h"
#include "stream/event_queue.h"

struct finisher;

/*
 * A finished window. The finisher's thread calls window_finished_fn for one window after the other, in order.
 * If finishing failed, err is set and profile is NULL. Everything is valid during the call only.
 */
struct finished_window {
	uint64_t number;
	const struct profile *profile;
	struct symbolizer_counts symbols;
	int err;
	struct failure failure;
};
typedef void (*window_finished_fn)(void *context, const struct finished_window *window);

struct finisher_options {
	bool threaded; /* else everything is done in the calling thread */
	bool symbolize;
	bool full_names;		   /* of functions whose name has no types otherwise */
	struct symbolizer_options symbols; /* of windows that the thread finishes */
	uint64_t jit_memory;		   /* as in session_options */
	window_finished_fn finished;
	void *context;
};

int finisher__new(const struct finisher_options *options, struct finisher **finisher);
/* Finishes the current window and drops waiting ones. `f` may be NULL. */
void finisher__free(struct finisher *f);

/* An event of the stream; unrelated types are ignored. 0 or -ENOMEM. */
int finisher__event(struct finisher *f, const struct event_header *event);

/* Windows that are not finished yet. */
size_t finisher__waiting(struct finisher *f);
/* Takes ownership of the window. */
void finisher__add(struct finisher *f, struct window *window);
/* Should the symbols of the kernel's modules be read again, since the last call? Any thread. */
bool finisher__wants_modules(struct finisher *f);
/* symbolizer__limit_readers(), with the next window. Any thread. */
void finisher__limit_readers(struct finisher *f, size_t bytes);
/* These of `symbols`, of windows that are begun from now on. Any thread. */
void finisher__save_symbols(struct finisher *f, bool symbols_only, bool put_off_new,
			    bool put_off_rare);
/* Addresses whose names were put off so far. Any thread. */
uint64_t finisher__put_off(const struct finisher *f);
/* Waits until all windows are finished and ends the thread. The functions below are called after that. */
void finisher__drain(struct finisher *f);

/* The last window, in the calling thread: first its symbols, as symbolize_window(), */
int finisher__symbolize(struct finisher *f, struct window *window,
			const struct symbolizer_options *options, struct symbolizer_counts *counts,
			event_sink_fn sink, void *context);
/* then JIT names and the freezing. The profile is the window's own. 0 or negative errno, `failure` filled. */
int finisher__finish(struct finisher *f, struct window *window, const struct profile **profile,
		     struct failure *failure);

#endif
