/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A window that is closed: all samples are in its builder, names are not. It owns everything that it takes to
 * give it names, so it can be finished by another thread while the next window is filled.
 */
#ifndef SESSION_WINDOW_H
#define SESSION_WINDOW_H

#include <sys/stat.h>

#include <sysprof/profile_builder.h>

#include "base/vec.h"
#include "process/recorder.h"
#include "procfs/dso_opener.h"

#define KERNEL_RELEASE_SIZE 128

/* Which kernel it was; empty, 0: unknown. */
struct kernel_identity {
	char release[KERNEL_RELEASE_SIZE];
	uint8_t build_id[BUILD_ID_SIZE];
	uint8_t build_id_size;
};

/* The file of a dso, by descriptors of the window's own; -1: none. */
struct window_file {
	int fd;
	int root_fd;   /* of `roots` */
	uint64_t base; /* where the dso begins in it */
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
	uint32_t last_jit_file;	       /* that was told by then */
	VEC(struct window_file) files; /* by dso; those behind the last have none */
	VEC(struct window_root) roots;
	size_t unanswered; /* files that were asked for: until they come it must not be handed on or freed */
	struct kernel_identity kernel;
	uint64_t last_time; /* of the stream: what is told from here on has it */
	bool has_symbols;   /* the stream brought them */
};

/* How the files of a window's dsos are to be had. */
enum window_file_source {
	WINDOW_FILES_LIVE,	  /* the opener has seen them mapped */
	WINDOW_FILES_BY_IDENTITY, /* sought on this machine, for a recording */
};

/*
 * Takes over the builder (in any case), and from the closed recorder what is needed. Files of dsos that
 * were sampled are asked of the opener (NULL: there are none). NULL: no memory.
 */
struct window *window__new(struct profile_builder *builder, const struct recorder *recorder,
			   struct dso_opener *opener, enum window_file_source source);
void window__free(struct window *w);

/* "kernel" and "kernel_build_id" of EVENT_META; other keys are ignored. */
void kernel_identity__meta(struct kernel_identity *kernel, const char *key, const char *value);

#endif
