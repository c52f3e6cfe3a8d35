/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waking the collector before its next drain is due: a target has called execve, a stack could not be walked for
 * want of mappings or tables, or a ring is half full. A record without content is put into a BPF ring buffer, which wakes the poller.
 *
 * The collector sets the interval between two wakes, because it measures what a drain costs.
 *
 * The tick may run in an NMI and has a ring of its own: on some kernels (6.15 to 6.18) an NMI that meets the
 * lock of a ring buffer on its own CPU freezes for a quarter of a second.
 */
#ifndef BPF_WAKE_BPF_H
#define BPF_WAKE_BPF_H

#include "maps.bpf.h"

static __always_inline void wake_at_once(void *ring, __u64 now)
{
	__u64 nothing = 0;

	last_wake = now;
	bpf_ringbuf_output(ring, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

static __always_inline void wake_collector(void *ring, __u64 now)
{
	/* CPUs may read and write it at the same time; the worst of it is a wake more */
	if ((__s64)(now - last_wake) >= (__s64)wake_interval)
		wake_at_once(ring, now);
}

#endif
