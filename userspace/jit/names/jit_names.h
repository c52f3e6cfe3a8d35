/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef JIT_NAMES_JIT_NAMES_H
#define JIT_NAMES_JIT_NAMES_H

#include <stddef.h>

struct jit_process;
struct jit_sources;
struct profile_builder;

/*
 * Names for JIT code. Until a window has ended, samples keep only their addresses and times, which
 * the profile has anyway. Then each sample gets the names of the code that was at its addresses at
 * its time.
 */

/*
 * Names the samples of these processes. To be called when the window's start is known and its
 * symbols are added, before the profile is finished. 0, -ENOMEM.
 */
int name_jit_code(struct profile_builder *builder, struct jit_sources *sources,
		  const struct jit_process *processes, size_t count);

#endif
