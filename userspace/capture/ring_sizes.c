/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sample ring has room for two seconds of the deepest stacks, where there are enough bytes for that: rings are read
 * every 100 ms and when they are half full, so that is twenty times what comes in between, and most stacks are a tenth
 * as deep. A busy machine can keep the reader off its CPU for long: what is there is used. With more CPUs the share of
 * each shrinks; of 256 CPUs at 99 Hz it is still four times what the deepest stacks fill in 100 ms.
 *
 * Side-band records come in bursts (a linker's mappings, a storm of forks), and one that is lost does more harm than a
 * sample. So their ring has a quarter of a CPU's share, up to what no burst is known to fill.
 */
#include "capture/ring_sizes.h"

#include <sysprof/bpf_shared.h>

#include "base/minmax.h"
#include "capture/perf_events.h"

#define RING_SECONDS	2
#define PAGE_LEAST	4096u
#define SAMPLE_RING_MIN (256u * 1024)	   /* that is wished for */
#define SAMPLE_RING_MAX (8u * 1024 * 1024) /* the same */
#define SIDEBAND_RING	(512u * 1024)
#define SIDEBAND_LEAST	(2 * SIDEBAND_RECORD_MAX)
#define OTHER_RING	(256u * 1024)

/* The largest power of two that is not above `size`; PAGE_LEAST at least. */
static size_t power_below(uint64_t size)
{
	size_t power = PAGE_LEAST;

	while (power <= size / 2)
		power *= 2;
	return power;
}

static size_t power_above(uint64_t size)
{
	size_t power = PAGE_LEAST;

	while (power < size)
		power *= 2;
	return power;
}

static size_t clamp(size_t size, size_t least, size_t most)
{
	return min_u64(max_u64(size, least), most);
}

static size_t wanted_sample_ring(const struct ring_needs *n)
{
	uint64_t bytes = (uint64_t)n->hz * RING_SECONDS * n->record;

	return clamp(power_above(min_u64(bytes, SAMPLE_RING_MAX)), SAMPLE_RING_MIN,
		     SAMPLE_RING_MAX);
}

struct ring_sizes ring_sizes_for(const struct ring_needs *n)
{
	uint64_t bytes = n->bytes ? n->bytes : RING_BYTES_DEFAULT;
	uint64_t cpus = max_u64(n->cpus, 1), share = bytes / cpus, taken;
	struct ring_sizes sizes = {.sample_least = power_above(2 * n->record)};

	sizes.sideband = clamp(power_below(share / 4), SIDEBAND_LEAST, SIDEBAND_RING);
	sizes.other = clamp(power_below(share / 8), PAGE_LEAST, OTHER_RING);
	taken = cpus * (sizes.sideband + sizes.other) +
		n->sampled * (TICK_RING_DATA + TICK_RING_SLACK);
	share = bytes > taken ? (bytes - taken) / max_u64(n->sampled, 1) : 0;
	sizes.sample = max_u64(sizes.sample_least,
			       min_u64(wanted_sample_ring(n), power_below(share)));
	return sizes;
}
