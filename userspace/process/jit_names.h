/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for JIT code. Of samples a window keeps nothing but their addresses and times, which the profile
 * has anyway; when it has ended, each sample gets the names of what lay at its addresses at its time.
 */
#ifndef PROCESS_JIT_NAMES_H
#define PROCESS_JIT_NAMES_H

#include <sysprof/profile_builder.h>

#include "process/jit_sources.h"
#include "process/recorder.h"

/*
 * Names the samples of the processes given, which are the window's own. The window's start is known, its
 * symbols are there, and nothing was finished yet. 0, -ENOMEM.
 */
int name_jit_code(struct profile_builder *builder, struct jit_sources *sources,
		  const struct jit_process *processes, size_t count);

#endif
