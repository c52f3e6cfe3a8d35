/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jitdumps for a recording without machine code: the bytes of code are replaced by zeros. All else stays,
 * because names, lines and unwinding come from it.
 */
#ifndef JIT_NAMES_JIT_BLANK_H
#define JIT_NAMES_JIT_BLANK_H

#include <sysprof/event.h>

struct jit_blank;

struct jit_blank *jit_blank__new(void); /* NULL: no memory */
void jit_blank__free(struct jit_blank *b);

/* Replaces *event if it has bytes of a jitdump: valid until the next call. 0 or -ENOMEM. */
int jit_blank__event(struct jit_blank *b, const struct event_header **event);

#endif
