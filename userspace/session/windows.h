/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Distributes the ordered stream: to the recording file, the world, the recorder of the open window, and the
 * finisher of closed windows. Used by live sessions and by replay.
 */
#ifndef SESSION_WINDOWS_H
#define SESSION_WINDOWS_H

#include "session/finisher.h"
#include "stream/recording_file.h"

struct windows;

struct windows_options {
	const struct event_source_requests
		*requests; /* of a live source, or NULL; must live longer */
	bool split;	   /* start a new window at each EVENT_WINDOW; else there is one window */
	struct finisher_options finisher;
};

/* 0 or -ENOMEM. */
int windows__new(const struct windows_options *options, struct windows **windows);
void windows__free(struct windows *w);

struct world *windows__world(struct windows *w);
struct finisher *windows__finisher(struct windows *w);

/* Where the files of windows come from. The opener must live as long as events come; NULL: nowhere. */
void windows__set_files(struct windows *w, struct dso_opener *opener,
			enum window_file_source source);
/* Also writes the stream to a file; not owned. NULL: does not. */
void windows__set_writer(struct windows *w, struct recording_writer *writer);
/* Called before an image is forgotten; see image_table__forget(). */
void windows__set_forgetting(struct windows *w, image_forget_fn may_forget, void *context);

/* An event_sink_fn whose context is the windows. */
int windows__event(void *windows, const struct event_header *event);

/*
 * Closes the last window, after the last event. `w` keeps ownership of it. Its files are those that are open
 * by now. 0 or -ENOMEM.
 */
int windows__close_last(struct windows *w);
struct window *windows__last(struct windows *w);
/*
 * The symbols of the last window go to the writer. Not those of a session with several: they name dsos by their
 * numbers in one window, and a replay as one window has others. An event_sink_fn.
 */
int windows__write_symbol(void *windows, const struct event_header *event);

struct windows_stats {
	uint64_t windows;	    /* begun */
	size_t threads;		    /* of the open one */
	uint64_t longest_close;	    /* ns that closing a window took at most */
	uint64_t longest_close_cpu; /* of CPU time */
};
struct windows_stats windows__stats(const struct windows *w);

#endif
