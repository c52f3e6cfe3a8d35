/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of an address in code that V8 has made: the function, those that are inlined there, and the lines, if
 * they can be determined. code.h says when to read them.
 */
#ifndef RUNTIMES_V8_PLACE_H
#define RUNTIMES_V8_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/v8/code.h"

struct v8_bytecodes;
struct v8_reader;

/*
 * `sfi` is what the frame was noted with. `address`: where the thread was; else the byte before a return address.
 *
 * Where the thread was, in optimized code, another function may run that is inlined there: the chain is_blind, and has no
 * line. Code of another function than the frame's has no frame yet, or none any more: the chain is that function, and
 * the frame's as its caller. At a return address, where that cannot be, the words of the frame were not its own: the chain
 * is_blind.
 *
 * 0; -ENODATA: there is nothing but the function itself; -ENOENT, -ENOTSUP, -EAGAIN, -ENOMEM as v8_code__at() and
 * v8_code__chain().
 */
int v8_place__chain(struct v8_reader *r, const struct v8_bytecodes *bytecodes, uint64_t sfi,
		    uint64_t address, bool is_leaf, struct v8_chain *chain);

#endif
