/* SPDX-License-Identifier: BSD-2-Clause */
/* What jitdumps say of the frames of the code that they describe, as they grow: for the unwinder. */
#ifndef PROCESS_JIT_FRAMES_H
#define PROCESS_JIT_FRAMES_H

#include <sysprof/event.h>

#include "jit/jit_code.h"

struct jit_frames;

struct jit_frames *jit_frames__new(void); /* NULL: no memory */
void jit_frames__free(struct jit_frames *f);

/* A jitdump was found, or its state has changed. 0 or -ENOMEM. */
int jit_frames__file(struct jit_frames *f, const struct jit_file_event *e);

/*
 * More of it. 0: it tells much that is new; then *list, which the caller frees, is everything that it
 * tells of now (valid until the next call), and *pid is whose it is. 1: nothing new; -ENOMEM.
 */
int jit_frames__bytes(struct jit_frames *f, const struct jit_bytes_event *e, uint32_t *pid,
		      struct jit_unwinding **list, size_t *count);

/* Dumps of processes that are not known any more (`is_known`) are forgotten. */
void jit_frames__forget(struct jit_frames *f, bool (*is_known)(void *context, uint32_t pid),
			void *context);

#endif
