/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PARTS_JIT_H
#define LIVE_PARTS_JIT_H

struct jit_options;
struct live_part;

/* 0 or -ENOMEM; then the caller still owns the tail. */
int jit_part__new(const struct jit_options *options, struct live_part *part);

#endif
