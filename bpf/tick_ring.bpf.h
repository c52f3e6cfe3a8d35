/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring of a CPU's ticks, see struct tick_ring. Only the tick that has set cpu_books.busy writes
 * to it: it needs no lock, and costs a copy where a perf ring costs some twenty calls.
 */
#ifndef BPF_TICK_RING_BPF_H
#define BPF_TICK_RING_BPF_H

#include "maps.bpf.h"
#include "wake.bpf.h"

#define ENOSPC 28
#define EINVAL 22

/* Appends an event of `size` bytes, a multiple of EVENT_ALIGN. 0; -ENOSPC: no room; -EINVAL. */
static __always_inline long put_event(const void *event, __u64 size, __u64 now)
{
	struct cpu_books *books = cpu_books(bpf_get_smp_processor_id());
	__u32 number = books ? books->ring : 0;
	struct tick_ring *ring = bpf_map_lookup_elem(&tick_rings, &number);
	__u64 head, used, at;

	if (!ring)
		return -EINVAL;
	head = ring->head;
	used = head + size - *(volatile __u64 *)&ring->tail;
	if (used > ring_size)
		return -ENOSPC;
	if (used == size)
		ring->origin = head;
	at = head - ring->origin;
	UNWIND_HIDE(at);
	at &= ring_size - EVENT_ALIGN;
	UNWIND_HIDE(size);
	if (size > TICK_RING_SLACK ||
	    bpf_probe_read_kernel((char *)ring + TICK_RING_DATA + at, size, event))
		return -EINVAL;
	/* x86 shows stores in their order */
	asm volatile("" ::: "memory");
	*(volatile __u64 *)&ring->head = head + size;
	if (used > ring_size / 2) {
		if (used - size <= ring_size / 2)
			wake_at_once(&tick_wakes, now);
		else
			wake_collector(&tick_wakes, now);
	}
	return 0;
}

#endif
