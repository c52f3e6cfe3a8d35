/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What it costs to put work off until the thread returns to user space, where it may sleep: from each
 * tick work is scheduled that reads 256 bytes of the stack. One slot a CPU: while a thread that has
 * not returned yet holds it, scheduling is refused.
 */
/* The kernel finds this field of a map by its type's name, without a suffix, and newer headers have that type, too. */
#define bpf_task_work bpf_task_work_of_headers
#include <linux/bpf.h>
#undef bpf_task_work
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

/* Kinds are compared with the kernel's, members are not. */
struct task_struct {
	int unused;
};

struct bpf_map {
	int unused;
};

struct bpf_task_work {
	__u64 opaque;
} __attribute__((aligned(8)));

typedef int (*bpf_task_work_callback_t)(struct bpf_map *, void *, void *);

/* Linux 6.18; 7.0 renamed it. */
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw,
					      void *map__map, bpf_task_work_callback_t callback,
					      void *aux__prog) __ksym;

struct slot {
	struct bpf_task_work work;
	__u64 scheduled, stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

__u64 scheduled, refused, ran;
__u64 schedule_ns, wait_ns, read_ns; /* sums */

static int on_resume(struct bpf_map *map __attribute__((unused)), void *key __attribute__((unused)),
		     void *value)
{
	__u64 now = bpf_ktime_get_ns();
	struct slot *slot = value;
	char bytes[256];

	__sync_fetch_and_add(&ran, 1);
	__sync_fetch_and_add(&wait_ns, now - slot->scheduled);
	bpf_copy_from_user(bytes, sizeof(bytes), (void *)slot->stack);
	__sync_fetch_and_add(&read_ns, bpf_ktime_get_ns() - now);
	return 0;
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id() & 1023;
	struct slot *slot;
	__u64 begin, cost;
	int err;

	if (!(__u32)bpf_get_current_pid_tgid() || (ctx->regs.cs & 3) != 3)
		return 0;
	slot = bpf_map_lookup_elem(&slots, &cpu);
	if (!slot)
		return 0;
	slot->scheduled = begin = bpf_ktime_get_ns();
	slot->stack = ctx->regs.rsp;
	err = bpf_task_work_schedule_resume_impl(bpf_get_current_task_btf(), &slot->work, &slots,
						 on_resume, 0);
	cost = bpf_ktime_get_ns() - begin;
	if (err) {
		__sync_fetch_and_add(&refused, 1);
		return 0;
	}
	__sync_fetch_and_add(&scheduled, 1);
	__sync_fetch_and_add(&schedule_ns, cost);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
