/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Features of this kernel, one line each. libbpf fills in the answers when it loads the program;
 * one run (BPF_PROG_TEST_RUN) stores them.
 */
#include <stdbool.h>
#include <linux/perf_event.h>

#include "helpers.h"
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

bool typed_task;   /* bpf_get_current_task_btf(): fields of a task are plain loads */
bool task_pt_regs; /* bpf_task_pt_regs(): user registers of a task that is in the kernel */
bool bpf_loop_helper;
bool rq_clock; /* a task leads to its run queue (CONFIG_FAIR_GROUP_SCHED) */
bool ran;

SEC("raw_tp")
int probe(void *ctx __attribute__((unused)))
{
	typed_task = HAVE_TYPED_TASK;
	task_pt_regs = HAVE_TASK_PT_REGS;
	bpf_loop_helper = HAVE_LOOP;
	rq_clock = HAVE_RQ_CLOCK;
	ran = true;
	return 0;
}
