/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of functions that survive a rebuild: what a compiler, a linker or a runtime adds to a name, and what differs
 * between two builds or two runs of the same source, is taken off. A function and its outlined parts have one name.
 */
#ifndef COMPARE_NAMES_H
#define COMPARE_NAMES_H

#include <stddef.h>

/* Writes the name, cut where `size` is short; never empty. */
void stable_name(char *out, size_t size, const char *name);

#endif
