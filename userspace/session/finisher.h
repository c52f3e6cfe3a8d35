/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives closed windows their names and freezes them, in a thread of its own, while the next window is
 * filled. It also keeps what perf maps and jitdumps tell, since nobody else asks for it.
 *
 * What passes between it and the collector are closed windows and copies of events. Calls are the collector
 * thread's, unless said otherwise.
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
 * A window is finished; called by the finisher's thread, one after the other, in the order of the windows. err:
 * it could not be, and profile is NULL. All of it is valid during the call.
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
	bool threaded; /* else everything is done within the calls */
	bool symbolize;
	struct symbolizer_options symbols; /* of windows that the thread finishes */
	window_finished_fn finished;
	void *context;
};

int finisher__new(const struct finisher_options *options, struct finisher **finisher);
/* What was begun is finished first; what waits is dropped. NULL is fine. */
void finisher__free(struct finisher *f);

/* An event of the stream; those that are not for it are ignored. 0 or -ENOMEM. */
int finisher__event(struct finisher *f, const struct event_header *event);

/* Windows that are not finished yet. */
size_t finisher__waiting(struct finisher *f);
/* Takes the window over. */
void finisher__add(struct finisher *f, struct window *window);
/* Waits until all windows are finished, and ends the thread. After that the rest is the caller's to call. */
void finisher__drain(struct finisher *f);

/* The last window, by the caller itself: first its symbols, as symbolize_window(), */
int finisher__symbolize(struct finisher *f, struct window *window,
			const struct symbolizer_options *options, struct symbolizer_counts *counts,
			event_sink_fn sink, void *context);
/* then JIT names and the freezing. The profile is the window's own. 0 or negative errno, `failure` filled. */
int finisher__finish(struct finisher *f, struct window *window, const struct profile **profile,
		     struct failure *failure);

/* CPU time of the thread so far, ns. */
uint64_t finisher__cpu(struct finisher *f);

#endif
