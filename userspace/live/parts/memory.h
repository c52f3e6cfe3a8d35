/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PARTS_MEMORY_H
#define LIVE_PARTS_MEMORY_H

struct live_part;
struct memory_options;

/* 0, -ENOMEM, error of opening /proc. `second`: 0, -ENOMEM, -EMFILE, -ENFILE, result of `push`. */
int memory_part__new(const struct memory_options *options, struct live_part *part);

#endif
