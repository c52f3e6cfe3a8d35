/* SPDX-License-Identifier: BSD-2-Clause */
/* The door to libiberty: C++, Rust and D names made readable, within bounds whatever they say. */
#ifndef SYMBOLIZE_DEMANGLE_H
#define SYMBOLIZE_DEMANGLE_H

#include <stddef.h>

/* Longest readable name, with its NUL; a longer one is cut at a character's edge. */
#define DEMANGLED_SIZE 4096

/*
 * The readable form of `name`, or the name itself where it is not mangled, in `buffer`. Always
 * NUL-terminated. `size` is at most DEMANGLED_SIZE. Returns the length of what was written.
 */
size_t demangle(const char *name, char *buffer, size_t size);

#endif
