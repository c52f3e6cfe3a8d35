/* SPDX-License-Identifier: BSD-2-Clause */
#include "window/windows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "jit/names/jit_blank.h"
#include "services/process_names.h"
#include "stream/event_decode.h"
#include "world/profile_symbols.h"
#include "world/recorder.h"
#include "world/recording_facts.h"

#define JIT_LATE_NS    200000000ull
#define FILES_PATIENCE 2000000000ull /* ns of waiting for files at the end */

struct windows {
	struct jit_blank *blank; /* NULL: the file has all bytes */
	struct windows_options options;
	struct world *world;
	struct recording_facts *facts;
	struct finisher *finisher;
	struct recording_writer *writer;
	struct dso_opener *opener;
	enum window_file_source source;
	image_forget_fn may_forget;
	void *forget_context;
	struct kernel_identity kernel;
	uint64_t last_time;	/* of the stream */
	uint32_t last_jit_file; /* highest number in the stream so far */

	/* the open window */
	uint64_t number;
	struct profile_builder *builder;
	struct recorder *recorder;
	struct event_handler handler, symbol_handler;
	struct profile_symbols symbols;

	VEC(struct window *) closed; /* windows that wait for their files */
	struct window *last;	     /* the last one, once it is closed */
	uint64_t longest_close, longest_close_cpu;
};

/* ---- which kernel ---------------------------------------------------------------------------- */

static void keep_build_id(struct kernel_identity *kernel, const char *digits)
{
	size_t length = strlen(digits);
	unsigned int byte;

	kernel->build_id_size = 0;
	if (length % 2 || length > 2 * sizeof(kernel->build_id))
		return;
	for (size_t i = 0; i < length / 2; i++) {
		if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
			return;
		kernel->build_id[i] = byte;
	}
	kernel->build_id_size = length / 2;
}

static void note_meta(struct kernel_identity *kernel, const struct meta_event *meta)
{
	const char *key = meta->text, *value = key + strlen(key) + 1;

	if (!strcmp(key, META_KERNEL_RELEASE))
		snprintf(kernel->release, sizeof(kernel->release), "%s", value);
	else if (!strcmp(key, META_KERNEL_BUILD_ID))
		keep_build_id(kernel, value);
}

/* ---- one window after the other -------------------------------------------------------------- */

static int open_window(struct windows *w, uint64_t start)
{
	w->builder = profile_builder__new();
	if (!w->builder)
		return -ENOMEM;
	profile_builder__session(w->builder)->arguments = w->options.arguments;
	w->recorder = recorder__new(w->world, w->facts, w->builder, start);
	if (!w->recorder)
		return -ENOMEM;
	w->handler = recorder__handler(w->recorder);
	profile_symbols__init(&w->symbols, w->builder);
	w->symbol_handler = profile_symbols__handler(&w->symbols);
	w->number++;
	return 0;
}

static void free_open_window(struct windows *w)
{
	profile_symbols__fini(&w->symbols);
	recorder__free(w->recorder);
	profile_builder__free(w->builder);
	w->recorder = NULL;
	w->builder = NULL;
}

static int note_jit_file(void *context, uint32_t file)
{
	struct window *window = context;

	return vec_push(&window->jit_files, file);
}

/* `end` 0: the stream has ended. */
static int close_window(struct windows *w, uint64_t end, struct window **window)
{
	int err = recorder__close(w->recorder, end);

	*window = NULL;
	if (err)
		return err;
	*window = window__new(w->builder, w->recorder, w->opener, w->source);
	w->builder = NULL;
	if (!*window)
		return -ENOMEM;
	(*window)->number = w->number;
	(*window)->kernel = w->kernel;
	(*window)->last_time = w->last_time;
	(*window)->has_symbols = w->symbols.complete;
	(*window)->last_jit_file = w->last_jit_file;
	free_open_window(w);
	err = world__each_jit_file(w->world, note_jit_file, *window);
	/* sources are written for a single window only */
	if (!err && w->options.sources && !end && w->number == 1 && w->opener &&
	    w->source == WINDOW_FILES_LIVE)
		err = window__find_process_roots(*window, w->opener);
	if (err)
		window__free(steal_ptr(*window));
	return err;
}

/*
 * Passes closed windows that have their files to the finisher, in order, and JIT_LATE_NS after
 * their end, because entries of JIT files may be that late.
 */
static void hand_on_windows(struct windows *w)
{
	size_t count = 0;

	while (count < w->closed.count && !w->closed.data[count]->unanswered &&
	       w->last_time >= w->closed.data[count]->last_time + JIT_LATE_NS)
		finisher__add(w->finisher, w->closed.data[count++]);
	vec_drop(&w->closed, count);
}

static int next_window(struct windows *w, uint64_t time)
{
	uint64_t begin = monotonic_ns(), cpu = thread_cpu_ns();
	struct window *window;
	int err = close_window(w, time, &window);

	if (err)
		return err;
	if (vec_push(&w->closed, window)) {
		window__free(window);
		return -ENOMEM;
	}
	log_debug(LOG_SESSION, "window %llu is closed: %llu samples, %zu files",
		  (unsigned long long)window->number,
		  (unsigned long long)profile_builder__session(window->builder)->sample_count,
		  window->files.count);
	hand_on_windows(w);
	world__forget(w->world, w->may_forget, w->forget_context);
	err = open_window(w, time);
	w->longest_close = max_u64(w->longest_close, monotonic_ns() - begin);
	w->longest_close_cpu = max_u64(w->longest_close_cpu, thread_cpu_ns() - cpu);
	return err;
}

