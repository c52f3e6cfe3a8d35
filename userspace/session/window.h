/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A closed window: its builder has all samples, but no symbols yet. It owns everything needed to symbolize it,
 * so another thread can finish it while the next window is filled.
 */
#ifndef SESSION_WINDOW_H
#define SESSION_WINDOW_H

#include <sys/stat.h>

#include <sysprof/profile_builder.h>
#include <sysprof/symbolizer.h>

#include "base/vec.h"
#include "process/recorder.h"
#include "procfs/dso_opener.h"
#include "stream/event_queue.h"

#define KERNEL_RELEASE_SIZE 128

/* The recorded kernel; empty, 0: unknown. */
struct kernel_identity {
	char release[KERNEL_RELEASE_SIZE];
	uint8_t build_id[BUILD_ID_SIZE];
	uint8_t build_id_size;
};

/* The file of a dso; the window owns the descriptors. -1: none. */
struct window_file {
	int fd;
	int root_fd;	     /* of `roots` */
	uint64_t base;	     /* offset of the dso in the file */
	uint32_t copied_for; /* as in struct file_answer */
};

struct window_root {
	int fd;
	struct statx identity;
};

struct window {
	uint64_t number; /* from 1 on */
	struct profile_builder *builder;
	VEC(struct jit_process) jit_processes;
	VEC(uint32_t) jit_files;       /* of processes that were known at its end */
	uint32_t last_jit_file;	       /* reported by then */
	VEC(struct window_file) files; /* by dso; those behind the last have none */
	VEC(struct window_root) roots;
	size_t unanswered; /* requested files; until they arrive the window must not be passed on or freed */
	struct kernel_identity kernel;
	uint64_t last_time; /* of the stream: the time of events made from here on */
	bool has_symbols;   /* they were in the stream */
};

/* How the files of a window's dsos are found. */
enum window_file_source {
	WINDOW_FILES_LIVE,	  /* the opener opened them when they were mapped */
	WINDOW_FILES_BY_IDENTITY, /* for a recording: searched on this machine */
};

/*
 * Takes ownership of the builder (also on failure) and copies what it needs from the closed recorder. Files of
 * sampled dsos are requested from the opener (NULL: there are none). Returns NULL if out of memory.
 */
struct window *window__new(struct profile_builder *builder, const struct recorder *recorder,
			   struct dso_opener *opener, enum window_file_source source);
void window__free(struct window *w);

/* Symbols for a closed window: every location is resolved once, and the results are emitted as events. */

/*
 * Resolves every location in files, the vDSO and the kernel. The results are added to the window's profile
 * and, unless `sink` is NULL, passed to it as the events of a recording, up to EVENT_SYMBOLS_END. 0 or
 * negative errno, including the sink's. A file without symbols is not an error.
 */
int symbolize_window(struct window *w, struct symbolizer *symbolizer,
		     const struct symbolizer_options *options, struct symbolizer_counts *counts,
		     event_sink_fn sink, void *context);

#endif
