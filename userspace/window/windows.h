/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Distributes the ordered stream to the recording file, the world, the open window's recorder, and
 * the finisher of closed windows; live and in a replay.
 */
#ifndef WINDOW_WINDOWS_H
#define WINDOW_WINDOWS_H

#include "stream/recording_file.h"
#include "window/finisher.h"

struct windows;

struct windows_options {
	const struct event_source_requests
		*requests; /* of a live source, or NULL; must outlive it */
	bool split;	   /* a new window at each EVENT_WINDOW; else one window */
	bool arguments;	   /* profile.arguments */
	bool blank_code;   /* the file has no machine code of jitdumps */
	bool sources;	   /* of scripts, too, when the last window is symbolized */
	struct finisher_options finisher;
};

/* 0 or -ENOMEM. */
int windows__new(const struct windows_options *options, struct windows **windows);
void windows__free(struct windows *w);

struct world *windows__world(struct windows *w);
struct finisher *windows__finisher(struct windows *w);

/* Source of windows' files. The opener must outlive the stream; NULL: no files. */
void windows__set_files(struct windows *w, struct dso_opener *opener,
			enum window_file_source source);
/* Also writes the stream to a file; not owned. NULL: no file. */
void windows__set_writer(struct windows *w, struct recording_writer *writer);
/* Called before an image is forgotten; see image_table__forget(). */
void windows__set_forgetting(struct windows *w, image_forget_fn may_forget, void *context);

/* An event_sink_fn whose context is the windows. */
int windows__event(void *windows, const struct event_header *event);

/*
 * Closes the last window, after the last event, and waits two seconds at most for its files. `w`
 * owns it. 0 or -ENOMEM.
 */
int windows__close_last(struct windows *w);
struct window *windows__last(struct windows *w);
/*
 * Symbolize and finish the last window, which is closed first. If it is the only one, the writer
 * gets the symbols, too. `w` owns *profile. 0 or negative errno with `failure` filled.
 */
int windows__symbolize(struct windows *w, const struct symbolizer_options *options,
		       struct symbolizer_counts *counts, struct failure *failure);
int windows__finish(struct windows *w, const struct profile **profile, struct failure *failure);

struct windows_stats {
	uint64_t windows;	    /* begun */
	size_t threads;		    /* of the open one */
	uint64_t longest_close;	    /* ns that closing a window took at most */
	uint64_t longest_close_cpu; /* the same of CPU time */
};
struct windows_stats windows__stats(const struct windows *w);

#endif
