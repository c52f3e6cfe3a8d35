/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts the ticks of a recorder's perf events that interrupt a softirq, by the kernel's tracepoints around each softirq
 * and around each timer. No time is compared: a hypervisor delivers timers late, and not equally late everywhere.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define CPUS_MAX 256
#define VECTORS	 16 /* the kernel has 10 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hrtimer {
	void *function;
};

struct hw_perf_event {
	struct hrtimer hrtimer; /* of an event that is a clock */
};

struct task_struct {
	int tgid;
	struct task_struct *real_parent;
};

struct perf_event {
	struct hw_perf_event hw;
	struct task_struct *owner;
};

#pragma clang attribute pop

extern const void perf_swevent_hrtimer __ksym;

int recorders_parent; /* in the initial pid namespace */

static struct cpu {
	__u64 served; /* 1 + the softirq that runs */
	__u64 unused[7];
} cpus[CPUS_MAX];

__u64 softirq_ticks[CPUS_MAX][VECTORS];

static __always_inline struct cpu *this_cpu(void)
{
	return &cpus[bpf_get_smp_processor_id() & (CPUS_MAX - 1)];
}

/* Run by the oracle itself. */
SEC("raw_tp")
int find_parent(void *ctx __attribute__((unused)))
{
	struct task_struct *self = (struct task_struct *)bpf_get_current_task();

	recorders_parent = BPF_CORE_READ(self, real_parent, tgid);
	return 0;
}

SEC("raw_tp/softirq_entry")
int enter_softirq(struct bpf_raw_tracepoint_args *ctx)
{
	this_cpu()->served = 1 + ctx->args[0];
	return 0;
}

SEC("raw_tp/softirq_exit")
int leave_softirq(void *ctx __attribute__((unused)))
{
	this_cpu()->served = 0;
	return 0;
}

SEC("raw_tp/hrtimer_expire_entry")
int expire(struct bpf_raw_tracepoint_args *ctx)
{
	struct hrtimer *timer = (struct hrtimer *)ctx->args[0];
	struct perf_event *event;
	__u64 served = this_cpu()->served;

	if (!served || BPF_CORE_READ(timer, function) != &perf_swevent_hrtimer)
		return 0;
	event = (void *)timer - bpf_core_field_offset(struct perf_event, hw.hrtimer);
	if (BPF_CORE_READ(event, owner, real_parent, tgid) == recorders_parent)
		softirq_ticks[bpf_get_smp_processor_id() & (CPUS_MAX - 1)]
			     [(served - 1) & (VECTORS - 1)]++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
