/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COMPARE_NAMES_H
#define COMPARE_NAMES_H

#include <stddef.h>

/*
 * A function's name that survives a rebuild: without additions of compiler, linker or runtime, and
 * without what differs between two builds or runs of one source. A function and its outlined parts
 * have one name. `out` is cut to `size`; never empty.
 */
void stable_name(char *out, size_t size, const char *name);

#endif
