/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Definitions shared by the eBPF programs and the collector, besides events (event.h) and unwind tables (unwind_table.h). */
#ifndef SYSPROF_BPF_SHARED_H
#define SYSPROF_BPF_SHARED_H

#include <linux/types.h>

/* Keys of `targets`: a pid of the initial pid namespace or, with this bit, of the collector's. */
#define TARGET_IN_NAMESPACE (1ULL << 32)

/* Bytes before the event in a program's raw perf record. */
#define OUTPUT_LEAD_SIZE 4u

/* Control groups in the kernel: entries by process, and entries of excluded groups. */
#define GROUP_SLOTS	16384u /* a power of two */
#define EXCLUDED_GROUPS 8192u

/* The tracepoint of a fork; the feature probe attaches to it as well. */
#define HOOK_FORK "sched_process_fork"

/* The clock that brings a thread's CPU time up to date, see bpf/cputime.bpf.h. */
enum cpu_time_source {
	CPU_TIME_UNKNOWN,
	CPU_TIME_BY_RQ_CLOCK,
	CPU_TIME_BY_EXEC_START,
};

#endif
