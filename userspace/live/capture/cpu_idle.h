/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long each CPU was idle, or did no task's work, from /proc/stat.
 *
 * For some timers of an idle CPU (those it serves on the way out of idle) the kernel does not run
 * perf's programs. The books have such ticks as not run; the idle time separates them from losses.
 * It has a grain of 10 ms.
 */
#ifndef LIVE_CAPTURE_CPU_IDLE_H
#define LIVE_CAPTURE_CPU_IDLE_H

#include <stdbool.h>

#include <sysprof/event.h>

struct cpu_idle;

struct cpu_idle *cpu_idle__new(void); /* NULL: no memory */
void cpu_idle__free(struct cpu_idle *idle);

/* Sampling begins: idle time counts from now on. */
void cpu_idle__start(struct cpu_idle *idle);
/* A CPU has come: it counts from now on, on top of what it had before it went. 0 or -ENOMEM. */
int cpu_idle__came(struct cpu_idle *idle, __u32 cpu);
/* Read again. Without /proc/stat every CPU counts as busy; one that has gone keeps what it had. */
void cpu_idle__read(struct cpu_idle *idle);

/* Move what fell into idle time from NOT_RUN to IDLE_NOT_RUN; the sum stays. */
void cpu_idle__split(struct cpu_idle *idle, struct books_event *books);

/* Fill in the event of this CPU, but for its header's time. False: it cannot be read. */
bool cpu_idle__times(const struct cpu_idle *idle, __u32 cpu, struct cpu_times_event *event);

/*
 * A window ends with these books. Idle time has a coarse grain, so a later split might move earlier
 * ticks; from now on it does not. 0 or -ENOMEM.
 */
int cpu_idle__mark(struct cpu_idle *idle, const struct books_event *books);

/* cpu_idle__split() for a CPU whose idle time has so many ticks. */
void cpu_idle_move(struct books_event *books, __u64 ticks);

/* The text of /proc/stat: ns that `cpu` was idle or waiting for I/O since boot, ~0 unknown. */
__u64 cpu_idle_parse(const char *text, unsigned int cpu);
/* The same text: times since boot, ns. False: unknown. */
bool cpu_times_parse(const char *text, unsigned int cpu, __u64 times[CPU_TIME_COUNT]);

#endif
