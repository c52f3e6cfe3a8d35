/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a recording, or a file of perf record, into a profile, without root and on any machine. */
#ifndef WINDOW_REPLAY_H
#define WINDOW_REPLAY_H

#include <sysprof/profile.h>

#include "stream/perf/perf_data.h"
#include "stream/recording_file.h"
#include "window/windows.h"

/*
 * Replaces a sample with EVENT_STACK_COPY by one whose user stack was walked, valid until the next
 * call. 0 or negative errno, which ends the replay.
 */
typedef int (*replay_walk_fn)(void *context, struct world *world,
			      const struct sample_event **sample);

struct replay_options {
	struct symbolizer_options symbols; /* for a recording that ended before its symbols */
	bool full_names;		   /* as in finisher_options */
	bool arguments;			   /* as in windows_options */
	replay_walk_fn walk; /* of perf.data; NULL: copied stacks are their innermost frame */
	void *walker;
	/* NULL: all windows are merged into one. */
	window_finished_fn finished;
	void *context;
};

/*
 * The profile of the last window. The caller frees the windows, which own it, and closes `fd`;
 * `path` is for messages. 0 or negative errno with `failure` filled.
 */
int replay_recording(int fd, const char *path, const struct replay_options *options,
		     struct windows **windows, const struct profile **profile,
		     struct recording_summary *summary, struct failure *failure);

/* The same of a perf.data file. Names are from files of this machine. */
int replay_perf_data(int fd, const char *path, const struct replay_options *options,
		     struct windows **windows, const struct profile **profile,
		     struct perf_data_summary *summary, struct failure *failure);

/*
 * Names code of an imported profile, which has none in its file (profile.finished_symbols), by files
 * of this machine. *files: how many of them have the recorded build-id. 0 or negative errno with
 * `failure` filled.
 */
int name_imported(struct profile_builder *builder, const struct symbolizer_options *options,
		  size_t *files, struct failure *failure);

#endif
