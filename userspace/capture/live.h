/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A live recording: every source there is (kernel rings, /proc, clocks), brought into one stream of
 * events in time order.
 *
 *   live__open    loads and opens everything; nothing is sampled
 *   live__start   tells what exists (processes, threads, mappings), then starts the ticks
 *   live__tick    reads what has come and hands on what is in order; on a timer, and when live__fd
 *                 is readable
 *   live__stop    stops the ticks and hands on the rest, up to EVENT_END. Idempotent
 *
 * The sink sees the stream of include/sysprof/event_handler.h, undecoded.
 */
#ifndef CAPTURE_LIVE_H
#define CAPTURE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/event_handler.h>

#include "base/log.h"
#include "capture/bpf_session.h"
#include "capture/dso_opener.h"
#include "capture/event_queue.h"

#define LIVE_TICK_MS 100 /* how often live__tick wants to be called */

struct live;

struct live_options {
	struct bpf_session_options session;
	const uint32_t *ids; /* processes or threads, by session.target.mode */
	size_t id_count;
	const char *target_text;  /* for the metadata: "-p 12" */
	const char *command_line; /* of this run */
	bool jvm_perfmap;	  /* ask HotSpot processes for their maps */
};

int live__open(const struct live_options *options, struct live **live, struct failure *failure);
void live__free(struct live *live);

/* One more target after open and before start: a COMMAND that is held. */
int live__add_target(struct live *live, uint32_t id, struct failure *failure);

int live__start(struct live *live, struct failure *failure);
int live__tick(struct live *live, event_sink_fn sink, void *context);
int live__stop(struct live *live, event_sink_fn sink, void *context);

/* Readable when a ring is half full: time for a tick. */
int live__fd(const struct live *live);

/* What the recorder may ask for; valid as long as `live`. */
const struct event_source_requests *live__requests(struct live *live);

/* CPU that the targets have used since the start, as far as /proc tells, ns: is silence plausible? */
uint64_t live__target_cpu(const struct live *live);

struct dso_opener *live__dso_opener(struct live *live);
struct bpf_session *live__session(struct live *live);

struct live_stats {
	uint64_t samples;
	uint64_t threads_at_stop;
	struct event_queue_stats queue;
	uint64_t jit_cpu; /* of following perf maps, ns */
	size_t memory;	  /* maps, rings and the queue, bytes */
};
void live__stats(const struct live *live, struct live_stats *stats);

#endif
