/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for code that processes make as they run. While the recording goes on, what their perf maps
 * and jitdumps tell is kept, and of samples nothing but their addresses and times, which the profile
 * has; when it has ended, each sample gets the names of what lay at its addresses at its time.
 */
#ifndef PROCESS_JIT_NAMES_H
#define PROCESS_JIT_NAMES_H

#include <sysprof/profile_builder.h>

#include "process/process_table.h"

struct jit_names;

/* NULL: no memory. The builder stays the caller's. */
struct jit_names *jit_names__new(struct profile_builder *builder);
void jit_names__free(struct jit_names *j);

/* Events as they come. `life`: the process that the file belongs to; NULL: unknown. 0, -ENOMEM. */
int jit_names__file(struct jit_names *j, const struct jit_file_event *e, struct process_life *life);
int jit_names__bytes(struct jit_names *j, const struct jit_bytes_event *e);
int jit_names__anchor(struct jit_names *j, const struct clock_anchor_event *e);

/*
 * What the dump of this number says of frames, if that has changed: as jit_code__unwinding(). *pid: of
 * the process that it belongs to. 1 where there is nothing.
 */
struct jit_unwinding;
int jit_names__unwinding(struct jit_names *j, uint32_t file, uint32_t *pid,
			 struct jit_unwinding **list, size_t *count);

/* A sampled process, in the profile already, runs such code. 0, -ENOMEM. */
int jit_names__seen(struct jit_names *j, struct process_life *life);

/* After the last event; the session's start is known. 0, -ENOMEM. */
int jit_names__finish(struct jit_names *j);

#endif
