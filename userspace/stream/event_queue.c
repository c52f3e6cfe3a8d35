/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events are consecutive in blocks; a binary heap of (time, number of arrival, event) has the next
 * one on top. A block is free when its last event was passed on, which is soon, because events
 * leave nearly in order of arrival. A few free blocks are kept, so a steady stream allocates
 * nothing. Blocks are aligned to their size: masking an event's address gives its block.
 *
 * The arrival number keeps the order stable. Blocks and events never move, only heap slots do, so
 * the sink can push during a release.
 */
#include "stream/event_queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/vec.h"
#include "stream/event_decode.h"

#define BLOCK_SIZE  (256u * 1024)
#define SPARE_MAX   8u
#define SPARE_PART  16u /* of the limit */
#define DROP_KINDS  2u
#define QUEUE_FLUSH UINT64_MAX

_Static_assert((BLOCK_SIZE & (BLOCK_SIZE - 1)) == 0, "found by masking");
_Static_assert(BLOCK_SIZE >= 2 * EVENT_LIVE_MAX, "any event fits");

struct block {
	struct block *next; /* spare block */
	uint32_t used;	    /* bytes, this header included */
	uint32_t live;	    /* events not passed on yet */
};

struct slot {
	uint64_t time;
	uint64_t arrival;
	struct event_header *event;
};

_Static_assert(sizeof(struct block) % EVENT_ALIGN == 0, "events are aligned");

/* Events since the last EVENT_LOST about them. */
struct drop {
	uint64_t count;
	uint64_t first, last; /* their times */
};

struct event_queue {
	VEC(struct slot) heap;
	struct block *current; /* new events go here */
	struct block *spare;
	unsigned int spare_count;
	size_t limit, memory, memory_peak;
	uint64_t arrivals;
	uint64_t last; /* time of the last event passed on */
	uint64_t pushed, released, dropped;
	struct drop late; /* passed on, but late */
	uint64_t late_total;
	struct drop drops[DROP_KINDS]; /* LOST_SAMPLES, LOST_SIDEBAND */
	event_stage_fn stage;	       /* NULL: none */
	void *stage_context;
};

struct event_queue *event_queue__new(size_t memory_limit)
{
	struct event_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->limit = memory_limit ? memory_limit : EVENT_QUEUE_MEMORY;
	return q;
}

void event_queue__set_stage(struct event_queue *q, event_stage_fn stage, void *context)
{
	q->stage = stage;
	q->stage_context = context;
}

static struct block *block_of(const struct event_header *event)
{
	return (struct block *)((uintptr_t)event & ~(uintptr_t)(BLOCK_SIZE - 1));
}

void event_queue__free(struct event_queue *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->heap.count; i++) {
		struct block *block = block_of(q->heap.data[i].event);

		if (--block->live == 0 && block != q->current)
			free(block);
	}
	while (q->spare) {
		struct block *next = q->spare->next;

		free(q->spare);
		q->spare = next;
	}
	free(q->current);
	vec_free(&q->heap);
	free(q);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static size_t queue_memory(const struct event_queue *q)
{
	return q->memory + q->heap.capacity * sizeof(*q->heap.data);
}

static void block_recycle(struct event_queue *q, struct block *block)
{
	if (q->spare_count >= min_u64(q->limit / SPARE_PART / BLOCK_SIZE, SPARE_MAX)) {
		q->memory -= BLOCK_SIZE;
		free(block);
		return;
	}
	block->next = q->spare;
	q->spare = block;
	q->spare_count++;
}

/* Events of the session itself are few, small and indispensable: EVENT_WINDOW ends a window. */
static bool is_of_session(const struct event_header *event)
{
	return event->type == EVENT_WINDOW || event->type == EVENT_BOOKS ||
	       event->type == EVENT_END || event->type == EVENT_META ||
	       event->type == EVENT_CLOCK_ANCHOR || event->type == EVENT_OUTSIDE ||
	       event->type == EVENT_LOST;
}

static struct block *block_new(struct event_queue *q, bool over_limit)
{
	struct block *block = q->spare;

	if (block) {
		q->spare = block->next;
		q->spare_count--;
	} else {
		if (!over_limit && queue_memory(q) + BLOCK_SIZE > q->limit)
			return NULL;
		block = aligned_alloc(BLOCK_SIZE, BLOCK_SIZE);
		if (!block)
			return NULL;
		q->memory += BLOCK_SIZE;
	}
	*block = (struct block){.used = sizeof(*block)};
	return block;
}

static struct event_header *event_store(struct event_queue *q, const struct event_header *event)
{
	struct block *block = q->current;
	void *at;

	if (block && block->live == 0)
		block->used = sizeof(*block);
	if (!block || block->used + event->size > BLOCK_SIZE) {
		block = block_new(q, is_of_session(event));
		if (!block)
			return NULL;
		q->current = block; /* the last event of the one before frees that */
	}
	at = (char *)block + block->used;
	memcpy(at, event, event->size);
	block->used += event->size;
	block->live++;
	return at;
}

static void event_release(struct event_queue *q, struct event_header *event)
{
	struct block *block = block_of(event);

	if (--block->live == 0 && block != q->current)
		block_recycle(q, block);
}

/* ---- the heap -------------------------------------------------------------------------------- */

static bool slot_before(const struct slot *a, const struct slot *b)
{
	return a->time != b->time ? a->time < b->time : a->arrival < b->arrival;
}

