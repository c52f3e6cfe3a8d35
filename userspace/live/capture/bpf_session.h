/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One recording's kernel side: the door to libbpf.
 *
 * Order of calls:
 *   open              everything is loaded, opened and mapped; the fork, exit and exec hooks run;
 *                     nothing ticks and the side-band is silent
 *   enable_sideband   now, before /proc is read, so that no change falls between
 *   add_target …      any time after open; a child that a target forks later is added by the
 *                     kernel side. COMMAND: while it is held before exec
 *   visit_cpus        optional
 *   enable_ticks
 *   drain …           on a timer (100 ms), and when epoll_fd is readable (a ring is half full)
 *   disable, drain    idempotent; after that drain the books are final
 *   books             any time; no bpf() call while recording
 *   free              NULL and half-open are fine
 * One thread calls all of it.
 */
#ifndef LIVE_CAPTURE_BPF_SESSION_H
#define LIVE_CAPTURE_BPF_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/bpf_shared.h>
#include <sysprof/event.h>
#include <sysprof/runtime_info.h>
#include <sysprof/unwind_memory.h>

#include "base/log.h"
#include "live/capture/perf_events.h"
#include "live/capture/target.h"
#include "live/capture/tick_rings.h"
#include "live/capture/tick_source.h"

struct bpf_session;

#define BPF_SESSION_FDS_PER_CPU 4

enum clock_choice {
	CLOCK_CHOICE_AUTO, /* the TSC where it can be trusted and read */
	CLOCK_CHOICE_TSC,  /* or fail, with the reason */
	CLOCK_CHOICE_MONOTONIC,
};

struct bpf_session_options {
	struct target target;
	const char *event; /* -e; NULL: TICK_SOURCE_DEFAULT */
	unsigned int hz;   /* > 0 */
	uint64_t period;   /* -c: events, or ns of a clock, between two samples; 0: by hz */
	bool user_stacks, kernel_stacks;
	size_t unwind_bytes;	/* for unwind tables at most; 0: by frame pointers alone */
	unsigned int max_depth; /* user frames, 1..SAMPLE_USER_DEPTH_MAX */
	enum clock_choice clock;
	size_t ring_bytes;    /* limit of all rings together; 0: RING_BYTES_DEFAULT */
	bool follow_groups;   /* EVENT_IN_GROUP and EVENT_GROUP_MADE; groups can be excluded */
	bool ends_of_sampled; /* EVENT_THREAD_CPU only of threads with samples */
	/*
	 * Targets by name, beside those of target.mode; copied. With TARGET_ALL and rules that include,
	 * no others are targets. EVENT_NAME_QUESTION, and EVENT_GROUP_MADE if groups or services decide.
	 * NULL: none.
	 */
	const struct name_rules *names;
};

/* The result, for the recording's metadata and the summary. Valid as long as the session. */
struct bpf_session_info {
	const char *event;	     /* name of the tick event */
	const char *event_unit;	     /* of its samples' periods; NULL: a clock */
	uint64_t period;	     /* ns; 0: not a clock event */
	uint64_t event_period;	     /* requested, of an event that is no clock; 0: by the rate */
	bool tsc;		     /* sample.tsc is set, which is more exact than header.time */
	const char *clock_reason;    /* why this clock, a sentence without a stop */
	const char *cpu_time_source; /* "rq-clock" or "exec-start", see bpf/cputime.bpf.h */
	uint32_t pid_namespace;	     /* inode of our own pid namespace; 0: the initial one */
	uint32_t cpus;		     /* CPUs that are sampled; books have index 0..cpus-1 */
	uint64_t started; /* CLOCK_MONOTONIC ns: right before the first tick event was enabled */
	size_t sample_ring_size, sideband_ring_size;	 /* bytes, of a CPU: the smallest */
	size_t sample_ring_wanted, sideband_ring_wanted; /* less got than wanted: lost sooner */
};

int bpf_session__open(const struct bpf_session_options *options, struct bpf_session **session,
		      struct failure *failure);
void bpf_session__free(struct bpf_session *session);

const struct bpf_session_info *bpf_session__info(const struct bpf_session *session);

/* A process or thread (by target.mode) to sample, as our pid namespace's id. -E2BIG: too many. */
int bpf_session__add_target(struct bpf_session *session, uint32_t id);

/*
 * The verdict (NAME_…) on a group, file or program from now on; it counts after the last one's
 * announcement. 0 or negative errno. Calls bpf().
 */
int bpf_session__put_verdict(struct bpf_session *session, const struct name_key *key,
			     uint32_t verdict);
/* `changed`: one of them replaces another. */
void bpf_session__announce_verdicts(struct bpf_session *session, bool changed);

/* Was a tick of the thread filtered since its last sample? In another pid namespace: false. */
bool bpf_session__has_filtered(const struct bpf_session *session, uint32_t tid);

/* Once, after all of add_target: so that threads are recognized after an execve. */
int bpf_session__identify_targets(struct bpf_session *session, struct failure *failure);

/* A process that becomes a target with its next execve: COMMAND, which is held until then. */
void bpf_session__hold_target(struct bpf_session *session, uint32_t id);

/* Whether stacks are copied whose tables are not there; they are at the start. */
void bpf_session__copy_stacks(struct bpf_session *session, bool copy);

/*
 * A CPU that came or went. `error`: it came and cannot be sampled (negative errno), until it comes
 * the next time; `what` says what failed.
 */
struct cpu_change {
	uint32_t cpu;
	bool online;
	int error;
	const char *what;
};
typedef int (*cpu_change_fn)(void *context, const struct cpu_change *change);

/*
 * Ticks in this control group of the unified hierarchy are filtered from now on, or no longer, with
 * follow_groups. At most EXCLUDED_GROUPS; more are not filtered. 0 or negative errno. Calls bpf().
 */
int bpf_session__exclude_group(struct bpf_session *session, uint64_t group, bool exclude);
int bpf_session__exclude_none(struct bpf_session *session);

/*
 * Selects the notes beside the frames of this process from now on; NULL: none. 0; -E2BIG: too many;
 * or another negative errno.
 */
int bpf_session__set_runtime(struct bpf_session *session, uint32_t tgid,
			     const struct runtime_info *info);

/* Children that are not sampled, for want of room in the set of targets. */
uint64_t bpf_session__refused_children(const struct bpf_session *session);

struct bpf_program_info {
	char name[32];
	uint32_t verified_insns; /* the verifier's work; 0: not reported (kernels before 5.16) */
	uint64_t runs, run_ns;	 /* 0 unless kernel.bpf_stats_enabled */
};
/*
 * Loaded programs, at most `capacity`; returns their number. Rarely while recording: it makes bpf()
 * calls, a few microseconds each, in which this CPU takes no samples.
 */
size_t bpf_session__programs(struct bpf_session *session, struct bpf_program_info *programs,
			     size_t capacity);

/*
 * While this descriptor is open, the kernel counts the run time of all loaded programs of the
 * machine, at some 20 ns a run. `fd` < 0: opens one, or negative errno (5.8); else closes it: -1.
 */
int bpf_session__run_statistics(int fd);

/* Bytes of maps and rings. */
size_t bpf_session__memory(const struct bpf_session *session);

#endif
