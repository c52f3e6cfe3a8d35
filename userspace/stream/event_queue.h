/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the sources meet: samples, side-band records, /proc and clocks are pushed as they are read
 * and come out in time order.
 *
 * Events are held back until the caller says that nothing older can come any more (`until`). Equal
 * times keep the order in which they were pushed. Pushing from inside a sink is allowed.
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
 * Handles the next event before it is passed on. The stage may replace the event by another one, which is valid until
 * the stage's next call, or make it wait, with all events behind it. For an event that waited the stage is called
 * again. 0; STAGE_WAIT; or a negative errno, which ends the stream.
 */
#define STAGE_WAIT 1
typedef int (*event_stage_fn)(void *context, const struct event_header **event);

#define EVENT_QUEUE_MEMORY (256u << 20) /* what bursts may take, by default */

struct event_queue;

struct event_queue_stats {
	uint64_t pushed, released;
	uint64_t late;	  /* came after a later event had been handed on */
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
 * An event_push_fn whose context is the queue. 0; -EBADMSG: the header's size is impossible. An event over the memory
 * limit is dropped, counted, and reported at the next release as LOST_SAMPLES or LOST_SIDEBAND: the call still gives
 * 0, so that the source goes on. The session's own events (ends of windows, books) are kept all the same.
 */
int event_queue__push(void *queue, struct event_header *event);

/*
 * Hand on every event with time < until, up to one that has to wait. 0, or the first error of stage or
 * sink, whose event counts as handed on; the others stay.
 *
 * An event that is older than the last one handed on is given that one's time and is handed on
 * all the same; each release with such events ends with one EVENT_LOST of LOST_LATE, which counts
 * them. Nothing is lost then, but their true order among the events from `since` on is.
 */
int event_queue__release(struct event_queue *q, uint64_t until, event_sink_fn sink, void *context);

/* Hand on everything. */
int event_queue__flush(struct event_queue *q, event_sink_fn sink, void *context);

/* The time of the oldest event in the queue; UINT64_MAX: it is empty. */
uint64_t event_queue__oldest(const struct event_queue *q);

void event_queue__stats(const struct event_queue *q, struct event_queue_stats *stats);

#endif
