/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_CAPTURE_BPF_SESSION_HOTPLUG_H
#define LIVE_CAPTURE_BPF_SESSION_HOTPLUG_H

#include <stdbool.h>

#include "live/capture/bpf_session.h"
#include "stream/event_queue.h"

struct session_cpu;

/*
 * Another rate of ticks. Between pause and resume the books of all CPUs are complete, so a reading
 * has exactly what was due at the old rate. `hz` > 0; if it is the old one, nothing changes. 0 or
 * the first negative errno of a CPU, which keeps its rate (as its books say); all of them tick
 * again. Without ticks this has no effect.
 */
void bpf_session__pause_ticks(struct bpf_session *session);
int bpf_session__resume_ticks(struct bpf_session *session, unsigned int hz);

/*
 * Look which CPUs are online, some times a second while ticks are enabled. One that came is sampled
 * unless target.cpus excludes it. It may have been there before, and the kernel removed its events
 * (also in a suspend, which the list of CPUs does not show). `sink` gets the rest of an old ring. A
 * CPU's books go on. info.cpus can grow. 0, the first error of `sink` or `changed`, or -ENOMEM.
 *
 * As at the start, the side-band comes first: if *fresh is set, the caller reads the processes,
 * because what they did on such a CPU before is lost, and then starts its ticks.
 * start_fresh_cpus reports the CPUs that came.
 */
int bpf_session__follow_cpus(struct bpf_session *session, event_push_fn sink, cpu_change_fn changed,
			     void *context, bool *fresh);
int bpf_session__start_fresh_cpus(struct bpf_session *session, cpu_change_fn changed,
				  void *context);

/*
 * The timer of the CPU's tick event starts, or will, on a grid of its own. The event is stopped, so
 * no program uses its books.
 */
void bpf_session__start_grid(struct bpf_session *s, struct session_cpu *c);

#endif
