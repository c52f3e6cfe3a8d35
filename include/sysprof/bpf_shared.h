/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Definitions shared by the eBPF programs and the collector, besides events (event.h) and unwind tables (unwind_table.h). */
#ifndef SYSPROF_BPF_SHARED_H
#define SYSPROF_BPF_SHARED_H

#include <linux/types.h>

/* Keys of `targets`: a pid of the initial pid namespace or, with this bit, of the collector's. */
#define TARGET_IN_NAMESPACE (1ULL << 32)

/* Bytes before the event in a hook's raw perf record. */
#define OUTPUT_LEAD_SIZE 4u

/*
 * What the ticks of a sampled CPU write: an element of one array that the kernel shares with the collector. Events follow each
 * other from TICK_RING_DATA on. Positions are bytes since the start. An event begins where its position is from the origin,
 * modulo the ring's size, and the last one before the end reaches into the slack behind it. When the ring is empty the
 * program moves the origin to the head: so mostly the same few pages are used, which are in the CPU's caches.
 */
struct tick_ring {
	__u64 head;   /* up to here events are whole; the program's, as the origin */
	__u64 origin; /* changes only while the ring is empty */
	__u64 unused[14];
	__u64 tail; /* up to here they were read; the collector's */
};
#define TICK_RING_DATA	256u
#define TICK_RING_SLACK (23u * 1024) /* the largest event */

/* Control groups in the kernel: entries by process, and entries of excluded groups. */
#define GROUP_SLOTS	16384u /* a power of two */
#define EXCLUDED_GROUPS 8192u

/* The tracepoint of a fork; the feature probe attaches to it as well. */
#define HOOK_FORK "sched_process_fork"

/* Whose process wakes the collector, see bpf/wake.bpf.h. */
enum wake_cause { WAKE_BY_ROOT, WAKE_BY_USERS, WAKE_CAUSES };

/* The clock that brings a thread's CPU time up to date, see bpf/cputime.bpf.h. */
enum cpu_time_source {
	CPU_TIME_UNKNOWN,
	CPU_TIME_BY_RQ_CLOCK,
	CPU_TIME_BY_EXEC_START,
};

#endif
