/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of profiles. A backend that gets two of the same labels and the same millisecond drops one of them without a
 * word: so the parts of a window, and services that have the same labels, are a millisecond apart.
 */
#ifndef AGENT_PART_TIMES_H
#define AGENT_PART_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"

struct part_times;

/* 0, -ENOMEM. The window has to outlive it. */
int part_times__new(const struct agent_window *window, struct part_times **times);
void part_times__free(struct part_times *s);

/* When the part after `ahead` others of these labels begins: ns since the epoch. */
uint64_t part_times__next(const struct part_times *s, size_t service, uint32_t ahead);
/* That time is taken now. */
void part_times__take(struct part_times *s, size_t service);
/* Do they have the same labels? */
bool part_times__same(const struct part_times *s, size_t service, size_t other);

#endif
