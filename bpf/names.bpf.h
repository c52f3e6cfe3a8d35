/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Targets by name: is a process one by what it is now, its program's name and file, its user, its
 * control group, its service? Decided at its first tick and again when one of these has changed, so a process
 * counts from its first tick on, and a tick of any other costs a comparison.
 *
 * The kernel side has ids of groups and files only; the collector has the verdicts on them. While
 * one is missing, the process is sampled tentatively: it is reported, and the collector keeps the
 * samples or drops them. Its verdict counts for all processes of the group or file. That on a
 * service counts for the program in the process, in its group, and may change: name_changes.
 *
 * A process is its leader, but for the file: an ended leader has none, but its other threads do.
 */
#ifndef BPF_NAMES_BPF_H
#define BPF_NAMES_BPF_H

#include "maps.bpf.h"

#define filter_names	   (include_kinds || exclude_kinds)
#define is_compared(kind)  ((include_kinds | exclude_kinds) & (kind))
#define NAME_UNKNOWN_SHIFT 8	      /* kinds without a verdict, above the bits of a verdict */
#define NAME_LOST	   (1u << 31) /* the ring is full */
#define NAME_PART_MAX	   256
#define NAME_PARTS	   40 /* of a path, mounts included */
#define THREADS_TRIED	   4

struct named_process {
	__u64 started, exec_id, group, comm[2];
	__u32 tgid, uid;
};

/*
 * The verdict on a process, by its number: on each CPU, because there one tick at a time runs. A
 * hook only reads.
 */
struct name_slot {
	struct named_process of;
	__u32 serial, bits, changes;
};

struct {
	__uint(type, SCRATCH_MAP);
	__uint(max_entries, NAME_SLOTS);
	__type(key, __u32);
	__type(value, struct name_slot);
} name_slots SEC(".maps");

/* What is being decided. A tick that interrupts a hook decides on the same process. */
struct name_pending {
	struct named_process of;
	struct name_key exe;
	/* how far its path was read */
	const struct dentry *entry;
	const struct vfsmount *mount;
};

struct {
	__uint(type, SCRATCH_MAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name_pending);
} name_pendings SEC(".maps");

/* Sends a question to the collector. 0, or the ring is full. */
static __always_inline long send_question(const struct name_question_event *question, __u64 size);

