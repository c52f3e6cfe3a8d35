/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the agent of any use? It is not if it takes samples and nothing of them arrives anywhere: for three windows in a row
 * there were some, and no sink has sent a window. A host without samples is well, and so is an agent without sinks.
 */
#ifndef AGENT_HEALTH_H
#define AGENT_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#define HEALTH_SILENT_WINDOWS 3

/* All zero: well. */
struct health {
	unsigned int silent; /* windows in a row with samples, and nothing was sent meanwhile */
	uint64_t sent;	     /* windows, by all sinks, at the last look */
};

/* A window has ended: `samples` are in it; `sent` windows were sent so far, by `sinks` sinks together. */
void health__window(struct health *h, uint64_t samples, uint64_t sent, unsigned int sinks);

bool health__is_well(const struct health *h);

#endif
