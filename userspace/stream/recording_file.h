/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recording file (.sysprof): the event stream on disk, in self-contained chunks. The format is
 * in docs/FORMATS.md.
 */
#ifndef STREAM_RECORDING_FILE_H
#define STREAM_RECORDING_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "stream/event_queue.h"

/* ---- writing --------------------------------------------------------------------------------- */

struct recording_writer;

/*
 * Begins a recording at `path`; "-" is standard output. The file gets its name with the first
 * flush, which replaces an older one, and stays from then on. Existing files that are not regular
 * are written to directly. 0 or negative errno with `failure` filled.
 */
int recording_writer__open(const char *path, struct recording_writer **writer,
			   struct failure *failure);

/*
 * Adds an event; a full chunk is written with one write(2). If the first event is a clock anchor,
 * every chunk starts with one. A write error is returned once: the file is cut back to its last
 * whole chunk, and later calls return 0 and do nothing.
 */
int recording_writer__append(struct recording_writer *w, const struct event_header *event);

/* Writes the current chunk, if any. Call it at the start and every 250 ms. Errors as append. */
int recording_writer__flush(struct recording_writer *w);

/*
 * Flushes, closes, frees. 0, or the writer's first error, with `failure` filled. If no whole chunk
 * was written, no file is left, and an older one is untouched. NULL is fine.
 */
int recording_writer__close(struct recording_writer *w, struct failure *failure);

/* Drops the current chunk; a named file stays. NULL is fine. */
void recording_writer__free(struct recording_writer *w);

/* Its real path if a directory has taken its name; else NULL. The caller frees. */
char *recording_writer__other_path(const struct recording_writer *w);
/* As output_file__temporary(). */
int recording_writer__temporary(const struct recording_writer *w, char *path, size_t size);

/* The first error; 0: none. NULL is fine. */
int recording_writer__error(const struct recording_writer *w);

uint64_t recording_writer__bytes(const struct recording_writer *w); /* in whole chunks so far */

/* ---- reading --------------------------------------------------------------------------------- */

struct recording_summary {
	uint64_t start_realtime, start_monotonic; /* when the file was begun; 0: unknown */
	uint64_t bytes;
	uint64_t chunks, damaged_chunks;
	uint64_t events, samples;
	uint64_t bad_events; /* inconsistent events in sound chunks: skipped */
	uint64_t disordered; /* older than the event before: moved to its time */
	bool header_damaged;
	bool truncated;	  /* the last chunk is cut off */
	bool cut_short;	  /* no EVENT_END: the writer was killed, or still writes */
	bool has_symbols; /* it has EVENT_SYMBOLS_END */
};

/*
 * Passes all events of a recording to the sink, checked and in time order. Skips damaged chunks,
 * and reports each gap as an EVENT_LOST of LOST_RECORDING. Clock anchors that chunks repeat are
 * passed on once.
 *
 * 0; what the sink returned; -ENOEXEC: not a recording; -EPROTONOSUPPORT: a newer version;
 * -ENOTSUP: of other byte order, or not a regular file; -ENODATA: no sound chunk; -EIO, -ENOMEM.
 * `failure` is filled, except for the sink's errors; *summary is filled as far as reading went.
 */
int recording_read(int fd, event_sink_fn sink, void *context, struct recording_summary *summary,
		   struct failure *failure);

/* The file starts like a recording of any version and byte order. Does not move its position. */
bool recording_probe(int fd);

#endif
