/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of a window by service: all its threads and processes together, each stack once in
 * each context (interrupts).
 * Threads are not separated, because a backend makes a series of each set of labels.
 *
 * A service's samples add up to its ticks and CPU time exactly, as in a report: time after a
 * thread's last sample is that sample's. A thread never sampled is a sample without a stack and
 * ticks. Samples of no ticks and no time are left out. If the window has series of waits, they are
 * samples of their own: with a state, without ticks and CPU time.
 */
#ifndef AGENT_SERVICE_SAMPLES_H
#define AGENT_SERVICE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"

struct service_sample {
	struct stack_id stack; /* 0: not sampled */
	enum wall_state state; /* WALL_NONE: on a CPU */
	enum sample_context context;
	uint64_t ticks, cpu; /* cpu: ns */
	uint64_t wait;	     /* ns */
};

struct service_samples;

/* `merged`: the stack that stands for each; NULL: itself. Both have to outlive it. 0, -ENOMEM. */
int service_samples__new(const struct agent_window *window, const uint32_t *merged,
			 struct service_samples **samples);
void service_samples__free(struct service_samples *s);

/* Those of a service, in an order that is always the same for the same window. */
const struct service_sample *service_samples__of(const struct service_samples *s, size_t service,
						 size_t *count);
/* Their ticks and times. */
struct service_sample service_samples__sum(const struct service_sample *samples, size_t count);

#endif
