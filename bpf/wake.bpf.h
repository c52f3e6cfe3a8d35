/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waking the collector before its next drain is due: a target has called execve, a stack could not
 * be walked for lack of mappings or tables, or a ring is half full. A record with the cause goes
 * into a BPF ring buffer, which wakes the poller.
 *
 * The collector sets the interval between two wakes, because it measures what a drain costs. Root's
 * processes have an interval of their own, so those of users cannot keep the collector from them.
 *
 * The tick may run in an NMI and has a ring of its own: on some kernels (6.15 to 6.18) an NMI that
 * meets the lock of a ring buffer on its own CPU freezes for a quarter of a second.
 */
#ifndef BPF_WAKE_BPF_H
#define BPF_WAKE_BPF_H

#include "maps.bpf.h"

/* The real user, in the initial namespace. */
static __always_inline __u64 wake_cause(void)
{
	return (__u32)bpf_get_current_uid_gid() ? WAKE_BY_USERS : WAKE_BY_ROOT;
}

static __always_inline void wake_for(void *ring, __u64 now, __u64 cause)
{
	last_wake[cause] = now;
	bpf_ringbuf_output(ring, &cause, sizeof(cause), BPF_RB_FORCE_WAKEUP);
}

static __always_inline void wake_at_once(void *ring, __u64 now)
{
	wake_for(ring, now, wake_cause());
}

static __always_inline void wake_collector(void *ring, __u64 now)
{
	__u64 cause = wake_cause();

	/* CPUs may race here; the worst is one more wake */
	if ((__s64)(now - last_wake[cause]) >= (__s64)wake_interval[cause])
		wake_for(ring, now, cause);
}

#endif
