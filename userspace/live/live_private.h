/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by live.c (ticks), open.c (before them), pace.c (when they are) and the others here. */
#ifndef LIVE_LIVE_PRIVATE_H
#define LIVE_LIVE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "live/brief_lives.h"
#include "live/interrupts.h"
#include "live/live.h"
#include "live/part.h"
#include "live/parts/memory.h"
#include "live/proc/kernel_snapshot.h"
#include "live/proc/proc_snapshot.h"
#include "live/service_names.h"
#include "runtimes/ask/code.h"
#include "stream/clock.h"
#include "tenants/quota.h"

#include <sysprof/event.h>

/*
 * The requested threads, each by its present number, and whether it has ended.
 *
 * A thread that calls execve gets the number of its process's leader, and its own is gone. So a
 * thread whose number is gone has ended only if its exit record was seen. Records arrive later than
 * /proc changes, so this is decided when all records of that moment have been read.
 */

struct thread_target {
	uint32_t tid, pid;
	bool ended;
	uint64_t gone; /* CLOCK_MONOTONIC ns since when /proc does not have it; 0: it has */
};

struct thread_targets {
	VEC(struct thread_target) threads;
};

#define PARTS_MAX	    8
#define LIVE_SIDEBAND_BYTES (64u << 20)

/* What is recorded. */
struct live_target {
	enum target_mode mode;
	bool everyone;			/* there is no target list: -a, a cgroup, or names */
	struct name_judge names;	/* targets by name, beside those of the mode */
	struct service_names *services; /* NULL: names of services do not count */
	int proc_fd;			/* /proc, for names; -1: it is not open */
	bool inherit;			/* children are targets too */
	struct pid_list roots;		/* requested processes, or those of the requested threads */
	struct thread_targets threads;	/* -t: the requested threads */
	char *text, *command_line, *command_short;
	uint64_t cpu_at_start;
};

/* When ticks are: pace.c. Times in ns. */
struct live_pace {
	int wakes;	     /* an epoll set: what ends live__wait() */
	bool awaits_readers; /* readers are in the set now */
	bool saves;	     /* early ticks are rarer */
	bool ticked;	     /* since the last plan */
	bool ticked_early;   /* … before on_timer */
	uint64_t due;	     /* the next tick */
	uint64_t on_timer;   /* a tick before this is early; 0: it has another reason */
	/* of early ticks: CPU time since their wake, the next one; root's are charged to all */
	struct meter early[WAKE_CAUSES];
	uint64_t earliest[WAKE_CAUSES];
	uint64_t wake_interval[WAKE_CAUSES];
	uint64_t answers_at;	 /* the latest tick for a file or table that events wait for */
	uint64_t for_root_until; /* until then ticks are for a process of root's */
	uint64_t woken_cpu;	 /* CPU time of the thread at its last wake */
	uint64_t soon;		 /* after an execve: to the next look at its libraries; 0: none */
};

/* Records that wait until all rings are read. */
struct live_sideband {
	struct event_queue *queue;
	struct brief_lives brief; /* among them */
	struct quota map_records; /* of users */
	uint64_t until;		  /* all older records of it have been taken */
};

/* Of a CPU: tentative samples that were no target's. The kernel has counted them as delivered. */
struct live_dropped {
	uint64_t ticks; /* or events, as in its books */
	uint64_t samples;
};

/* A tick's share of the rings. */
struct live_slice {
	uint64_t end;
	unsigned int handled; /* events */
	bool unfinished;      /* it was too short */
};

struct live {
	struct live_target target;
	struct bpf_session *session;
	struct clock clock;
	VEC(uint64_t) tsc_lags;		  /* by CPU: ns for which its TSC counter stood still */
	VEC(struct live_dropped) dropped; /* by CPU */
	struct event_queue *queue;
	struct outside_books *books;
	struct tasks *tasks;
	struct live_part parts[PARTS_MAX + 1]; /* ends with one that has no object */
	struct helper_pool *readers;
	struct fact_readers *fact_readers;
	struct dso_opener *opener;
	struct cpu_idle *idle;
	struct proc_snapshot *proc;
	struct kernel_modules modules;
	struct event_source_requests requests;
	struct jit_tail *jit;
	struct live_pace pace;
	struct live_sideband sideband;
	struct live_slice slice;
	struct interrupts interrupts;
	bool marks_interrupts;
	bool visits; /* of threads that wait are requested */

	event_stage_fn stage; /* the caller's; NULL: none */
	void *stage_context;
	unsigned int hz;
	unsigned int next_hz;	/* from the next window on; 0: the same */
	char *cpu_notes;	/* META_CPU_CHANGES so far; NULL: none came or went */
	uint64_t last_cpu_look; /* for CPUs that came or went */
	uint64_t drained;	/* when the rings were read, before the first tick; ns */
	uint64_t all_read;	/* all older samples and records have been read; ns */
	uint64_t last_anchor;
	uint64_t seconds; /* anchors so far */
	uint64_t start_time;
	uint64_t samples;
	bool changed; /* side-band of targets came since the last tick */
	bool started, stopped;
	int found_err; /* of a mapping whose file was found between two ticks */
};

/* ---- live.c ---------------------------------------------------------------------------------- */

#define LIVE_DRAIN_INTERVAL                                                                        \
	50000000ull /* ns between two readings of the rings while /proc is read, at least */

/* The stages of the two queues. */
int live_stage_event(void *live, const struct event_header **event);
int live_stage_sideband(void *live, const struct event_header **event);
/* tasks_options.released. */
int live_release_task(void *live, struct task *task, enum task_end how);
/* event_push_fns: a sample that is a target's, and a tentative one that is not. */
int live_keep_sample(void *live, struct event_header *sample);
int live_drop_sample(void *live, struct event_header *sample);
/* An event_push_fn: an event from /proc, which is of targets only, so it needs no check. */
int live_push_from_proc(void *live, struct event_header *event);
/* Takes answers of readers, until all are there or `patience` (ns) is over. 0 or negative errno. */
int live_settle_readers(struct live *live, uint64_t patience);
/* Takes what the rings have now, without passing it on. 0 or negative errno; `context` is the live. */
int live_catch_up(void *context);
/* Has the mappings of this process read once more. */
void live_read_again(void *context, uint32_t pid);
/* While /proc is read, which can take seconds: reads the rings if due. 0 or negative errno. */
int live_drain_in_time(struct live *live);
/* Takes all that the rings have now. 0 or negative errno. */
int live_read_rings(struct live *live);
/*
 * At the end of a window or recording: requests the names of functions sampled in the last moment,
 * and takes the answers, within a tenth of a second. 0 or negative errno.
 */
int live_settle_code(struct live *live);

#endif
