/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/replay.h"

#include <errno.h>
#include <string.h>

#include <sysprof/symbolizer.h>

#include "base/cleanup.h"
#include "stream/perf/perf_child.h"
#include "window/symbols.h"
#include "window/window.h"
#include "world/world.h"

/* Symbols of a recording that has none, from files on this machine. */
static int symbolize_replay(struct windows *w, const struct symbolizer_options *options,
			    struct failure *failure)
{
	struct symbolizer_counts counts = {};
	struct dso_opener *opener;
	int err = dso_opener__new(NULL, &opener);

	if (!err) {
		windows__set_files(w, opener, WINDOW_FILES_BY_IDENTITY);
		err = windows__close_last(w);
		windows__set_files(w, NULL, WINDOW_FILES_BY_IDENTITY);
		dso_opener__free(opener);
	}
	return err ? fail(failure, err, "cannot read symbols: %s", strerror(-err))
		   : windows__symbolize(w, options, &counts, failure);
}

static int read_stream(int fd, const char *path, struct windows *w,
		       struct recording_summary *summary, struct failure *failure)
{
	struct failure why = {};
	int err = recording_read(fd, windows__event, w, summary, &why);

	if (err)
		fail(failure, err, "cannot read %s: %s", path,
		     *why.what ? why.what : strerror(-err));
	if (*why.remedy)
		fail_remedy(failure, err, "%s", why.remedy);
	return err;
}

static int new_windows(const char *path, const struct replay_options *options,
		       struct windows **windows, struct failure *failure)
{
	const struct windows_options window_options = {
		.split = options->finished != NULL,
		.arguments = options->arguments,
		.finisher = {.full_names = options->full_names,
			     .jit_text = true,
			     .finished = options->finished,
			     .context = options->context},
	};
	int err = windows__new(&window_options, windows);

	return err ? fail(failure, err, "cannot read %s: out of memory", path) : 0;
}

/* After the last event; `err`: of reading. Frees the windows on failure. */
static int finish(struct windows *w, int err, const struct symbolizer_options *symbols,
		  struct windows **windows, const struct profile **profile, struct failure *failure)
{
	if (!err && symbols)
		err = symbolize_replay(w, symbols, failure);
	if (!err)
		err = windows__finish(w, profile, failure);
	return finish_new(err, w, windows__free, windows);
}

int replay_recording(int fd, const char *path, const struct replay_options *options,
		     struct windows **windows, const struct profile **profile,
		     struct recording_summary *summary, struct failure *failure)
{
	struct windows *w;
	int err = new_windows(path, options, &w, failure);

	if (err)
		return err;
	err = read_stream(fd, path, w, summary, failure);
	return finish(w, err, summary->has_symbols ? NULL : &options->symbols, windows, profile,
		      failure);
}

struct perf_replay {
	struct windows *windows;
	const struct replay_options *options;
};

/* An event_sink_fn. */
static int take_perf_event(void *replay, const struct event_header *event)
{
	const struct perf_replay *r = replay;
	const struct sample_event *sample = (const struct sample_event *)event;
	int err = 0;

	if (event->type == EVENT_SAMPLE && event->flags & EVENT_STACK_COPY && r->options->walk)
		err = r->options->walk(r->options->walker, windows__world(r->windows), &sample);
	if (event->type == EVENT_END)
		err = world__emit_left(windows__world(r->windows), event->time, windows__event,
				       r->windows);
	return err ?: windows__event(r->windows, &sample->header);
}

int replay_perf_data(int fd, const char *path, const struct replay_options *options,
		     struct windows **windows, const struct profile **profile,
		     struct perf_data_summary *summary, struct failure *failure)
{
	struct failure why = {};
	struct windows *w;
	int err = new_windows(path, options, &w, failure);

	if (err)
		return err;
	err = perf_child__read(fd, options->walk != NULL, NULL, take_perf_event,
			       &(struct perf_replay){w, options}, summary, &why);
	if (err)
		fail(failure, err, "cannot read %s: %s", path,
		     *why.what ? why.what : strerror(-err));
	return finish(w, err, &options->symbols, windows, profile, failure);
}

/* ---- files of other tools -------------------------------------------------------------------- */

static int symbolize_import(struct window *w, const struct symbolizer_options *options)
{
	struct symbolizer_counts counts = {};
	struct symbolizer *symbolizer = symbolizer__new();
	int err = symbolizer ? symbolize_window(w, symbolizer, options, &counts, NULL, NULL)
			     : -ENOMEM;

	symbolizer__free(symbolizer);
	return err;
}

int name_imported(struct profile_builder *builder, const struct symbolizer_options *options,
		  size_t *files, struct failure *failure)
{
	struct dso_opener *opener;
	struct window *w = NULL;
	int err = dso_opener__new(NULL, &opener);

	*files = 0;
	if (!err) {
		w = window__of_import(builder, opener);
		dso_opener__free(opener);
		err = w ? symbolize_import(w, options) : -ENOMEM;
	}
	for (size_t i = 0; w && i < w->files.count; i++)
		*files += w->files.data[i].fd >= 0;
	if (w)
		w->builder = NULL; /* the caller's */
	window__free(w);
	return err ? fail(failure, err, "cannot read symbols: %s", strerror(-err)) : 0;
}
