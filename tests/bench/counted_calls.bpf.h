/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts what a tick calls. Included before every line of bpf/ for build/counted/sysprof, which `make bench` and
 * tests/e2e/tick_calls.py run; counted-helpers.h is made of libbpf's list of helpers.
 *
 * count-calls.awk adds what counts functions: those of BPF that are not inlined, and programs that a tail call continues with.
 * Ticks without a sample count apart, and hooks do not, so no host changes the figures. Ticks are to be on one CPU: nothing is
 * atomic.
 */
#ifndef COUNTED_CALLS_BPF_H
#define COUNTED_CALLS_BPF_H

#include <stdbool.h>
#include "../../bpf/helpers.h"

/* The ticks'; the hooks'. No name, or it would be missing in the skeleton. */
struct {
	__u64 calls, helpers, samples;		   /* of all samples but the last */
	__u64 tick_calls, tick_helpers, is_sample; /* of this tick */
	__u64 other_helpers, others;		   /* of all other ticks */
} counted SEC(".data.counted"), elsewhere SEC(".data.elsewhere");

#include "counted-helpers.h"

/* The kernel inlines these on x86-64 from 6.10 on, and they are not counted: look-ups in arrays, … */
#define LOOK_UP_IS_INLINED(map)                                                                    \
	(sizeof(*(map)->type) / sizeof(int) == BPF_MAP_TYPE_ARRAY ||                               \
	 sizeof(*(map)->type) / sizeof(int) == BPF_MAP_TYPE_PERCPU_ARRAY ||                        \
	 sizeof(*(map)->type) / sizeof(int) == BPF_MAP_TYPE_ARRAY_OF_MAPS)

#undef bpf_map_lookup_elem
#define bpf_map_lookup_elem(map, key)                                                              \
	(counted.tick_helpers += !LOOK_UP_IS_INLINED(map), bpf_map_lookup_elem(map, key))
/* … and the number of the CPU. */
#undef bpf_get_smp_processor_id

/* Each sample has one of these, and no other tick. */
#undef bpf_perf_event_read_value
#define bpf_perf_event_read_value(...)                                                             \
	(counted.tick_helpers++, counted.is_sample = 1, bpf_perf_event_read_value(__VA_ARGS__))

#endif
