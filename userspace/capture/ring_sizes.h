/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How big the rings of a CPU are: by what comes in, and so that those of all CPUs together stay within a limit,
 * however many CPUs there are.
 */
#ifndef CAPTURE_RING_SIZES_H
#define CAPTURE_RING_SIZES_H

#include <stddef.h>

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
