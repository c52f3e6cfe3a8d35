/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data shared with the collector: knobs (fixed at load), maps and counters. */
#ifndef BPF_MAPS_BPF_H
#define BPF_MAPS_BPF_H

#include <stdbool.h>
#include <linux/bpf_perf_event.h>

#include <sysprof/bpf_shared.h>
#include <sysprof/event.h>
#include <sysprof/runtime_info.h>
#include <sysprof/unwind_state.h>

#include "helpers.h"
#include "kernel.h"

#define SEGMENT_LEAST	64   /* the size of a segment where there are no tables */
#define TICK_RING_LEAST 4096 /* the size of a ring, which is set when loading */

/* Knobs. Constants to the verifier: what they switch off is not even in the loaded program. */
const volatile bool filter_processes; /* only tgids in `targets` */
const volatile bool filter_threads;   /* only tids in `targets` */
const volatile bool follow_children;  /* children of `targets` are targets */
const volatile bool filter_cgroup;    /* only tasks below the cgroup in `cgroups` */
const volatile bool follow_groups; /* report control groups, leave out those in `excluded_groups` */
/* NAMED_BY_…: rules of this kind name targets, and exclude some */
const volatile __u32 include_kinds, exclude_kinds;
const volatile bool ends_of_sampled; /* threads without a sample end without a report */
const volatile bool exclude_self;    /* not the process that ran `prepare` */
const volatile bool kernel_stacks;
const volatile bool user_stacks;
const volatile bool use_tables; /* unwind by table where there is one */
const volatile bool use_tsc;
const volatile bool counts_events; /* the event is no clock: samples and books have its periods */
const volatile bool
	periods_begin;		 /* the kernel reports periods when they begin, not at their end */
const volatile __u32 code_bytes; /* of copied functions a CPU in CODE_COPIES_NS, or one more */
const volatile __u32 max_depth = 256;	  /* user frames */
const volatile __u32 pid_namespace_inode; /* the collector's pid namespace; 0: the initial one */
const volatile __u64 segment_size = SEGMENT_LEAST; /* of unwind tables, a power of two */
const volatile __u64 ring_size = TICK_RING_LEAST;  /* of a tick ring, a power of two */

/* Bytes of stacks copied a second on each CPU, or one copy more; 0: none. The collector sets it. */
volatile __u32 copied_a_second;

#define NO_ANCHOR  (~0ULL) /* of scratch.next_anchor: no frame runs a loop */
#define FRAMES_MAX (SAMPLE_KERNEL_DEPTH_MAX + SAMPLE_USER_DEPTH_MAX)

/* The maximum number of frames before a copy of the stack. */
#define COPY_FRAMES_MAX 256
#define COPY_AT_MAX	(sizeof(struct sample_event) + COPY_FRAMES_MAX * sizeof(__u64))
#define COPY_PAGE	STACK_PAGE
#define COPY_PAGES	(STACK_PIECE_MAX / COPY_PAGE)
#define SAMPLE_SPACE	(COPY_AT_MAX + sizeof(struct stack_copy) + STACK_PIECE_MAX + COPY_PAGE)

/*
 * One tick at a time runs on a CPU. The visitor sleeps, on any CPU, and is alone. Each frame that is
 * walked without a call costs the verifier some 1,500 instructions. A call costs a tick more than a
 * visit, which copies pages.
 */
#ifdef VISITOR
#define SCRATCH_MAP  BPF_MAP_TYPE_ARRAY
#define FRAMES_A_RUN 2
#else
#define SCRATCH_MAP  BPF_MAP_TYPE_PERCPU_ARRAY
#define FRAMES_A_RUN 4
#endif

/* The buffer for a sample, one per CPU. Used by the perf_event program alone. */
struct scratch {
	struct unwind_state unwind;
	__u64 copies_since;		 /* CLOCK_MONOTONIC: start of the second … */
	__u32 copied;			 /* … and bytes of stacks copied in it */
	__u16 in_system_call, is_fresh;	 /* as of the innermost frame */
	__u32 runtimes;			 /* RUNTIME_*: which notes are made */
	__u64 next_anchor;		 /* of an interpreter: frames below it run no loop of it */
	__u64 probes;			 /* of its thread: probes_of() */
	__u64 innermost[UNWIND_GENERAL]; /* its registers; the walk does not change them */
	struct pt_regs regs; /* the stack of a program and what it calls has 512 bytes */
#ifdef VISITOR
	struct visit_account visit; /* the event begins here */
#endif
	union {
		struct sample_event sample;
		char space[SAMPLE_SPACE];
	};
};
_Static_assert(SAMPLE_SPACE <= TICK_RING_SLACK, "the largest event");

