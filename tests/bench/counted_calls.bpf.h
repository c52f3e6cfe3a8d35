/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts what the programs in the kernel call. Included before every line of bpf/ for build/counted/sysprof, which `make
 * bench` runs; counted-helpers.h is made of libbpf's list of helpers.
 *
 * The Makefile adds the lines that count calls to the assembly, at the beginning of each function: BPF functions that are not
 * inlined, and programs, also those that a tail call continues with. The counts are of ticks on one CPU, and not atomic.
 */
#ifndef COUNTED_CALLS_BPF_H
#define COUNTED_CALLS_BPF_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct {
	__u64 calls, helpers, samples;
} counted SEC(".data.counted");

#include "counted-helpers.h"

/* The kernel inlines these on x86-64 from 6.10 on, and they are not counted: look-ups in arrays, … */
#define LOOK_UP_IS_INLINED(map)                                                                    \
	(sizeof(*(map)->type) / sizeof(int) == BPF_MAP_TYPE_ARRAY ||                               \
	 sizeof(*(map)->type) / sizeof(int) == BPF_MAP_TYPE_PERCPU_ARRAY ||                        \
	 sizeof(*(map)->type) / sizeof(int) == BPF_MAP_TYPE_ARRAY_OF_MAPS)

#undef bpf_map_lookup_elem
#define bpf_map_lookup_elem(map, key)                                                              \
	(counted.helpers += !LOOK_UP_IS_INLINED(map), bpf_map_lookup_elem(map, key))
/* … and the number of the CPU. */
#undef bpf_get_smp_processor_id

/* Once in each sample. */
#undef bpf_perf_event_read_value
#define bpf_perf_event_read_value(...)                                                             \
	(counted.helpers++, counted.samples++, bpf_perf_event_read_value(__VA_ARGS__))

#endif
