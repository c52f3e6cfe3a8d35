/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples of the work of interrupts.
 *
 * A sample of a task is flagged (EVENT_IN_SOFTIRQ, EVENT_IN_HARDIRQ) if the tick interrupted such
 * work. A sample of the idle task becomes one of a pseudo process, "[interrupts]", which has a
 * thread for each kind of work and CPU. Functions on the kernel stack show the kind: the kernel
 * does not store which softirq it serves. The timer of the clock events is an interrupt itself, so
 * hardware interrupts are only seen with events that raise an NMI.
 *
 * These threads have no clock: each sample stands for a period.
 */
#ifndef LIVE_INTERRUPTS_H
#define LIVE_INTERRUPTS_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/vec.h"
#include "stream/event_queue.h"

/* X(ENUM, name): softirqs as in /proc/softirqs, and what is none of them. Numbers are in tids. */
#define INTERRUPT_KINDS(X)                                                                         \
	X(HI, "HI")                                                                                \
	X(TIMER, "TIMER")                                                                          \
	X(NET_TX, "NET_TX")                                                                        \
	X(NET_RX, "NET_RX")                                                                        \
	X(BLOCK, "BLOCK")                                                                          \
	X(IRQ_POLL, "IRQ_POLL")                                                                    \
	X(TASKLET, "TASKLET")                                                                      \
	X(SCHED, "SCHED")                                                                          \
	X(HRTIMER, "HRTIMER")                                                                      \
	X(RCU, "RCU")                                                                              \
	X(SOFTIRQ, "softirq") /* between two of them, or with another name */                      \
	X(HARDIRQ, "hardirq")                                                                      \
	X(UNKNOWN, "unknown") /* without a kernel stack or the kernel's symbols */

enum interrupt_kind {
#define X(id, name) INTERRUPT_##id,
	INTERRUPT_KINDS(X)
#undef X
		INTERRUPT_KIND_COUNT
};

/* Above the numbers of all tasks (PID_MAX_LIMIT); by CPU and kind. */
#define INTERRUPT_TIDS	    0x400000u
#define INTERRUPT_KINDS_MAX 16u

struct interrupt_function {
	uint64_t start, end; /* addresses */
	enum interrupt_kind kind;
};

/* Time of the threads of a CPU so far, ns; 0: not seen yet. */
struct interrupt_times {
	uint64_t of_kind[INTERRUPT_KIND_COUNT];
};

struct interrupts {
	VEC(struct interrupt_function) functions; /* by address */
	VEC(struct interrupt_times) times;	  /* by CPU */
	bool open; /* the end of the last function is not known yet */
	bool seen;
};

/* A piece of kallsyms, in the order of addresses. 0 or -ENOMEM. */
int interrupts__symbols(struct interrupts *i, const struct kallsyms_event *piece);
/*
 * Sets the flags of a sample from the kernel side; one of the idle task gets its thread and CPU
 * time. `period`: what it stands for, ns. Events of new threads go to `push`. 0 or negative errno.
 */
int interrupts__take(struct interrupts *i, struct sample_event *sample, uint64_t period,
		     event_push_fn push, void *context);
void interrupts__fini(struct interrupts *i);

#endif
