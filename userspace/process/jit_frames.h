/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwinding information in jitdumps, read while they grow: for the unwinder. */
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
 * More bytes of it. 0: there is enough new information; then *list is all unwinding information of the dump so
 * far (the caller frees the list; what it points to is valid until the next call), and *pid is its process.
 * 1: nothing new; -ENOMEM.
 */
int jit_frames__bytes(struct jit_frames *f, const struct jit_bytes_event *e, uint32_t *pid,
		      struct jit_unwinding **list, size_t *count);

/* Frees the dumps of processes for which `is_known` is false. */
void jit_frames__forget(struct jit_frames *f, bool (*is_known)(void *context, uint32_t pid),
			void *context);

#endif
