/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of kernel structures that the programs read. libbpf fills in offsets from the running
 * kernel's BTF at load, so only names and kinds matter here.
 */
#ifndef BPF_KERNEL_H
#define BPF_KERNEL_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_iter_meta___own {
	__u64 seq_num;
};

struct rq {
	__u64 clock;	  /* local_clock() of this CPU, as of the scheduler's last look */
	__u64 clock_task; /* the same less interrupt and stolen time, where those are accounted */
};

struct cfs_rq {
	struct rq *rq;	    /* with CONFIG_FAIR_GROUP_SCHED */
	int throttle_count; /* with CONFIG_CFS_BANDWIDTH: of its own quota, and those above */
};

struct sched_entity {
	__u64 exec_start; /* rq.clock_task when sum_exec_runtime was last brought up to date */
	__u64 sum_exec_runtime;
	struct cfs_rq *cfs_rq; /* with CONFIG_FAIR_GROUP_SCHED; of the task's CPU, in any class */
};

struct ns_common {
	unsigned int inum;
};

struct idr {
	unsigned int idr_next; /* behind the last number that was given out */
};

struct pid_namespace {
	struct idr idr;
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 of them, the initial namespace's first */
};

struct xol_area {
	unsigned long vaddr; /* of the page [uprobes]: the trampoline, and slots for instructions */
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct return_instance {
	unsigned long stack; /* where the return address was */
	unsigned long orig_ret_vaddr;
	struct return_instance *next; /* of an outer function */
};

/* Of a thread that has hit an uprobe. */
struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr;	      /* of the instruction that is executed … */
	unsigned long xol_vaddr;      /* … as a copy in this slot … */
	struct uprobe *active_uprobe; /* … if there is one */
};

struct qstr {
	__u64 hash_len;
	const unsigned char *name;
};

struct inode {
	unsigned long i_ino;
};

struct dentry {
	struct dentry *d_parent; /* itself: the root of a file system, or no directory has it */
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent; /* itself: the root of a mount namespace */
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
};

struct mm_struct {
	struct file *exe_file;
	unsigned long start_code;	    /* 0 until execve has mapped the program */
	unsigned long env_end;		    /* a few strings below the top of the first stack */
	unsigned long stack_vm;		    /* pages of stacks that grow: of the first one */
	struct uprobes_state uprobes_state; /* with CONFIG_UPROBES */
	struct kioctx_table *ioctx_table;   /* with CONFIG_AIO */
};

struct thread_struct {
	unsigned long fsbase;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[0]; /* 6.1: by level, from the root to itself */
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid; /* in the initial user namespace */
};

struct css_set {
	struct cgroup *dfl_cgrp; /* in the unified hierarchy */
};

struct list_head {
	struct list_head *next;
};

/* Of a process. */
struct signal_struct {
	struct list_head thread_head; /* its threads, an ended leader first */
};

struct sched_info {
	unsigned long long run_delay;	 /* ns of waiting for a CPU, up to when it last got one */
	unsigned long long last_queued;	 /* start of its wait, by the run queue's clock; 0: none */
	unsigned long long last_arrival; /* when it last got a CPU, by the same clock */
};

struct task_struct {
	unsigned int __state; /* from 5.14 on */
	unsigned int flags;
	int on_cpu; /* not of this size in all kernels */
	int exit_state;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1; /* by its control group, or in a wait that counts as such */
	unsigned long jobctl;
	unsigned long nvcsw, nivcsw;  /* switches: its own, and others' */
	struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
	_Bool throttled;	      /* from 6.18 on, with CONFIG_CFS_BANDWIDTH */
	int prio;		      /* below 100: of another class than that of quotas */
	struct mm_struct *mm;	      /* NULL: it has given back its memory */
	void *stack;
	unsigned long blocker;	  /* from 6.16 on, with CONFIG_DETECT_HUNG_TASK_BLOCKER */
	struct mutex *blocked_on; /* from 6.17 on; before that for debugging, and of another type */
	struct sched_entity se;
	int pid, tgid;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct signal_struct *signal;
	struct list_head thread_node; /* in signal->thread_head */
	struct pid *thread_pid;
	struct uprobe_task *utask;	/* with CONFIG_UPROBES; NULL: it has hit none */
	struct io_uring_task *io_uring; /* with CONFIG_IO_URING; NULL: it has used none */
	struct cred *real_cred;		/* its own; `cred` may be another one's for a moment */
	__u64 start_time;
	__u64 self_exec_id;	 /* changes with each execve */
	struct css_set *cgroups; /* with CONFIG_CGROUPS */
	struct thread_struct thread;
	char comm[16];
};

