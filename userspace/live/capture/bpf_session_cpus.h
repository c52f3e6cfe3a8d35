/* SPDX-License-Identifier: BSD-2-Clause */
/* The perf events of a session on each CPU, and what comes out of their rings. */
#ifndef LIVE_CAPTURE_BPF_SESSION_CPUS_H
#define LIVE_CAPTURE_BPF_SESSION_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/bpf_shared.h>

#include "live/capture/bpf_session.h"
#include "stream/event_queue.h"

struct books_event;
struct failure;
struct session_cpu;
struct target;

int bpf_session__enable_sideband(struct bpf_session *session, struct failure *failure);
/*
 * Before enable_ticks, optional: reads the clocks of all CPUs, if that is possible without ticks.
 * A visit of a busy CPU takes a while, and the ticks then start together.
 */
void bpf_session__visit_cpus(struct bpf_session *session);
int bpf_session__enable_ticks(struct bpf_session *session, struct failure *failure);

/* Stop ticks, hooks and side-band, in this order. What is in the rings stays for a last drain. */
void bpf_session__disable(struct bpf_session *session);

/*
 * Pass everything that is in the rings now to `sink`: for each CPU its samples (EVENT_SAMPLE,
 * EVENT_THREAD_CPU), then its side-band (EVENT_MMAP with file_state UNOPENED or NONE, EVENT_COMM,
 * EVENT_FORK, EVENT_EXIT, EVENT_LOST). In order within one CPU and kind, not across. Then one
 * EVENT_LOST of no CPU, if records were damaged or the hooks found a ring full.
 *
 * All events have their time. That of a sample is the program's own reading of the clock, half a
 * microsecond before its TSC. A sample's cpu_time can be too large, never too small: it includes
 * what a hypervisor stole since the scheduler last looked (usually at most one of its ticks), and a
 * later sample of the thread then shows less. So the least value of a sample and all later ones of
 * the thread is right.
 *
 * 0, or the first error of `sink`.
 */
int bpf_session__drain(struct bpf_session *session, event_push_fn sink, void *context);

/* Readable when a ring is past its fill mark. The session's own; poll it, then drain. */
int bpf_session__epoll_fd(const struct bpf_session *session);

/*
 * Readable when a target called execve, a stack was cut for want of mappings or tables, or a ring
 * of ticks is half full. The session's own; poll it, then take the wake. Except for a ring, wakes
 * are at least `interval` ns apart; 0, as at first: they come at once. True: a ring is half full.
 */
int bpf_session__wake_fd(const struct bpf_session *session);
/* *cause: whose process caused it; root's, if any of several was. */
bool bpf_session__take_wake(struct bpf_session *session, enum wake_cause *cause);
void bpf_session__set_wake_interval(struct bpf_session *session, enum wake_cause cause,
				    uint64_t interval);
/* Whether a target's execve does, too; it does not before the first call. */
void bpf_session__wake_on_exec(struct bpf_session *session, bool wake);

/* Records from before this are in their rings: `now` (CLOCK_MONOTONIC), or the time of a write. */
uint64_t bpf_session__written_until(const struct bpf_session *session, uint64_t now);

/*
 * The books of sampled CPU `index`, header included (header.time is now). EVENT_FINAL is set after
 * disable and the drain that follows it; only then do the lines add up to what was due.
 */
void bpf_session__books(struct bpf_session *session, uint32_t index, struct books_event *event);

/* Find the online CPUs and those to sample. */
int bpf_session__choose_cpus(struct bpf_session *s, const struct target *target,
			     struct failure *failure);
/* Open the TSC counters of the sampled CPUs, if the TSC is the clock. */
int bpf_session__choose_clock(struct bpf_session *s, enum clock_choice choice,
			      struct failure *failure);
/* Rings of ticks: one for each sampled CPU, and some for CPUs that come. */
size_t bpf_session__tick_ring_count(const struct bpf_session *s);
/* Make them. The programs are not loaded yet. */
int bpf_session__make_tick_rings(struct bpf_session *s);
/* Open events, rings and wakes. The programs are loaded. */
int bpf_session__open_cpus(struct bpf_session *s, struct failure *failure);
void bpf_session__close_cpus(struct bpf_session *s);

bool cpu_is_listed(const uint32_t *cpus, size_t count, uint32_t cpu);

/* NULL: it was never online in this session. */
struct session_cpu *bpf_session__find_cpu(const struct bpf_session *s, uint32_t cpu);

/* The CPUs that are online; the caller frees. 0 or negative errno. */
int bpf_session__read_online(uint32_t **cpus, size_t *count);

/* The events and rings of one CPU, to be started. The TSC counter is not among them. */
int bpf_session__open_cpu(struct bpf_session *s, struct session_cpu *c, struct failure *failure);

/* Unmap and close what there is. */
void bpf_session__close_cpu(struct session_cpu *c);

/* Open a CPU's TSC counter, from that CPU if `visit`. *error: of its base, in ns at most. */
int bpf_session__open_tsc(struct bpf_session *s, struct session_cpu *c, bool visit,
			  uint64_t *error);

/* Start the open events. */
int bpf_session__start_sideband(struct bpf_session *s, struct session_cpu *c, bool visit);

int bpf_session__start_tick(struct bpf_session *s, struct session_cpu *c, bool visit);

/* Stop the tick event, and note how long it ran. */
void bpf_session__stop_tick(const struct bpf_session *s, struct session_cpu *c);

uint64_t bpf_session__close_events(const struct bpf_session *s, const struct session_cpu *c,
				   __u64 *count);

void bpf_session__read_times(const struct bpf_session *s, struct session_cpu *c);

int bpf_session__drain_cpu(struct bpf_session *s, struct session_cpu *c, event_push_fn sink,
			   void *context);

uint64_t bpf_session__ticks_after_last_run(const struct bpf_session *s,
					   const struct session_cpu *c);

/* An account of this CPU without anything in it yet. */
void session_cpu__init(struct session_cpu *c, uint32_t cpu);

#endif
