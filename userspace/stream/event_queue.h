/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merges all sources: samples, side-band records, /proc and clocks are pushed as they are read and
 * come out in time order.
 *
 * Events are held until the caller knows that nothing older can come any more (`until`). Events of
 * the same time keep their order. Pushing from inside a sink is allowed.
 */
#ifndef STREAM_EVENT_QUEUE_H
#define STREAM_EVENT_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/event.h>

/*
 * Where a source puts its events, before the queue. The event is the source's own buffer, whole and
 * with header.time set; the receiver may change it, and copies it if it keeps it. 0 or negative
 * errno, which ends the source's reading.
 */
typedef int (*event_push_fn)(void *context, struct event_header *event);

/* Where events go once they are in order. 0, or a negative errno, which ends the stream. */
typedef int (*event_sink_fn)(void *context, const struct event_header *event);

/*
 * Handles the next event before it is passed on. The stage may replace it by an event that is valid
 * until its next call, or make it wait, with all events behind it; then it is called again. 0;
 * STAGE_WAIT; or a negative errno, which ends the stream.
 */
#define STAGE_WAIT 1
typedef int (*event_stage_fn)(void *context, const struct event_header **event);

#define EVENT_QUEUE_MEMORY (256u << 20) /* default limit, for bursts */

struct event_queue;

struct event_queue_stats {
	uint64_t pushed, released;
	uint64_t late;	  /* pushed after a later event had been passed on */
	uint64_t dropped; /* over the memory limit; each is in an EVENT_LOST */
	size_t held;	  /* events in the queue now */
	size_t memory, memory_peak;
};

/* NULL: no memory. `memory_limit` 0 is the default. */
struct event_queue *event_queue__new(size_t memory_limit);
void event_queue__free(struct event_queue *q);

/* Every event passes this stage from now on. */
void event_queue__set_stage(struct event_queue *q, event_stage_fn stage, void *context);

/*
 * An event_push_fn whose context is the queue. 0; -EBADMSG: the header's size is impossible. An
 * event over the memory limit is dropped and counted: the result is 0, and the next release reports
 * LOST_SAMPLES (visits are samples) or LOST_SIDEBAND. The session's own events (ends of windows,
 * books) are always kept.
 */
int event_queue__push(void *queue, struct event_header *event);
/*
 * The same for something that a reader has read: it may be older than the last event passed on, gets
 * that one's time, and does not count as late.
 */
int event_queue__push_reading(void *queue, struct event_header *event);

/*
 * Passes on all events with time < until, up to one that has to wait. 0, or the first error of
 * stage or sink, whose event counts as passed on; the others stay.
 *
 * An event older than the last one passed on gets that one's time. A release with such events ends
 * with an EVENT_LOST of LOST_LATE, which counts them: they are not lost, but their true order among
 * the events from `since` on is.
 */
int event_queue__release(struct event_queue *q, uint64_t until, event_sink_fn sink, void *context);

/* Passes on all events. */
int event_queue__flush(struct event_queue *q, event_sink_fn sink, void *context);

/* The time of the oldest event in the queue; UINT64_MAX: it is empty. */
uint64_t event_queue__oldest(const struct event_queue *q);

void event_queue__stats(const struct event_queue *q, struct event_queue_stats *stats);

#endif