int windows__close_last(struct windows *w)
{
	int err = w->last ? 0 : close_window(w, 0, &w->last);

	/* no window waits for a file from here on */
	if (w->opener && !err)
		err = dso_opener__finish(w->opener, FILES_PATIENCE);
	for (size_t i = 0; i < w->closed.count; i++)
		finisher__add(w->finisher, w->closed.data[i]);
	w->closed.count = 0;
	return err;
}

struct window *windows__last(struct windows *w)
{
	return w->last;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int write_event(struct windows *w, const struct event_header *event)
{
	int err = w->writer && w->blank ? jit_blank__event(w->blank, &event) : 0;

	return err || !w->writer ? err : recording_writer__append(w->writer, event);
}

static bool is_symbol(const struct event_header *event)
{
	return event->type == EVENT_SYMBOL || event->type == EVENT_SYMBOL_DSO ||
	       event->type == EVENT_CODE_TEXT || event->type == EVENT_CODE_LINES ||
	       event->type == EVENT_SOURCE || event->type == EVENT_SOURCE_ROOT ||
	       event->type == EVENT_SYMBOLS_END;
}

static void note_jit_number(struct windows *w, const struct jit_file_event *e)
{
	if (e->file > w->last_jit_file)
		w->last_jit_file = e->file;
}

int windows__event(void *windows, const struct event_header *event)
{
	struct windows *w = windows;
	int err = write_event(w, event);

	hand_on_windows(w);
	if (!err)
		err = finisher__event(w->finisher, event)
			      ?: event_decode(event,
					      is_symbol(event) ? &w->symbol_handler : &w->handler);
	if (err)
		return err;
	w->last_time = event->time;
	if (event->type == EVENT_JIT_FILE)
		note_jit_number(w, (const struct jit_file_event *)event);
	if (event->type == EVENT_META)
		note_meta(&w->kernel, (const struct meta_event *)event);
	if (event->type == EVENT_WINDOW && w->options.split)
		err = next_window(w, event->time);
	return err;
}

/* ---- the last window ------------------------------------------------------------------------- */

static int close_last_window(struct windows *w)
{
	int err = windows__close_last(w);

	finisher__drain(w->finisher);
	return err;
}

/*
 * An event_sink_fn: writes symbols of the only window. With several nothing is written, because
 * symbols name dsos by their numbers in one window, which differ in a replay as one window.
 */
static int write_symbol(void *windows, const struct event_header *event)
{
	struct windows *w = windows;

	return w->number > 1 ? 0 : write_event(w, event);
}

int windows__symbolize(struct windows *w, const struct symbolizer_options *options,
		       struct symbolizer_counts *counts, struct failure *failure)
{
	int err = close_last_window(w)
			  ?: finisher__symbolize(w->finisher, w->last, options, counts,
						 write_symbol, w);

	return err ? fail(failure, err, "cannot read symbols: %s", strerror(-err)) : 0;
}

int windows__finish(struct windows *w, const struct profile **profile, struct failure *failure)
{
	int err = close_last_window(w) ?: name_processes(w->last->builder);

	if (err)
		return fail(failure, err, "cannot make the profile: %s", strerror(-err));
	return finisher__finish(w->finisher, w->last, profile, failure);
}

/* ---- life ------------------------------------------------------------------------------------ */

int windows__new(const struct windows_options *options, struct windows **windows)
{
	struct windows *w = calloc(1, sizeof(*w));
	int err = -ENOMEM;

	if (!w)
		return -ENOMEM;
	w->options = *options;
	w->world = world__new(options->requests);
	w->facts = recording_facts__new();
	w->blank = options->blank_code ? jit_blank__new() : NULL;
	if (w->world && w->facts && (w->blank || !options->blank_code))
		err = finisher__new(&options->finisher, &w->finisher);
	if (!err)
		err = open_window(w, 0);
	return finish_new(err, w, windows__free, windows);
}

void windows__free(struct windows *w)
{
	if (!w)
		return;
	finisher__free(w->finisher);
	vec_free_with(&w->closed, window, window__free(*window));
	window__free(w->last);
	free_open_window(w);
	recording_facts__free(w->facts);
	jit_blank__free(w->blank);
	world__free(w->world);
	free(w);
}

struct world *windows__world(struct windows *w)
{
	return w->world;
}

struct finisher *windows__finisher(struct windows *w)
{
	return w->finisher;
}

void windows__set_files(struct windows *w, struct dso_opener *opener,
			enum window_file_source source)
{
	w->opener = opener;
	w->source = source;
}

void windows__set_writer(struct windows *w, struct recording_writer *writer)
{
	w->writer = writer;
}

void windows__set_forgetting(struct windows *w, image_forget_fn may_forget, void *context)
{
	w->may_forget = may_forget;
	w->forget_context = context;
}

struct windows_stats windows__stats(const struct windows *w)
{
	return (struct windows_stats){
		.windows = w->number,
		.threads = w->builder ? profile_builder__thread_count(w->builder) : 0,
		.longest_close = w->longest_close,
		.longest_close_cpu = w->longest_close_cpu,
	};
}
