/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PACE_H
#define LIVE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "live/live.h"

/* Until it is closed. -1 is ignored. 0 or negative errno. */
int live__watch(struct live *live, int fd, enum live_wake wake);

/* Until a tick is due, the last two kinds are readable, or `until` (CLOCK_MONOTONIC ns). */
void live__wait(struct live *live, uint64_t until);

/* Is live__tick() due? live__wait() may return before. */
bool live__is_due(const struct live *live);

/* Makes ticks rarer, and gives early ticks an eighth of their share of a CPU; false: as before. */
void live__save_ticks(struct live *live, bool save);

/* From now on the kernel side and readers end the wait. 0 or negative errno. */
int live_pace__init(struct live *live);
/* Ticks begin. An immediate one would find nothing, and delay the one for COMMAND's execve. */
void live_pace__start(struct live *live, uint64_t now);
/* A target has called execve. */
void live_pace__exec(struct live *live);
/* Is it the whole system at a low rate, so that all that can wait should cost little? */
bool live_is_saving(const struct live *live);
/* At the end of a tick: sends requests now if the next tick would be too late. */
int live_pace__use_readers(struct live *live);

#endif