struct {
	__uint(type, SCRATCH_MAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* The buffer for a piece of a stack: a per-CPU value has 32 KB at most. */
union piece_scratch {
	struct stack_piece piece;
	char space[sizeof(struct stack_piece) + STACK_PIECE_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, union piece_scratch);
} piece_scratches SEC(".maps");

/* By CPU; one entry for each possible one, set when loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_books);
} books SEC(".maps");

/*
 * The set of targets. The value is the start time of the task that the key stands for, 0 where it
 * is not known (added by the collector). Preallocated: this is used where nothing may be allocated.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u64);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} cgroups SEC(".maps");

/*
 * The control group of a process at its last tick, by a hash of its pid: processes that share a
 * slot are reported too often. `life` distinguishes processes with the same pid. 0: empty.
 */
struct group_slot {
	__u64 life, group;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUP_SLOTS);
	__type(key, __u32);
	__type(value, struct group_slot);
} group_slots SEC(".maps");

/*
 * Ids of groups whose ticks are filtered, added by the collector once it has checked their paths.
 * If the map is full, an older entry is evicted, and the collector drops that group's samples.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EXCLUDED_GROUPS);
	__type(key, __u64);
	__type(value, __u32);
} excluded_groups SEC(".maps");

/* ---- targets by name: see names.bpf.h ---- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NAME_GLOBS);
	__type(key, __u32);
	__type(value, struct name_glob);
} name_globs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NAME_USERS);
	__type(key, __u32);
	__type(value, __u32);
} name_users SEC(".maps");

/* By the collector. If the map is full, an older one is evicted, and asked for again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, NAME_VERDICTS);
	__type(key, struct name_key);
	__type(value, __u32);
} name_verdicts SEC(".maps");

/*
 * Threads whose ticks were filtered since their last sample, by the low bits of their number: the
 * number; 0: none; FILTERED_MANY: any of several, for good.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FILTERED_THREADS);
	__type(key, __u32);
	__type(value, __u32);
} filtered_threads SEC(".maps");

/* The tick events, by CPU; without ticks the CPU's side-band event, which is a clock as well. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} ticks SEC(".maps");

/* TSC counters, by CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} tsc_counters SEC(".maps");

/* Rings of the ticks. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* the number and their size are set when loading */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, TICK_RING_DATA + TICK_RING_LEAST + TICK_RING_SLACK);
} tick_rings SEC(".maps");

/* Rings of the hooks, by CPU: a tick may interrupt a hook. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} outputs SEC(".maps");

/* Rings that wake the collector: the tick's own, and that of the hooks. See wake.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} tick_wakes SEC(".maps"), hook_wakes SEC(".maps");

/* Unwind tables, see sysprof/unwind_table.h. Of full size only where tables are used. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_PROCESSES);
	__type(key, __u32);
	__type(value, __u64);
} unwind_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_TABLES);
	__type(key, __u32);
	__type(value, struct unwind_table);
} unwind_tables SEC(".maps");

/* The value of unwind_epoch when the table was last used. The kernel aligns values to 8 bytes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_TABLES);
	__type(key, __u32);
	__type(value, __u64);
} unwind_used SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, UNWIND_PLACES_SIZE);
} unwind_places SEC(".maps");

/* unwind_exec_word() of the last execve, by unwind_hash() of the process. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNWIND_PROCESSES);
	__type(key, __u32);
	__type(value, __u64);
} unwind_execs SEC(".maps");

/*
 * Sampled threads by the low bits of their number in the initial pid namespace: the number; 0:
 * none; SAMPLED_MANY: several threads with the same bits.
 */
#define SAMPLED_THREADS 65536u
#define SAMPLED_MANY	(~0u)
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLED_THREADS);
	__type(key, __u32);
	__type(value, __u32);
} sampled_threads SEC(".maps");

struct segment {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, SEGMENT_LEAST); /* segment_size, when loading */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_SEGMENTS);
	__uint(key_size, sizeof(__u32));
	__array(values, struct segment);
} unwind_segments SEC(".maps");

__u32 unwind_epoch;		  /* advanced by the collector */
__u32 any_excluded;		  /* `excluded_groups` may have entries; set by the collector */
__u32 name_serial;		  /* counts additions to `name_verdicts`; the collector's */
__u32 name_changes;		  /* … and changes of what was there */
__u64 wake_interval[WAKE_CAUSES]; /* least ns between two wakes; set by the collector */
__u32 execs_wake;		  /* the collector; set by it */
__u64 last_wake[WAKE_CAUSES];	  /* CLOCK_MONOTONIC ns */
__u32 held_tgid; /* becomes a target with its next execve, in the collector's numbers; 0: none */

/* Counters of the hooks, and what `prepare` found. */
__u64 target_set_full;	/* children that did not fit into `targets` */
__u64 hook_output_lost; /* EVENT_THREAD_CPU that did not fit into the ring */
__u32 self_tgid;	/* the collector, in the initial pid namespace */
__u32 cpu_time_source;	/* enum cpu_time_source */

static __always_inline struct cpu_books *cpu_books(__u32 cpu)
{
	return bpf_map_lookup_elem(&books, &cpu);
}

static __always_inline struct scratch *scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym __weak; /* 6.2 */

/*
 * The task, for reading only. Other pointers cost time at load: for each one that is loaded through
 * a known type, kernels from 6.4 on search all their types by name, some milliseconds each time.
 */
static __always_inline const struct task_struct *for_reading(const struct task_struct *task)
{
	if (HAVE_TYPED_TASK && bpf_rdonly_cast)
		return bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
	return task;
}

/*
 * The current task. From 5.11 on its fields are plain loads, because the verifier has its type;
 * before, a helper reads them. TASK_READ() takes what there is, decided at load.
 */
static __always_inline struct task_struct *current_task(void)
{
	if (HAVE_TYPED_TASK)
		return bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

#define TASK_READ(task, field) (HAVE_TYPED_TASK ? (task)->field : BPF_CORE_READ(task, field))

#endif
