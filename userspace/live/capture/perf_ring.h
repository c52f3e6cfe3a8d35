/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a perf event's mmapped ring. */
#ifndef LIVE_CAPTURE_PERF_RING_H
#define LIVE_CAPTURE_PERF_RING_H

#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

#include <sysprof/event.h>

struct perf_ring {
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	size_t data_size;		   /* a power of two */
	void *bounce;	  /* the record being read; 64 KB, made by the first drain */
	uint64_t damaged; /* times the ring made no sense and was skipped to its head */
};

/*
 * Map the ring of `fd` with `want` bytes of data (a power of two); where the kernel refuses for
 * want of locked memory, half of it, and so on down to `floor`. 0 or negative errno.
 */
int perf_ring__map(struct perf_ring *ring, int fd, size_t want, size_t floor);
/* NULL and unmapped are fine. */
void perf_ring__unmap(struct perf_ring *ring);

/*
 * Hand everything that is in the ring now to `record`, oldest first, and return: what comes in
 * meanwhile waits for the next call. The record is contiguous, 8-aligned, record->size bytes
 * long (at least a header), and may be written to. Space is given back to the kernel as records are
 * done. 0, or the first non-zero value of `record` (that record counts as read), or -ENOMEM.
 */
typedef int (*perf_record_fn)(void *context, struct perf_event_header *record);
int perf_ring__drain(struct perf_ring *ring, perf_record_fn record, void *context);

/* Bytes waiting. */
size_t perf_ring__used(const struct perf_ring *ring);

/* ---- a sample and the pieces of its stack ---------------------------------------------------- */

/*
 * Puts a sample and the pieces of its stack that came before it in the same ring together, into one
 * EVENT_SAMPLE of EVENT_LIVE_MAX bytes at most.
 */

/* Of one CPU; all zero at first. */
struct stack_join {
	__u64 time;  /* of the sample that `pieces` are of */
	__u64 start; /* of the stack that is in them */
	size_t size; /* 0: none */
	__u64 holes; /* pages of it that could not be read */
	unsigned char *pieces;
	struct event_header *joined;
};

void stack_join__fini(struct stack_join *j);

/* Adds a piece, in place of all if it does not follow on the last one. Left out without memory. */
void stack_join__piece(struct stack_join *j, const struct stack_piece *piece);

/*
 * The sample with the pieces that follow on its own copy, or else the sample itself; valid until
 * the next call. Other pieces are dropped: they were of a sample that found no room.
 */
struct event_header *stack_join__sample(struct stack_join *j, struct event_header *sample);

#endif
