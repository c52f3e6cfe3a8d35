/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits in formats of CPU samples (docs/WALL.md, Formats): a wait is a stack with one more leaf, and some ticks. */
#ifndef EXPORT_WAITS_H
#define EXPORT_WAITS_H

#include <sysprof/exporter.h>
#include <sysprof/profile.h>

/* "[waiting: lock]" */
const char *wait_leaf(enum wall_state state);

/* ns that stand for one tick: the period of the samples, or of the visits if that is no time. At least 1. */
uint64_t wait_period(const struct profile *p);

/*
 * The ticks of a weight. `rest` begins as wait_period() / 2: what is rounded off counts with the next weight, so the sum is
 * rounded only once.
 */
uint64_t wait_ticks(uint64_t weight, uint64_t period, uint64_t *rest);

/* Writes a file that has waits only if they are requested; else it is that of a recording without visits. */
int write_requested_waits(const struct export_request *request,
			  int (*write)(const struct export_request *request));

#endif
