/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of a window by service: all threads and processes of a service together, each stack once. Threads
 * are not separated, since a backend makes a series of each distinct set of labels.
 *
 * Over a service the samples add up to its ticks and its CPU time exactly, as in a report: the time that a
 * thread used after its last sample is that sample's. Where a thread was never sampled, it is in a sample without
 * a stack, of no ticks. A sample of no ticks and no time is left out.
 *
 * Waits are samples of their own, if the window has series of them: with a state, and without ticks and CPU time.
 */
#ifndef AGENT_SERVICE_SAMPLES_H
#define AGENT_SERVICE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"

struct service_sample {
	struct stack_id stack; /* 0: not sampled */
	enum wall_state state; /* WALL_NONE: on a CPU */
	uint64_t ticks, cpu;   /* cpu: ns */
	uint64_t wait;	       /* ns */
};

struct service_samples;

/* `merged`, by stack: the one that stands for it; NULL: itself. 0, -ENOMEM. Both have to outlive it. */
int service_samples__new(const struct agent_window *window, const uint32_t *merged,
			 struct service_samples **samples);
void service_samples__free(struct service_samples *s);

/* Those of a service, in an order that is always the same for the same window. */
const struct service_sample *service_samples__of(const struct service_samples *s, size_t service,
						 size_t *count);

#endif
