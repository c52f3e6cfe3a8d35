/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for JIT code. While a window is open, samples keep only their addresses and times, which the profile
 * has anyway. When it has ended, each sample gets the names of the code that was at its addresses at its
 * time.
 */
#ifndef PROCESS_JIT_NAMES_H
#define PROCESS_JIT_NAMES_H

#include <sysprof/profile_builder.h>

#include "process/jit_sources.h"
#include "process/recorder.h"

/*
 * Names the samples of the given processes of the window. To be called when the window's start is known and its
 * symbols are added, before the profile is finished. 0, -ENOMEM.
 */
int name_jit_code(struct profile_builder *builder, struct jit_sources *sources,
		  const struct jit_process *processes, size_t count);

#endif
