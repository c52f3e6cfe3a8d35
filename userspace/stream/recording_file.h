/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recording file (.sysprof): the event stream on disk, in chunks that each stand for
 * themselves. The format is in docs/FORMATS.md.
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
 * Begin a recording at `path`. The file appears under its name with the first flush, and only then replaces an older
 * one; it stays whatever happens later. "-" is standard output; what exists
 * and is not a regular file is written to as it is. 0 or negative errno with `failure` filled.
 */
int recording_writer__open(const char *path, struct recording_writer **writer,
			   struct failure *failure);

/*
 * Add an event; a full chunk is written at once, with one write(2). The first event should be a
 * clock anchor, then every chunk starts with one. A write error is returned by the call that met
 * it, once: the file is cut back to its last whole chunk, and later calls do nothing and return 0.
 */
int recording_writer__append(struct recording_writer *w, const struct event_header *event);

/*
 * End the current chunk, if it has events, and write it: to be called when the recording has begun, and every 250 ms.
 * As append.
 */
int recording_writer__flush(struct recording_writer *w);

/*
 * Flush, close, free. 0, or the first error of the writer's whole life, with `failure` filled.
 * Without any whole chunk nothing is left behind, and an older file is untouched. NULL is fine.
 */
int recording_writer__close(struct recording_writer *w, struct failure *failure);

/* Stop: what is on disk stays, the chunk begun is dropped. NULL is fine. */
void recording_writer__free(struct recording_writer *w);

/*
 * The path under which it is, if a directory had taken the name that it was to have. The caller frees; NULL: it is where
 * it was to be, or not there yet.
 */
char *recording_writer__other_path(const struct recording_writer *w);
/* Path of its temporary name: as output_file__temporary. */
int recording_writer__temporary(const struct recording_writer *w, char *path, size_t size);

/* The first error of its life; 0: none. NULL is fine. */
int recording_writer__error(const struct recording_writer *w);

uint64_t recording_writer__bytes(const struct recording_writer *w); /* in whole chunks so far */

/* ---- reading --------------------------------------------------------------------------------- */

struct recording_summary {
	uint64_t start_realtime, start_monotonic; /* when the file was begun; 0 unknown */
	uint64_t bytes;
	uint64_t chunks, damaged_chunks;
	uint64_t events, samples;
	uint64_t bad_events; /* of a sound chunk, but not consistent: skipped */
	uint64_t disordered; /* older than the event before them: moved to its time */
	bool header_damaged;
	bool truncated;	  /* the last chunk is cut off */
	bool cut_short;	  /* there is no EVENT_END: the writer was killed, or still writes */
	bool has_symbols; /* EVENT_SYMBOLS_END was there */
};

/*
 * Pass every event of a recording to the sink, checked and in time order. Damaged chunks are skipped and reported as
 * EVENT_LOST of LOST_RECORDING, once for each gap. The chunks' repeated clock anchors are handed on once.
 *
 * 0; what the sink returned; -ENOEXEC: not a recording; -EPROTONOSUPPORT: a newer version;
 * -ENOTSUP: of other byte order, or not seekable; -ENODATA: not one sound chunk; -EIO, -ENOMEM.
 * `failure` is filled but for the sink's errors. *summary is always filled as far as reading went.
 */
int recording_read(int fd, event_sink_fn sink, void *context, struct recording_summary *summary,
		   struct failure *failure);

/* Does the file start like a recording, of any version and byte order? Leaves the position alone. */
bool recording_probe(int fd);

/* A descriptor of a recording for recording_read(), or negative errno with `failure` filled. */
int recording_open(const char *path, struct failure *failure);

#endif
