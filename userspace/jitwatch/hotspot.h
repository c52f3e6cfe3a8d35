/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads flags of a running HotSpot JVM. */
#ifndef JITWATCH_HOTSPOT_H
#define JITWATCH_HOTSPOT_H

#include <stdint.h>
#include <sys/types.h>

#include "jitwatch/runtime_reader.h"

/*
 * Was the JVM started with -XX:+PreserveFramePointer? `libjvm` is its library, which is loaded with `bias` in
 * the process. 1, 0; -ESRCH, -EPERM, -ENODATA: unknown. The answer is final once the JVM has compiled code.
 */
int hotspot__keeps_frame_pointers(pid_t pid, struct elf_file *libjvm, uint64_t bias);

/* The same by what the library exports. */
int hotspot__read_frame_pointer_flag(pid_t pid, const struct hotspot_symbols *symbols,
				     uint64_t bias);

#endif
