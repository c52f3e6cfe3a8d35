/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program stores the head after the events below it, and never writes more than a ring above
 * the tail. Events are passed where they are: none wraps, because the last one reaches into the
 * slack. The receiver may write to them.
 */
#include "live/capture/tick_rings.h"

#include <errno.h>
#include <sys/mman.h>

#include <bpf/bpf.h>

#include "base/minmax.h"
#include "live/capture/perf_events.h"

int tick_rings__create(size_t count, size_t want, size_t least, size_t *size)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd = -ENOMEM;

	/* E2BIG: a value has 4 MB at most before Linux 6.0; EPERM: locked memory, before 5.11 */
	for (*size = want; *size >= least; *size /= 2) {
		fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tick_rings", sizeof(uint32_t),
				    tick_ring_bytes(*size), count, &options);
		if (fd != -E2BIG && fd != -ENOMEM && fd != -EPERM)
			break;
	}
	return fd;
}

int tick_rings__map(struct tick_rings *rings, int fd, size_t count, size_t data_size)
{
	void *memory = mmap(NULL, count * tick_ring_bytes(data_size), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	*rings = (struct tick_rings){.memory = memory, .count = count, .data_size = data_size};
	return 0;
}

void tick_rings__unmap(struct tick_rings *rings)
{
	if (rings->memory)
		munmap(rings->memory, rings->count * tick_ring_bytes(rings->data_size));
	*rings = (struct tick_rings){};
}

static struct tick_ring *ring_at(const struct tick_rings *rings, size_t number)
{
	return (struct tick_ring *)(rings->memory + number * tick_ring_bytes(rings->data_size));
}

/* The event at `at`, with `available` bytes before the head. NULL: it is invalid. */
static struct event_header *event_at(const struct tick_rings *rings, struct tick_ring *ring,
				     uint64_t at, uint64_t available)
{
	struct event_header *event =
		(struct event_header *)((unsigned char *)ring + TICK_RING_DATA +
					((at - ring->origin) & (rings->data_size - 1)));

	if (event->size < sizeof(*event) || event->size % EVENT_ALIGN || event->size > available ||
	    event->size > TICK_RING_SLACK)
		return NULL;
	return event;
}

int tick_rings__drain(struct tick_rings *rings, size_t number, tick_event_fn event, void *context)
{
	struct tick_ring *ring = ring_at(rings, number);
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;
	int err = 0;

	while (tail != head && !err) {
		struct event_header *next = event_at(rings, ring, tail, head - tail);

		tail = next ? tail + next->size : head;
		err = next ? event(context, next) : 0;
		/* early, so that a slow reader does not keep the program from writing */
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	return err;
}

size_t tick_rings__used(const struct tick_rings *rings, size_t number)
{
	const struct tick_ring *ring = ring_at(rings, number);

	return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - ring->tail;
}

/* ---- how big rings are ----------------------------------------------------------------------- */

/*
 * A sample ring has room for two seconds of the deepest stacks, if there are enough bytes. Rings
 * are read every 100 ms and when half full, so that is twenty times what comes in between, and most
 * stacks are a tenth as deep. A busy machine can keep the reader off its CPU for long. More CPUs
 * have less each: 256 at 99 Hz still four times what the deepest stacks fill in 100 ms.
 *
 * Side-band records come in bursts (a linker's mappings, many forks), and losing one does more harm
 * than losing a sample. Their ring has a quarter of a CPU's share, up to what no known burst fills.
 */
#define RING_SECONDS	2
#define PAGE_LEAST	4096u
#define SAMPLE_RING_MIN (256u * 1024)	   /* that is requested */
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
