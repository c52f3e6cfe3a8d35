/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_DEMANGLE_H
#define SYMBOLIZE_DEMANGLE_H

#include <stddef.h>

/*
 * The readable form of `name`, or the name itself where it is not mangled, in `buffer`. Always
 * NUL-terminated. `size` is at most DEMANGLED_SIZE. Returns the length of what was written.
 */
size_t demangle(const char *name, char *buffer, size_t size);

#endif
