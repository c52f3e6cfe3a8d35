/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Handing events to the collector: perf rings, one per CPU, which a program writes to without a
 * lock and without waking anyone until the ring is half full.
 */
#ifndef BPF_EMIT_BPF_H
#define BPF_EMIT_BPF_H

#include <linux/bpf_perf_event.h>

#include "maps.bpf.h"

/* Errors of bpf_perf_event_output() */
#define ENOSPC 28

/* What became of the sample in scratch. */
static __always_inline enum book_line emit_sample(struct bpf_perf_event_data *ctx,
						  struct scratch *s)
{
	__u64 frames = (__u64)s->sample.kernel_frames + s->sample.user_frames;
	__u64 size;
	long err;

	if (frames > FRAMES_MAX)
		return BOOK_INTERNAL;
	size = sizeof(struct sample_event) + frames * sizeof(__u64);
	s->sample.header.size = size;
	err = bpf_perf_event_output(ctx, &outputs, BPF_F_CURRENT_CPU, &s->lead,
				    sizeof(s->lead) + size);
	if (err)
		return err == -ENOSPC ? BOOK_RING_FULL : BOOK_INTERNAL;
	return BOOK_DELIVERED;
}

/* The last CPU time of a thread that ends. */
static __always_inline void emit_thread_cpu(void *ctx, __u32 tgid, __u32 tid, __u64 cpu_time)
{
	struct {
		__u32 unused, lead;
		struct thread_cpu_event event;
	} out = {
		.event =
			{
				.header =
					{
						.size = sizeof(out.event),
						.type = EVENT_THREAD_CPU,
						.flags = EVENT_EXITED,
						.time = bpf_ktime_get_ns(),
					},
				.tgid = tgid,
				.tid = tid,
				.cpu_time = cpu_time,
			},
	};

	if (bpf_perf_event_output(ctx, &outputs, BPF_F_CURRENT_CPU, &out.lead,
				  sizeof(out.lead) + sizeof(out.event)))
		__sync_fetch_and_add(&hook_output_lost, 1);
}

#endif
