/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel writes records at data_head and never overtakes data_tail; we read from tail to head
 * and then move the tail. Both only grow; a position in the ring is their rest by its size. The
 * head is loaded with acquire, so that the records up to it are whole, and the tail stored with
 * release, so that the kernel writes over nothing that is still being read.
 *
 * Records are copied: one that wraps has to be made whole, and consumers may write to them, while
 * the ring except for its first page is read-only. Nothing is trusted: a record whose size is out
 * of bounds costs the rest of the ring, never more.
 */
#include "live/capture/perf_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/minmax.h"
#include "stream/event_decode.h"

#define RECORD_SIZE_MAX (64u * 1024) /* header.size is 16 bits wide */

int perf_ring__map(struct perf_ring *ring, int fd, size_t want, size_t floor)
{
	size_t page_size = sysconf(_SC_PAGESIZE);

	floor = max_u64(floor, page_size);
	for (size_t size = want; size >= floor; size /= 2) {
		void *page = mmap(NULL, page_size + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				  0);

		if (page != MAP_FAILED) {
			*ring = (struct perf_ring){.page = page, .data_size = size};
			return 0;
		}
		if (errno != EPERM && errno != ENOMEM)
			return -errno;
	}
	return -ENOMEM;
}

void perf_ring__unmap(struct perf_ring *ring)
{
	if (!ring || !ring->page)
		return;
	munmap(ring->page, sysconf(_SC_PAGESIZE) + ring->data_size);
	free(ring->bounce);
	*ring = (struct perf_ring){};
}

/* Copy of the record at `at`, which has `available` bytes before the head. NULL: it is invalid. */
static struct perf_event_header *copy_record(struct perf_ring *ring, uint64_t at,
					     uint64_t available)
{
	const char *data = (const char *)ring->page + sysconf(_SC_PAGESIZE);
	size_t offset = at & (ring->data_size - 1), size, first;

	if ((at & 7) || available < sizeof(struct perf_event_header))
		return NULL;
	/* 8-aligned and 8 long: a header never wraps */
	size = ((const struct perf_event_header *)(data + offset))->size;
	if (size < sizeof(struct perf_event_header) || (size & 7) || size > available)
		return NULL;
	first = min_u64(size, ring->data_size - offset);
	memcpy(ring->bounce, data + offset, first);
	memcpy((char *)ring->bounce + first, data, size - first);
	return ring->bounce;
}

int perf_ring__drain(struct perf_ring *ring, perf_record_fn record, void *context)
{
	struct perf_event_mmap_page *page = ring->page;
	uint64_t head, tail;
	int err = 0;

	if (!page)
		return 0;
	if (!ring->bounce) {
		ring->bounce = aligned_alloc(64, RECORD_SIZE_MAX);
		if (!ring->bounce)
			return -ENOMEM;
	}
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	tail = page->data_tail;
	if (head - tail > ring->data_size) {
		ring->damaged++;
		tail = head;
	}
	while (tail != head && !err) {
		struct perf_event_header *r = copy_record(ring, tail, head - tail);

		if (!r) {
			ring->damaged++;
			tail = head;
			break;
		}
		tail += r->size;
		err = record(context, r);
		/* early, so that a slow reader does not keep the kernel from writing */
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	return err;
}

size_t perf_ring__used(const struct perf_ring *ring)
{
	if (!ring->page)
		return 0;
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) - ring->page->data_tail;
}

/* ---- a sample and the pieces of its stack ---------------------------------------------------- */

#define PIECES_SIZE (STACK_PIECES * STACK_PIECE_MAX)

void stack_join__fini(struct stack_join *j)
{
	free(j->pieces);
	free(j->joined);
	*j = (struct stack_join){};
}

void stack_join__piece(struct stack_join *j, const struct stack_piece *piece)
{
	size_t size = piece->header.size > sizeof(*piece) ? piece->header.size - sizeof(*piece) : 0;

	if (!j->pieces)
		j->pieces = malloc(PIECES_SIZE);
	if (!j->joined)
		j->joined = malloc(EVENT_LIVE_MAX);
	if (!j->pieces || !j->joined)
		return;
	if (!j->size || piece->start != j->start + j->size || piece->header.time != j->time) {
		j->time = piece->header.time;
		j->start = piece->start;
		j->size = 0;
		j->holes = 0;
	}
	if (size > PIECES_SIZE - j->size)
		return;
	memcpy(j->pieces + j->size, piece->stack, size);
	j->holes |= piece->holes << (j->size / STACK_PAGE);
	j->size += size;
}

struct event_header *stack_join__sample(struct stack_join *j, struct event_header *sample)
{
	const struct sample_event *s = (const struct sample_event *)sample;
	size_t pieces = j->size, at;
	struct stack_copy *copy;

	j->size = 0;
	if (!pieces || j->time != sample->time || !(sample->flags & EVENT_STACK_COPY) ||
	    event_check(sample, sample->size))
		return sample;
	at = sizeof(*s) + ((size_t)s->kernel_frames + s->user_frames) * sizeof(s->frames[0]);
	copy = (struct stack_copy *)((char *)sample + at);
	at += sizeof(*copy) + copy->size;
	if (copy->start + copy->size != j->start || copy->size > STACK_PIECE_MAX + STACK_PAGE ||
	    at % EVENT_ALIGN || at + pieces > EVENT_LIVE_MAX)
		return sample;
	memcpy(j->joined, sample, at);
	memcpy((char *)j->joined + at, j->pieces, pieces);
	copy = (struct stack_copy *)((char *)j->joined + at - sizeof(*copy) - copy->size);
	copy->size += pieces;
	copy->holes |= j->holes << (j->start / STACK_PAGE - copy->start / STACK_PAGE);
	j->joined->size = at + pieces;
	return j->joined;
}
