/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Children of fork, until the collector has seen them: many end before. A child has its parent's
 * memory, so it is read like its parent: with the same words of runtimes, and by the same mappings.
 * Only for processes with a runtime; a fork of others costs one array lookup.
 *
 * An array, not a hash table: no tenant can exhaust it, and entries need not be removed. A later
 * child replaces an earlier one with the same low bits.
 */
#ifndef BPF_FORKED_BPF_H
#define BPF_FORKED_BPF_H

#include "maps.bpf.h"

#define FORK_BARRIER() asm volatile("" ::: "memory")

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RUNTIME_FORKS);
	__type(key, __u32);
	__type(value, struct runtime_fork);
} runtime_forks SEC(".maps");

/* Where a child of this number would be. */
static __always_inline struct runtime_fork *fork_slot(__u32 tgid)
{
	__u32 slot = tgid & (RUNTIME_FORKS - 1);

	return bpf_map_lookup_elem(&runtime_forks, &slot);
}

static __always_inline struct runtime_fork *fork_of(__u32 tgid)
{
	struct runtime_fork *fork = fork_slot(tgid);

	return fork && fork->tgid == tgid ? fork : NULL;
}

/* Has the process called execve since? */
static __always_inline bool has_executed(__u32 tgid, __u64 since)
{
	__u32 hash = unwind_hash(tgid);
	__u64 *exec = bpf_map_lookup_elem(&unwind_execs, &hash);

	return !exec || unwind_exec_is_after(*exec, tgid, since);
}

#endif