static void heap_add(struct event_queue *q, struct slot slot)
{
	size_t i = q->heap.count++; /* the caller has made room */

	while (i > 0) {
		size_t parent = (i - 1) / 2;

		if (!slot_before(&slot, &q->heap.data[parent]))
			break;
		q->heap.data[i] = q->heap.data[parent];
		i = parent;
	}
	q->heap.data[i] = slot;
}

static struct slot heap_take(struct event_queue *q)
{
	struct slot *heap = q->heap.data;
	struct slot top = heap[0];
	size_t count = --q->heap.count;
	struct slot last = heap[count];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= count)
			break;
		if (child + 1 < count && slot_before(&heap[child + 1], &heap[child]))
			child++;
		if (!slot_before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return top;
}

static int heap_make_room(struct event_queue *q, bool over_limit)
{
	size_t more = q->heap.capacity ? q->heap.capacity : 1024;

	if (q->heap.count < q->heap.capacity)
		return 0;
	if (over_limit)
		return vec_reserve(&q->heap, q->heap.count + 1);
	if (queue_memory(q) + more * sizeof(*q->heap.data) > q->limit)
		return -ENOBUFS;
	return vec_reserve(&q->heap, q->heap.capacity + more);
}

/* ---- in -------------------------------------------------------------------------------------- */

static void count_drop(struct drop *drop, uint64_t time)
{
	if (drop->count++ == 0 || time < drop->first)
		drop->first = time;
	if (time > drop->last)
		drop->last = time;
}

static void drop_event(struct event_queue *q, const struct event_header *event)
{
	bool is_sample = event->type == EVENT_SAMPLE || event->type == EVENT_VISIT;

	count_drop(&q->drops[is_sample ? LOST_SAMPLES : LOST_SIDEBAND], event->time);
	q->dropped++;
}

int event_queue__push(void *queue, struct event_header *event)
{
	struct event_queue *q = queue;
	struct event_header *copy;

	if (!event_size_is_sound(event))
		return -EBADMSG;
	q->pushed++;
	copy = heap_make_room(q, is_of_session(event)) ? NULL : event_store(q, event);
	if (!copy) {
		drop_event(q, event);
		return 0;
	}
	heap_add(q, (struct slot){copy->time, q->arrivals++, copy});
	if (queue_memory(q) > q->memory_peak)
		q->memory_peak = queue_memory(q);
	return 0;
}

int event_queue__push_reading(void *queue, struct event_header *event)
{
	const struct event_queue *q = queue;

	event->time = max_u64(event->time, q->last);
	return event_queue__push(queue, event);
}

/* ---- out ------------------------------------------------------------------------------------- */

static int hand_on(struct event_queue *q, const struct event_header *event, event_sink_fn sink,
		   void *context)
{
	int err = sink(context, event);

	q->last = event->time;
	q->released++;
	return err;
}

static int report_lost(struct event_queue *q, enum lost_source source, const struct drop *drop,
		       uint64_t time, event_sink_fn sink, void *context)
{
	struct lost_event lost = {
		.header = {.size = sizeof(lost), .type = EVENT_LOST, .time = time},
		.source = source,
		.cpu = EVENT_CPU_UNKNOWN,
		.count = drop->count,
		.since = drop->first ? drop->first - 1 : 0,
	};

	return hand_on(q, &lost.header, sink, context);
}

/* Reports events dropped before `until`; a drop that extends beyond it is reported later. */
static int report_drops(struct event_queue *q, uint64_t until, event_sink_fn sink, void *context)
{
	for (unsigned int kind = 0; kind < DROP_KINDS; kind++) {
		struct drop drop = q->drops[kind];
		int err;

		if (drop.count == 0 || (drop.last >= until && until != QUEUE_FLUSH))
			continue;
		q->drops[kind] = (struct drop){};
		err = report_lost(q, kind, &drop, max_u64(drop.last, q->last), sink, context);
		if (err)
			return err;
	}
	return 0;
}

int event_queue__release(struct event_queue *q, uint64_t until, event_sink_fn sink, void *context)
{
	struct drop late;
	int err;

	while (q->heap.count > 0 && (q->heap.data[0].time < until || until == QUEUE_FLUSH)) {
		struct slot slot = heap_take(q);
		const struct event_header *event;

		if (slot.event->time < q->last) {
			count_drop(&q->late, slot.event->time);
			q->late_total++;
			slot.event->time = q->last;
		}
		event = slot.event;
		err = q->stage ? q->stage(q->stage_context, &event) : 0;
		if (err == STAGE_WAIT) {
			/* the stage may have pushed into its slot */
			err = vec_reserve(&q->heap, q->heap.count + 1);
			if (err)
				return err;
			heap_add(q, slot);
			return 0;
		}
		if (!err)
			err = hand_on(q, event, sink, context);
		event_release(q, slot.event);
		if (err)
			return err;
	}
	err = report_drops(q, until, sink, context);
	if (err || !q->late.count)
		return err;
	late = q->late;
	q->late = (struct drop){};
	return report_lost(q, LOST_LATE, &late, q->last, sink, context);
}

int event_queue__flush(struct event_queue *q, event_sink_fn sink, void *context)
{
	return event_queue__release(q, QUEUE_FLUSH, sink, context);
}

uint64_t event_queue__oldest(const struct event_queue *q)
{
	return q->heap.count ? q->heap.data[0].time : UINT64_MAX;
}

void event_queue__stats(const struct event_queue *q, struct event_queue_stats *stats)
{
	*stats = (struct event_queue_stats){
		.pushed = q->pushed,
		.released = q->released,
		.late = q->late_total,
		.dropped = q->dropped,
		.held = q->heap.count,
		.memory = queue_memory(q),
		.memory_peak = q->memory_peak,
	};
}
