/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that symbolizes closed windows and freezes their profiles while the next window is
 * filled. It also keeps the contents of perf maps and jitdumps.
 *
 * It gets closed windows and copies of events. The collector calls all functions, unless noted.
 */
#ifndef WINDOW_FINISHER_H
#define WINDOW_FINISHER_H

#include <stdbool.h>

#include <sysprof/symbolizer.h>

#include "base/log.h"
#include "stream/event_queue.h"
#include "window/window.h"

struct finisher;

/*
 * The finisher's thread calls window_finished_fn for each window, in order. If finishing failed,
 * err is set and profile is NULL. Everything is valid only during the call.
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
	bool threaded; /* else all is done in the calling thread */
	bool symbolize;
	bool full_names;		   /* profile_builder__show_full_names() */
	struct symbolizer_options symbols; /* for windows that the thread finishes */
	uint64_t jit_memory;		   /* as in session_options */
	bool jit_text; /* machine code of jitdumps gets into profiles; a recording has it anyway */
	window_finished_fn finished;
	void *context;
};

int finisher__new(const struct finisher_options *options, struct finisher **finisher);
/* Finishes the current window and drops waiting ones. `f` may be NULL. */
void finisher__free(struct finisher *f);

/* An event of the stream; other types are ignored. 0; -ENOMEM; the error of event_check(). */
int finisher__event(struct finisher *f, const struct event_header *event);

/* Windows that are not finished yet. */
size_t finisher__waiting(struct finisher *f);
/* Takes ownership of the window. */
void finisher__add(struct finisher *f, struct window *window);
/* The kernel's modules must be read again. True once for each request. Any thread. */
bool finisher__wants_modules(struct finisher *f);
/* Sets these of symbolizer_options for later windows. Any thread. */
void finisher__save_symbols(struct finisher *f, bool symbols_only, bool put_off_new,
			    bool put_off_rare);
/* Addresses whose names were deferred so far. Any thread. */
uint64_t finisher__put_off(const struct finisher *f);
/* Waits until all windows are finished and ends the thread. Call it before the functions below. */
void finisher__drain(struct finisher *f);

/* The last window, in the calling thread: first its symbols, as symbolize_window(), */
int finisher__symbolize(struct finisher *f, struct window *window,
			const struct symbolizer_options *options, struct symbolizer_counts *counts,
			event_sink_fn sink, void *context);
/* then JIT names; freezes the profile, which the window owns. 0 or negative errno. */
int finisher__finish(struct finisher *f, struct window *window, const struct profile **profile,
		     struct failure *failure);

#endif
