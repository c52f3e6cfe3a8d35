/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs and the collector agree on besides events (event.h) and unwind tables (unwind_table.h). */
#ifndef SYSPROF_BPF_SHARED_H
#define SYSPROF_BPF_SHARED_H

#include <linux/types.h>

/* Keys of `targets`: a number of the initial pid namespace, or of the collector's with this bit. */
#define TARGET_IN_NAMESPACE (1ULL << 32)

/* Bytes of a program's raw perf record in front of the event. */
#define OUTPUT_LEAD_SIZE 4u

/* The tracepoint of a fork, which is also tried where features are probed. */
#define HOOK_FORK "sched_process_fork"

/* By which clock the CPU time of a thread is brought up to date, see bpf/cputime.bpf.h. */
enum cpu_time_source {
	CPU_TIME_UNKNOWN,
	CPU_TIME_BY_RQ_CLOCK,
	CPU_TIME_BY_EXEC_START,
};

#endif
