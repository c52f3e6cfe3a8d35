/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings that the ticks write to: one array of the kernel's, with an element for each sampled CPU. */
#ifndef CAPTURE_TICK_RINGS_H
#define CAPTURE_TICK_RINGS_H

#include <stddef.h>

#include <sysprof/bpf_shared.h>
#include <sysprof/event.h>

struct tick_rings {
	unsigned char *memory; /* NULL: not mapped */
	size_t count;
	size_t data_size; /* of each, a power of two */
};

/* Bytes of one ring, with what is not data. */
static inline size_t tick_ring_bytes(size_t data_size)
{
	return TICK_RING_DATA + data_size + TICK_RING_SLACK;
}

/*
 * Creates the array with `want` bytes of data (a power of two) for each ring; where the kernel refuses so much, half of it,
 * and so on down to `least`. *size is the result. A descriptor of the map, or negative errno.
 */
int tick_rings__create(size_t count, size_t want, size_t least, size_t *size);

/* Map what was created. 0 or negative errno. */
int tick_rings__map(struct tick_rings *rings, int fd, size_t count, size_t data_size);
/* Not mapped is fine. */
void tick_rings__unmap(struct tick_rings *rings);

/* Passes what is in the ring now to `event`, oldest first. 0, or the first non-zero value of it (that event counts as read). */
typedef int (*tick_event_fn)(void *context, struct event_header *event);
int tick_rings__drain(struct tick_rings *rings, size_t number, tick_event_fn event, void *context);

/* Bytes that wait in the ring. */
size_t tick_rings__used(const struct tick_rings *rings, size_t number);

/* ---- how big rings are ------------------------------------------------------------------------ */

/*
 * How big the rings of a CPU are: by what comes in, and so that those of all CPUs together stay within a limit,
 * however many CPUs there are.
 */
#define RING_BYTES_DEFAULT (64u << 20) /* of all CPUs and kinds of ring */

struct ring_needs {
	unsigned int hz;
	size_t record;	      /* bytes of the deepest sample, as it is in the ring */
	size_t cpus, sampled; /* online; sampled ones among them */
	size_t bytes;	      /* limit of the sum; 0: RING_BYTES_DEFAULT */
};

/*
 * Bytes, powers of two, of whole pages of 4096. Below a least size, which two of the largest records need, nothing
 * goes: with thousands of CPUs the sum can be more than the limit.
 */
struct ring_sizes {
	size_t sample;	 /* of a sampled CPU */
	size_t other;	 /* of each, for the hooks: the ends of threads */
	size_t sideband; /* of each */
	size_t sample_least;
};

struct ring_sizes ring_sizes_for(const struct ring_needs *needs);

#endif
