/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of the code that PyPy's compiler makes. */
#ifndef RUNTIMES_PYPY_TRACES_H
#define RUNTIMES_PYPY_TRACES_H

#include <stddef.h>
#include <sys/types.h>

#include <sysprof/made_frames.h>

/*
 * One frame an area, in *frames, which is the caller's to free. 0; -ENODATA: none of the areas has code of
 * PyPy's; -ENOMEM.
 */
int pypy__frames(pid_t pid, const struct made_area *areas, size_t area_count,
		 struct made_frame **frames, size_t *count);

#endif
