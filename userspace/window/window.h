/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A closed window: its builder has all samples, but no symbols yet. It owns all that symbolizing
 * needs, so another thread can finish it while the next window is filled.
 */
#ifndef WINDOW_WINDOW_H
#define WINDOW_WINDOW_H

#include <sys/stat.h>

#include <sysprof/symbolizer.h>

#include "base/vec.h"
#include "files/dso_opener.h"
#include "world/recorder.h"

#define KERNEL_RELEASE_SIZE 128

/* The recorded kernel; empty, 0: unknown. */
struct kernel_identity {
	char release[KERNEL_RELEASE_SIZE];
	uint8_t build_id[BUILD_ID_SIZE];
	uint8_t build_id_size;
};

struct window_root {
	int fd;
	struct statx identity;
};

/* Where the scripts of a process are. */
struct process_root {
	struct process_id process;
	int fd;	       /* of window.roots */
	uint32_t user; /* tenant_user() */
};

struct window {
	uint64_t number; /* from 1 on */
	struct profile_builder *builder;
	VEC(struct jit_process) jit_processes;
	VEC(uint32_t) jit_files; /* of processes known at its end */
	uint32_t last_jit_file;	 /* the last one reported by then */
	/* by dso; its own descriptors, roots those of `roots`; may be shorter than the dsos */
	VEC(struct file_answer) files;
	VEC(struct window_root) roots;
	VEC(struct process_root) process_roots; /* of those with samples in code that they made */
	size_t unanswered; /* requested files: do not pass on the window before 0 */
	bool is_freed;	   /* but for the structure itself, which the last answer frees */
	struct kernel_identity kernel;
	VEC(uint64_t) kernel_changes; /* the times of versions of kernel addresses, from 1 on */
	uint64_t last_time;	      /* of the stream; events made later have this time */
	bool has_symbols;	      /* the stream had them */
	bool is_import; /* some of its code has names, and its kernel may be another one */
};

/* How the files of a window's dsos are found. */
enum window_file_source {
	WINDOW_FILES_LIVE,	  /* the opener opened them when they were mapped */
	WINDOW_FILES_BY_IDENTITY, /* of a recording: searched on this machine */
};

/*
 * Takes the builder (also on failure), copies what it needs from the closed recorder, and requests
 * files of sampled dsos from the opener (NULL: no files). NULL: out of memory.
 */
struct window *window__new(struct profile_builder *builder, const struct recorder *recorder,
			   struct dso_opener *opener, enum window_file_source source);
/*
 * The same of a profile that another tool's file was read into. Files of dsos that have code
 * without a name are searched by their build-ids. On failure the builder stays the caller's.
 */
struct window *window__of_import(struct profile_builder *builder, struct dso_opener *opener);
void window__free(struct window *w);
/* For the sources of scripts, of a live session: while its processes run, if they still do. 0, -ENOMEM. */
int window__find_process_roots(struct window *w, struct dso_opener *opener);

/*
 * Requests the file of an image. Without one on this machine there is no answer. 0, -ENOMEM, or the
 * result of the answer.
 */
int window_request_file(struct dso_opener *opener, const struct image *image,
			enum window_file_source source, const struct file_request *request);

#endif
