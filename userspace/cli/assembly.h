/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the event stream to a finished profile, the same way for a live recording and for a file:
 *
 *   stream → [recording file] → recorder → profile builder → symbols → finished profile
 *
 * Symbols pass through the stream too (EVENT_SYMBOL), so what a recording replays is what the live
 * profile was made of.
 */
#ifndef CLI_ASSEMBLY_H
#define CLI_ASSEMBLY_H

#include <stdbool.h>

#include <sysprof/event_handler.h>
#include <sysprof/profile.h>
#include <sysprof/symbolizer.h>

#include "base/log.h"
#include "process/unwind_feed.h"
#include "procfs/dso_opener.h"
#include "stream/recording_file.h"

struct assembly;

/* `requests`: what the recorder may ask of a live source; NULL in replay. -ENOMEM. */
int assembly__new(const struct event_source_requests *requests, struct assembly **assembly);
void assembly__free(struct assembly *a);

/*
 * Live: keep the kernel's unwind tables in `memory` as processes are sampled; files are the
 * opener's. Both must outlive the assembly. Stacks that the kernel kept copies of get `max_depth`
 * user frames at most. `cache`: tables of former recordings are used, and some kept. 0 or -ENOMEM.
 */
int assembly__feed_unwinder(struct assembly *a, const struct unwind_memory *memory,
			    struct dso_opener *opener, unsigned int max_depth, bool cache);
/* Readable when there are tables to take, and so reason to hand events on again; -1: never. */
int assembly__unwinder_fd(const struct assembly *a);
/*
 * After each piece of the stream: what was built and what has changed gets to the kernel side. From when on
 * tables are in use is told by this too. 0 or -ENOMEM.
 */
int assembly__take_tables(struct assembly *a);
/* Ask for the tables of everything that targets have mapped so far. 0 or -ENOMEM. */
int assembly__prepare_unwinder(struct assembly *a);
bool assembly__is_building(const struct assembly *a);
/* From now on no event is sent back with -EAGAIN: the stream ends. */
void assembly__end_feeding(struct assembly *a);
/* All zero where no tables are kept. */
void assembly__unwind_stats(const struct assembly *a, struct unwind_feed_stats *stats);

/* Write the stream to this file as well; stays the caller's. NULL: no more. */
void assembly__set_writer(struct assembly *a, struct recording_writer *writer);

/* An event_sink_fn whose context is the assembly. */
int assembly__sink(void *assembly, const struct event_header *event);

/* Threads seen so far. */
size_t assembly__thread_count(const struct assembly *a);

/*
 * Find a name for every location. `live`: files are those the opener has seen mapped; else they are
 * sought by identity on this machine. 0 or negative errno; a file without symbols is no error.
 */
int assembly__symbolize(struct assembly *a, struct dso_opener *opener, bool live,
			const struct symbolizer_options *options, struct symbolizer_counts *counts);

/* The profile, the assembly's own. 0 or negative errno, with `failure` filled. */
int assembly__finish(struct assembly *a, const struct profile **profile, struct failure *failure);

/*
 * A recording, from its file to a finished profile; caller frees the assembly. `options`: how symbols
 * are sought where the recording has none, because it was cut short.
 */
int assembly__load(const char *path, const struct symbolizer_options *options,
		   struct assembly **assembly, const struct profile **profile,
		   struct recording_summary *summary, struct failure *failure);

#endif
