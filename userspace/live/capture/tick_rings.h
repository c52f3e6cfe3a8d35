/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings that the ticks write to: one array of the kernel's, with an element per sampled CPU. */
#ifndef LIVE_CAPTURE_TICK_RINGS_H
#define LIVE_CAPTURE_TICK_RINGS_H

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
 * Creates the array with `want` bytes of data (a power of two) a ring; if the kernel refuses, half
 * of it, and so on to `least`; *size is the result. The map's descriptor or negative errno.
 */
int tick_rings__create(size_t count, size_t want, size_t least, size_t *size);

/* Map what was created. 0 or negative errno. */
int tick_rings__map(struct tick_rings *rings, int fd, size_t count, size_t data_size);
/* Not mapped is fine. */
void tick_rings__unmap(struct tick_rings *rings);

/* Passes the ring's events, oldest first. 0, or the first nonzero result; that event is read. */
typedef int (*tick_event_fn)(void *context, struct event_header *event);
int tick_rings__drain(struct tick_rings *rings, size_t number, tick_event_fn event, void *context);

/* Bytes that wait in the ring. */
size_t tick_rings__used(const struct tick_rings *rings, size_t number);

/* ---- how big rings are ----------------------------------------------------------------------- */

/*
 * The size of a CPU's rings: by what comes in, with a limit for all CPUs together.
 */
#define RING_BYTES_DEFAULT (64u << 20) /* of all CPUs and kinds of ring */

struct ring_needs {
	unsigned int hz;
	size_t record;	      /* bytes of the deepest sample, as it is in the ring */
	size_t cpus, sampled; /* online; sampled ones among them */
	size_t bytes;	      /* limit of the sum; 0: RING_BYTES_DEFAULT */
};

/*
 * Bytes, powers of two, whole pages of 4096. None is below a least size, which two of the largest
 * records need: with thousands of CPUs the sum can exceed the limit.
 */
struct ring_sizes {
	size_t sample;	 /* of a sampled CPU */
	size_t other;	 /* of each, for the hooks: the ends of threads */
	size_t sideband; /* of each */
	size_t sample_least;
};

struct ring_sizes ring_sizes_for(const struct ring_needs *needs);

#endif
