/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of LuaJIT's traces: version 2.1 for x86-64 with 64-bit references (GC64). */
#ifndef RUNTIMES_LUAJIT_TRACES_H
#define RUNTIMES_LUAJIT_TRACES_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/made_frames.h>

#define LUAJIT_DISPATCH 14 /* r14, by DWARF number */

/*
 * The traces of all Lua states that are known, sorted, in *frames, which is the caller's to free. Areas ascend.
 * `dispatch` is what a thread had in that register, or 0: in a trace and in the interpreter that is the
 * dispatch table of its state, which is known from then on. 0; -ENODATA: there are none; -ENOMEM.
 */
int luajit__frames(struct made_runtime *runtime, uint64_t dispatch, const struct made_area *areas,
		   size_t area_count, struct made_frame **frames, size_t *count);

#endif
