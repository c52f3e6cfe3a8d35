/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A live recording: merges all sources (kernel rings, /proc, clocks) into one stream in time order.
 *
 *   live__open    loads and opens everything; nothing is sampled
 *   live__begin   reads the existing processes, threads and mappings; nothing is sampled
 *   live__announce passes them on; may be called repeatedly while the caller waits for something
 *   live__start   starts the ticks
 *   live__wait    waits until the next live__tick is due, or for something else
 *   live__tick    reads the sources and passes on the events that are in order
 *   live__stop    stops the ticks and passes on the rest, up to EVENT_END. Idempotent
 *
 * The sink sees the stream of include/sysprof/event_handler.h, undecoded.
 */
#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event_handler.h>

#include "files/dso_opener.h"
#include "live/capture/bpf_session.h"
#include "live/parts/groups.h"
#include "live/parts/names.h"
#include "stream/event_queue.h"

struct helper_pool;
struct live;

struct live_options {
	struct bpf_session_options session;
	const uint32_t *ids; /* processes or threads, by session.target.mode */
	size_t id_count;
	const char *target_text;  /* for the metadata: "-p 12" */
	const char *command_line; /* of this run */
	/* META_COMMAND_SHORT; NULL: the command line has no arguments */
	const char *command_short;
	bool jvm_perfmap;	  /* request the maps of HotSpot processes */
	bool interrupts;	  /* their work gets a root frame */
	bool no_memory;		  /* do not report how much memory processes have */
	unsigned int wall_hz;	  /* visits of waiting threads a second; 0: none */
	unsigned int wall_budget; /* at most so many millionths of a CPU for visits */
	bool wall_if_possible;	  /* if visits fail, that is no error */
	bool wall_small;	  /* their maps take less memory */
	bool facts;		  /* read facts of processes: EVENT_FACTS */
	bool owners;		  /* … also users, and names of containers */
	/* Environment variables to read, beside those always read; copied. */
	const char *const *fact_names;
	size_t fact_name_count;
	/* With session.follow_groups: which groups to sample; NULL: all. The collector calls it. */
	group_wanted_fn group_wanted;
	void *group_context;
	struct name_judge names; /* targets by name; session.names is taken from it */
	bool sources;	    /* note the root directories of processes with readable functions */
	size_t queue_bytes; /* of events waiting for older ones; more are lost. 0: the default */
};

int live__announce(struct live *live, event_sink_fn sink, void *context);
/* Is there more to announce? */
bool live__is_behind(const struct live *live);
/* The meaning of a descriptor that ends live__wait() when it is readable. */
enum live_wake {
	LIVE_WAKE_KERNEL,  /* the kernel side needs the mappings of a process */
	LIVE_WAKE_RINGS,   /* a ring is half full */
	LIVE_WAKE_READERS, /* a reader has answered */
	LIVE_WAKE_TABLES,  /* an unwind table is ready: a tick is due soon */
	LIVE_WAKE_OTHER,   /* the caller's */
};
int live__tick(struct live *live, event_sink_fn sink, void *context);
int live__stop(struct live *live, event_sink_fn sink, void *context);

/* Every event passes this stage before it leaves the queue. */
void live__set_stage(struct live *live, event_stage_fn stage, void *context);

/* The wanted control groups have changed. 0 or negative errno. */
int live__judge_groups(struct live *live);
/* See jit_tail__pause(). */
void live__pause_jit(struct live *live, bool pause);

/* CPU time of the targets since the start, from /proc, ns. Shows that samples are missing. */
uint64_t live__target_cpu(const struct live *live);

/* Have all requested threads (-t) ended? One that calls execve has not. */
bool live__threads_ended(struct live *live);

/* Objects that a session shares with its live stream, valid as long as that. */
struct live_shared {
	struct bpf_session *kernel;
	struct dso_opener *opener;
	struct helper_pool *readers;
	const struct tasks *tasks;
	/* Become events once a second, and at each window's end. */
	struct outside_books *books;
	const struct event_source_requests *requests; /* that the recorder may make */
};
struct live_shared live__shared(const struct live *live);

struct live_stats {
	uint64_t samples;
	struct event_queue_stats queue;
	size_t memory; /* maps, rings and the queue, bytes */
	const char
		*wall_refused; /* why there are no visits, or no more of them; NULL: no failure */
};
void live__stats(const struct live *live, struct live_stats *stats);

#endif
