/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PARTS_FACTS_H
#define LIVE_PARTS_FACTS_H

struct facts_options;
struct live_part;

/*
 * 0, -EINVAL: an invalid name, or too many; -ENOMEM, or the error of opening /proc. `tick` returns
 * 0, -ENOMEM, or an error of `push` since its last call. The pool must have ended before `free`.
 */
int facts_part__new(const struct facts_options *options, struct live_part *part);

#endif
