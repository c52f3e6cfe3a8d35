/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads flags of a running HotSpot JVM. */
#ifndef JITWATCH_HOTSPOT_H
#define JITWATCH_HOTSPOT_H

#include <stdint.h>
#include <sys/types.h>

#include "jitwatch/runtime_reader.h"

/*
 * Was it started with -XX:+PreserveFramePointer? `symbols` are what its library exports, whose addresses are
 * `bias` higher in the process. 1, 0; -ESRCH, -EPERM, -ENODATA: it cannot be told. The answer is final once
 * the JVM has compiled code.
 */
int hotspot__read_frame_pointer_flag(pid_t pid, const struct hotspot_symbols *symbols,
				     uint64_t bias);

#endif
