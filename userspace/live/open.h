/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a live recording, up to the first tick: sources, parts, and what exists before sampling. */
#ifndef LIVE_OPEN_H
#define LIVE_OPEN_H

struct failure;
struct live;
struct live_options;

int live__open(const struct live_options *options, struct live **live, struct failure *failure);
void live__free(struct live *live);

int live__begin(struct live *live, struct failure *failure);

int live__start(struct live *live, struct failure *failure);

#endif