/* What decides about the process of `task`, whose number is there. */
static __always_inline void read_named(const struct task_struct *task, struct named_process *n)
{
	const struct task_struct *leader;

	if (HAVE_TYPED_TASK) {
		leader = for_reading(task)->group_leader;
		n->started = leader->start_time;
		n->exec_id = leader->self_exec_id;
		if (is_compared(NAMED_BY_USER))
			n->uid = leader->real_cred->uid.val;
		if (is_compared(NAMED_BY_GROUP | NAMED_BY_SERVICE) && HAVE_GROUPS)
			n->group = leader->cgroups->dfl_cgrp->kn->id;
		if (is_compared(NAMED_BY_COMM)) {
			const __u64 *comm = (const __u64 *)leader->comm;

			n->comm[0] = comm[0];
			n->comm[1] = comm[1];
		}
	} else {
		leader = BPF_CORE_READ(task, group_leader);
		n->started = BPF_CORE_READ(leader, start_time);
		n->exec_id = BPF_CORE_READ(leader, self_exec_id);
		if (is_compared(NAMED_BY_USER))
			n->uid = BPF_CORE_READ(leader, real_cred, uid.val);
		if (is_compared(NAMED_BY_GROUP | NAMED_BY_SERVICE) && HAVE_GROUPS)
			n->group = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
		if (is_compared(NAMED_BY_COMM))
			BPF_CORE_READ_INTO(&n->comm, leader, comm);
	}
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* The verdict of some patterns on a name; -1: there are no more. A global function, verified once. */
__attribute__((noinline)) int match_glob(__u32 number, __u64 first, __u64 second)
{
	const struct name_glob *glob = bpf_map_lookup_elem(&name_globs, &number);
	__u64 words[2] = {first, second}, states, ended = 0;

	if (!glob || !glob->start)
		return -1;
	states = glob->start;
#pragma unroll
	for (__u32 i = 0; i < EVENT_COMM_SIZE - 1; i++)
		states = name_glob_step_comm(glob, states, words[i / 8] >> i % 8 * 8 & 0xff,
					     &ended);
	return (states & glob->include ? NAME_INCLUDED : 0) |
	       (states & glob->exclude ? NAME_EXCLUDED : 0);
}

static __always_inline __u32 match_comm(__u64 first, __u64 second)
{
	__u32 verdict = 0;

	for (__u32 i = 0; i < NAME_GLOBS; i++) {
		int some = match_glob(i, first, second);

		if (some < 0)
			break;
		verdict |= some;
	}
	return verdict;
}

/*
 * The memory of the process of `task`, which may have given it back already: then the first threads
 * of the process are tried. 0: these have, too.
 */
static __noinline __u64 memory_of(const struct task_struct *task)
{
	__u64 memory = (__u64)BPF_CORE_READ(task, mm);
	const struct signal_struct *process;
	const void *node, *head;

	if (memory || !HAVE_THREAD_LIST)
		return memory;
	process = BPF_CORE_READ(task, signal);
	head = (void *)process + bpf_core_field_offset(struct signal_struct, thread_head);
	node = BPF_CORE_READ(process, thread_head.next);
	for (int i = 0; i < THREADS_TRIED && node != head && !memory; i++) {
		const struct task_struct *thread = node - bpf_core_field_offset(struct task_struct,
										thread_node);

		memory = (__u64)BPF_CORE_READ(thread, mm);
		node = BPF_CORE_READ(thread, thread_node.next);
	}
	return memory;
}

/*
 * The names of a file and its directories, as a number: renaming one of them changes the key. A
 * global function, which is verified once.
 */
__attribute__((noinline)) int hash_path(void)
{
	__u32 zero = 0;
	struct name_pending *p = bpf_map_lookup_elem(&name_pendings, &zero);
	const struct dentry *entry, *parent;
	__u64 hash;

	if (!p)
		return 0;
	entry = (void *)p->exe.words[0];
	hash = BPF_CORE_READ(entry, d_name.hash_len);
	for (int i = 0; i < NAME_PARTS; i++) {
		parent = BPF_CORE_READ(entry, d_parent);
		if (!parent || parent == entry)
			break;
		hash = (hash << 7 | hash >> 57) ^ BPF_CORE_READ(parent, d_name.hash_len);
		entry = parent;
	}
	p->exe.words[3] = hash;
	return 0;
}

/* A kernel thread has no program: zeros. False: an ending process has given its memory back. */
static __always_inline bool read_exe(const struct task_struct *task, struct name_key *key)
{
	const struct mm_struct *memory;
	const struct dentry *entry;
	const struct file *file;

	*key = (struct name_key){.kind = NAMED_BY_EXE};
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return true;
	memory = (void *)memory_of(task);
	if (!memory)
		return false;
	file = BPF_CORE_READ(memory, exe_file);
	entry = BPF_CORE_READ(file, f_path.dentry);
	key->words[0] = (__u64)entry;
	key->words[1] = (__u64)BPF_CORE_READ(file, f_path.mnt);
	if (!is_compared(NAMED_BY_EXE))
		return true;
	key->words[2] = BPF_CORE_READ(entry, d_inode, i_ino);
	hash_path();
	return true;
}

static __always_inline __u32 look_up_verdict(const struct name_key *key)
{
	__u32 *verdict = bpf_map_lookup_elem(&name_verdicts, key);

	return verdict ? *verdict : (__u32)key->kind << NAME_UNKNOWN_SHIFT;
}

/* The verdict, and the kinds that may change it. */
static __always_inline __u32 decide_by_names(const struct name_pending *pending)
{
	const struct named_process *n = &pending->of;
	__u32 bits = 0, *verdict;
	struct name_key key;

	if (is_compared(NAMED_BY_COMM))
		bits |= match_comm(n->comm[0], n->comm[1]);
	if (is_compared(NAMED_BY_USER)) {
		verdict = bpf_map_lookup_elem(&name_users, &n->uid);
		bits |= verdict ? *verdict : 0;
	}
	if (is_compared(NAMED_BY_GROUP)) {
		key = (struct name_key){.kind = NAMED_BY_GROUP, .words = {n->group}};
		bits |= look_up_verdict(&key);
	}
	if (is_compared(NAMED_BY_EXE) && pending->exe.words[0])
		bits |= look_up_verdict(&pending->exe);
	if (is_compared(NAMED_BY_SERVICE)) {
		key = name_key_of_program(n->tgid, n->started, n->exec_id, n->group);
		bits |= look_up_verdict(&key);
	}
	if (bits & NAME_EXCLUDED)
		return NAME_EXCLUDED;
	if (bits & NAME_INCLUDED)
		bits &= NAME_INCLUDED | exclude_kinds << NAME_UNKNOWN_SHIFT;
	return bits;
}

/* ---- questions ------------------------------------------------------------------------------- */

/*
 * A step from a file towards the root of its mount namespace: the name of an entry, or out of a
 * mount. 0: there are more. A user can change none of what is read; entries that are renamed
 * meanwhile give a wrong name. A global function, which is verified once.
 */
__attribute__((noinline)) int read_path_part(void)
{
	__u32 zero = 0, in_mount = bpf_core_field_offset(struct mount, mnt), at;
	struct name_pending *p = bpf_map_lookup_elem(&name_pendings, &zero);
	const struct mount *outer, *mount;
	struct scratch *s = scratch();
	const struct dentry *entry, *parent;
	struct name_question_event *q;
	const struct vfsmount *in;
	long size;

	if (!p || !s)
		return -1;
	q = (void *)s->space;
	entry = p->entry;
	in = p->mount;
	if (entry == BPF_CORE_READ(in, mnt_root)) {
		mount = (void *)in - in_mount;
		outer = BPF_CORE_READ(mount, mnt_parent);
		q->is_cut = outer != mount;
		p->entry = BPF_CORE_READ(mount, mnt_mountpoint);
		p->mount = (void *)outer + in_mount;
		return !q->is_cut;
	}
	at = q->path_size;
	if (at > NAME_PATH_MAX - NAME_PART_MAX)
		return -1;
	size = bpf_probe_read_kernel_str(q->path + at, NAME_PART_MAX,
					 BPF_CORE_READ(entry, d_name.name));
	if (size <= 0)
		return -1;
	q->path_size = at + size;
	parent = BPF_CORE_READ(entry, d_parent);
	q->is_cut = parent != entry;
	p->entry = parent;
	return !q->is_cut;
}

/* 0, or the ring is full. */
static __always_inline long ask_by_names(struct name_pending *pending, __u32 bits, bool is_chosen,
					 __u64 now)
{
	const struct named_process *n = &pending->of;
	const struct name_key *exe = &pending->exe;
	struct scratch *s = scratch();
	struct name_question_event *q;
	__u64 size;

	if (!s)
		return -1;
	q = (void *)s->space;
	q->header.type = EVENT_NAME_QUESTION;
	q->header.flags = 0;
	q->header.time = now;
	q->tgid = n->tgid;
#ifdef VISITOR
	q->cpu = NAME_NO_CPU;
#else
	q->cpu = bpf_get_smp_processor_id();
#endif
	q->unknown = bits >> NAME_UNKNOWN_SHIFT;
	q->decided = is_chosen ? NAME_INCLUDED : bits & NAME_INCLUDED;
	q->group = n->group;
	q->started = n->started;
	q->exec_id = n->exec_id;
	q->path_size = 0;
	q->is_cut = 0;
#pragma unroll
	for (int i = 0; i < 4; i++)
		q->exe[i] = exe->words[i];
	pending->entry = (void *)exe->words[0];
	pending->mount = (void *)exe->words[1];
	if (q->unknown & (NAMED_BY_EXE | NAMED_BY_SERVICE) && exe->words[0])
		for (int i = 0; i < NAME_PARTS && !read_path_part(); i++)
			;
	size = (offsetof(struct name_question_event, path) + (__u64)q->path_size + EVENT_ALIGN -
		1) &
	       ~(__u64)(EVENT_ALIGN - 1);
	UNWIND_HIDE(size);
	if (size > sizeof(*q))
		return -1;
	q->header.size = size;
	return send_question(q, size);
}

/* Without kinds that cannot change the choice. Of the threads of a process some may be chosen. */
static __always_inline __u32 leave_what_matters(__u32 bits, bool is_chosen)
{
	if (is_chosen)
		return bits & (NAME_INCLUDED | NAME_EXCLUDED | exclude_kinds << NAME_UNKNOWN_SHIFT);
	if (!filter_threads && !(bits & NAME_INCLUDED) &&
	    !(bits >> NAME_UNKNOWN_SHIFT & include_kinds))
		return bits & NAME_EXCLUDED;
	return bits;
}

/*
 * Decides on what is pending. `now` 0: in a hook, which neither asks nor keeps the verdict. A global
 * function, which is verified once.
 */
__attribute__((noinline)) int decide_pending(__u32 slot_number, __u32 is_chosen, __u64 now)
{
	struct name_slot *slot = bpf_map_lookup_elem(&name_slots, &slot_number);
	__u32 changes = *(volatile __u32 *)&name_changes;
	__u32 serial = *(volatile __u32 *)&name_serial, bits, zero = 0;
	struct name_pending *pending = bpf_map_lookup_elem(&name_pendings, &zero);

	if (!pending || !slot)
		return 0;
	bits = leave_what_matters(decide_by_names(pending), is_chosen);
	if (!now)
		return bits;
	if (bits >> NAME_UNKNOWN_SHIFT && ask_by_names(pending, bits, is_chosen, now))
		return NAME_LOST;
	slot->of = pending->of;
	slot->serial = serial;
	slot->changes = changes;
	slot->bits = bits;
	return bits;
}

static __always_inline bool is_same_process(const struct named_process *a,
					    const struct named_process *b)
{
	return a->started == b->started && a->exec_id == b->exec_id && a->tgid == b->tgid;
}

/* The file of a process without memory is not known any more: its last verdict, if there is one. */
static __always_inline __u32 decide_without_exe(const struct named_process *n, __u32 slot_number,
						bool is_chosen)
{
	const struct name_slot *slot = bpf_map_lookup_elem(&name_slots, &slot_number);

	if (slot && is_same_process(&slot->of, n))
		return slot->bits;
	return decide_pending(slot_number, is_chosen, 0) & (NAME_INCLUDED | NAME_EXCLUDED);
}

static __always_inline __u32 decide_anew(const struct task_struct *task,
					 const struct named_process *n, __u32 slot_number,
					 bool is_chosen, __u64 now)
{
	__u32 zero = 0;
	struct name_pending *pending = bpf_map_lookup_elem(&name_pendings, &zero);

	if (!pending)
		return 0;
	pending->of = *n;
	if (is_compared(NAMED_BY_EXE | NAMED_BY_SERVICE) && !read_exe(task, &pending->exe) &&
	    is_compared(NAMED_BY_EXE))
		return decide_without_exe(n, slot_number, is_chosen);
	return decide_pending(slot_number, is_chosen, now);
}

static __always_inline bool is_decided(const struct name_slot *slot, const struct named_process *n)
{
	const struct named_process *of = &slot->of;

	return is_same_process(of, n) && of->group == n->group && of->comm[0] == n->comm[0] &&
	       of->comm[1] == n->comm[1] && of->uid == n->uid &&
	       (!is_compared(NAMED_BY_SERVICE) ||
		slot->changes == *(volatile __u32 *)&name_changes) &&
	       (!(slot->bits >> NAME_UNKNOWN_SHIFT) ||
		slot->serial == *(volatile __u32 *)&name_serial);
}

enum choice { CHOICE_OUT, CHOICE_IN, CHOICE_TENTATIVE, CHOICE_LOST };

/* `tgid`: in the collector's numbers; `is_chosen`: it is a target by other means than names. */
static __always_inline enum choice choose_by_names(struct task_struct *task, __u32 tgid,
						   bool is_chosen, __u64 now)
{
	__u32 number = name_slot_of(tgid), bits, unknown;
	struct named_process n = {.tgid = tgid};
	struct name_slot *slot;

	if (is_chosen && !exclude_kinds)
		return CHOICE_IN;
	slot = bpf_map_lookup_elem(&name_slots, &number);
	if (!slot)
		return CHOICE_OUT;
	read_named(task, &n);
	bits = is_decided(slot, &n) ? slot->bits : decide_anew(task, &n, number, is_chosen, now);
	if (bits & NAME_LOST)
		return CHOICE_LOST;
	if (bits & NAME_EXCLUDED)
		return CHOICE_OUT;
	unknown = bits >> NAME_UNKNOWN_SHIFT;
	if (!is_chosen && !(bits & NAME_INCLUDED))
		return unknown & include_kinds ? CHOICE_TENTATIVE : CHOICE_OUT;
	return unknown & exclude_kinds ? CHOICE_TENTATIVE : CHOICE_IN;
}

/* ---- CPU time -------------------------------------------------------------------------------- */

static __always_inline __u32 *filtered_thread(__u32 tid)
{
	__u32 slot = tid & (FILTERED_THREADS - 1);

	return bpf_map_lookup_elem(&filtered_threads, &slot);
}

/* A tick of the thread, by its number in the initial pid namespace, is filtered. */
static __always_inline void note_filtered(__u32 tid)
{
	__u32 *noted = filtered_thread(tid);

	if (noted && *noted != tid)
		*noted = *noted ? FILTERED_MANY : tid;
}

/* Was one since the last sample of the thread? */
static __always_inline bool has_filtered(__u32 tid)
{
	__u32 *noted = filtered_thread(tid);

	return noted && (*noted == tid || *noted == FILTERED_MANY);
}

static __always_inline void forget_filtered(__u32 tid)
{
	__u32 *noted = filtered_thread(tid);

	if (noted && *noted == tid)
		*noted = 0;
}

#endif