typedef struct {
	__s64 counter;
} atomic64_t;

typedef atomic64_t atomic_long_t;

typedef struct {
	int counter;
} atomic_t;

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct xa_node {
	unsigned char shift; /* of the index: the bits of this level */
	unsigned char count; /* of slots in use */
	void *slots[64];     /* fewer with CONFIG_BASE_SMALL */
};

struct xarray {
	void *xa_head;
};

/* Its value is the sum. */
struct percpu_counter {
	__s64 count;
	int *counters; /* of each CPU */
};

/* A thread as a user of rings. */
struct io_uring_task {
	int cached_refs;
	const struct io_ring_ctx *last; /* that it has submitted to */
	struct xarray xa;		/* of its rings, by their addresses */
	struct percpu_counter inflight; /* operations, and cached_refs */
};

struct bpf_array {
	void *pptrs[0]; /* of a map with an element for each CPU */
};

struct io_hash_bucket {
	struct hlist_head list;
};

struct io_hash_table {
	struct io_hash_bucket *hbs;
	unsigned int hash_bits;
};

struct io_ring_ctx {
	struct io_hash_table cancel_table;	  /* polls that are armed */
	struct io_hash_table cancel_table_locked; /* 6.0 to 6.12: more of them */
	struct hlist_head cancelable_uring_cmd;	  /* from 6.7 on, as the next two */
	struct hlist_head waitid_list;
	struct hlist_head futex_list;
	struct list_head timeout_list;
	struct list_head defer_list; /* they wait for all before them */
};

struct io_kiocb {
	struct io_uring_task *tctx; /* from 6.13 on */
	struct hlist_node hash_node;
	struct io_kiocb *link; /* the next one of a chain */
};

struct io_kiocb___task {
	struct task_struct *task; /* before 6.13 */
};

/* An operation begins with it. */
struct io_timeout {
	struct list_head list;
};

struct kioctx {
	unsigned long user_id;
	int *cpu; /* of each CPU: operations that it may still begin */
	unsigned int nr_events;
	atomic_t reqs_available;
	struct list_head active_reqs; /* polls */
	unsigned int completed_events;
};

struct kioctx_table {
	unsigned int nr;
	struct kioctx *table[0];
};

struct mutex {
	atomic_long_t owner; /* without PREEMPT_RT */
	void *magic;	     /* with CONFIG_DEBUG_MUTEXES */
};

struct rw_semaphore {
	atomic_long_t owner;
};

/* 6.7: an iterator over tasks for loops */
struct bpf_iter_task___own {
	__u64 opaque[3];
} __attribute__((aligned(8)));

/* 6.4: over numbers */
struct bpf_iter_num___own {
	__u64 opaque[1];
} __attribute__((aligned(8)));

struct bpf_iter__task___own {
	struct bpf_iter_meta___own *meta;
	struct task_struct *task; /* NULL: there are no more */
};

#pragma clang attribute pop

/* Optional kernel features, resolved by libbpf at load: constants to the verifier. */
/* 5.11: fields of the current task are plain loads */
#define HAVE_TYPED_TASK bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)
/* 5.15: user registers of a task that is in the kernel */
#define HAVE_TASK_PT_REGS bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)
/* 5.17 */
#define HAVE_LOOP bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)
/* any, by configuration (CONFIG_FAIR_GROUP_SCHED): a task leads to its run queue */
#define HAVE_RQ_CLOCK                                                                              \
	(bpf_core_field_exists(struct sched_entity, cfs_rq) &&                                     \
	 bpf_core_field_exists(struct cfs_rq, rq))

/* any, by configuration (CONFIG_UPROBES) */
#define HAVE_UPROBES bpf_core_field_exists(struct task_struct, utask)
/* any, by configuration (CONFIG_CGROUPS) */
#define HAVE_GROUPS bpf_core_field_exists(struct task_struct, cgroups)

/* as long as the kernel has it: the threads of a process */
#define HAVE_THREAD_LIST                                                                           \
	(bpf_core_field_exists(struct task_struct, thread_node) &&                                 \
	 bpf_core_field_exists(struct signal_struct, thread_head))

#define TASK_STACK_SIZE 16384 /* of x86-64, without KASAN */

#define PF_VCPU		0x00000001
#define PF_IO_WORKER	0x00000010
#define PF_USER_WORKER	0x00004000
#define PF_EXITING	0x00000004
#define PF_FORKNOEXEC	0x00000040
#define PF_KTHREAD	0x00200000

#endif
