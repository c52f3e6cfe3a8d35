/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps a CPU in the interrupt of a timer. Nothing else runs there meanwhile, other timers are late, and the time counts for
 * the thread that was interrupted: as on a guest whose hypervisor has the CPU run somebody else.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#define STEPS_MAX (1u << 23) /* of bpf_loop */

const volatile __u64 longest; /* ns */

static long is_over(__u32 step __attribute__((unused)), __u64 *end)
{
	return bpf_ktime_get_ns() >= *end;
}

SEC("perf_event")
int stall(struct bpf_perf_event_data *ctx __attribute__((unused)))
{
	__u64 end = bpf_ktime_get_ns() + bpf_get_prandom_u32() % longest;

	bpf_loop(STEPS_MAX, is_over, &end, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
