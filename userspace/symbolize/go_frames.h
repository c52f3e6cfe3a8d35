/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of Go code, by the function table that every Go program carries (elf/gopclntab.h).
 *
 * It is preferred to DWARF. It is what Go itself prints stacks by, in a program that is stripped as
 * well as in one that is not, so both give the same profile. Names, lines and inlined calls are those
 * of the DWARF; but that lacks the files in which inlined functions are defined, the lines of some
 * generated functions and, from Go 1.19, the function around some inlined calls. And it is there
 * without inflating anything.
 */
#ifndef SYMBOLIZE_GO_FRAMES_H
#define SYMBOLIZE_GO_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "elf/gopclntab.h"

/*
 * The frames of an address, innermost first; strings are valid until the table is freed. How many:
 * 0 if the address is not in a Go function. `frames` has room for GO_MAX_FRAMES.
 */
size_t go_frames(const struct gopclntab *t, uint64_t address, struct symbol_frame *frames);

#endif
