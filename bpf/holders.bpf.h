/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Holders of locks: which thread has the lock that the visited thread waits for? Mutexes of glibc
 * and musl, CPython's GIL, and mutexes and rwsems of the kernel.
 */
#ifndef BPF_HOLDERS_BPF_H
#define BPF_HOLDERS_BPF_H

#include "filter.bpf.h"
#include "memory.bpf.h"

#define NR_FUTEX	202
#define FUTEX_WAIT	0
#define FUTEX_LOCK_PI	6
#define FUTEX_LOCK_PI2	13
#define FUTEX_FLAGS	(128ull | 256ull) /* private, by the wall clock */
#define FUTEX_TID	0x3fffffffu
#define MUTEX_CONTENDED 2u     /* glibc's lock word */
#define MUTEX_KINDS	0x3ffu /* all flags of a mutex's kind */

/* musl's mutex: its kind, the word that threads wait for, how many wait */
#define MUSL_CONTENDED 0x80000000u
#define MUSL_KINDS     0x8fu
#define MUSL_OWNED     0x0fu /* other kinds than the normal one have their owner */
#define MUSL_WAITERS   65536u

/* CPython's GIL: its condition variable, behind its holder */
#define GIL_CONDITION	    24u
#define GIL_CONDITION_BYTES 48u

/* task_struct.blocker: which lock it is, in the low bits of its address */
#define BLOCKER_MUTEX	  0u
#define BLOCKER_SEMAPHORE 1u
#define BLOCKER_KINDS	  3u
#define OWNER_FLAGS	  7ul
#define MUTEX_HANDED_OVER 4ul /* to a thread that does not have it yet */
#define RWSEM_HAS_READERS 1ul /* its owner is a reader, or was one */

/* Are the thread numbers in its program's memory those of the collector's pid namespace? */
static __always_inline bool has_our_numbers(struct task_struct *task)
{
	const struct pid *pid = for_reading(task)->thread_pid;
	const void *number = pid;
	__u32 level;

	if (!pid)
		return false;
	level = pid->level;
	if (!pid_namespace_inode)
		return !level;
	number += bpf_core_field_offset(pid->numbers) +
		  (__u64)level * bpf_core_type_size(struct upid);
	return BPF_CORE_READ((const struct upid *)number, ns, ns.inum) == pid_namespace_inode;
}

static __always_inline __u32 glibc_holder(__u64 address)
{
	struct {
		__u32 word, count, owner, users, kind;
	} mutex = {};

	if (read_user(&mutex, sizeof(mutex), address))
		return 0;
	return mutex.word == MUTEX_CONTENDED && mutex.users && !(mutex.kind & ~MUTEX_KINDS)
		       ? mutex.owner
		       : 0;
}

static __always_inline __u32 musl_holder(__u64 address)
{
	struct {
		__u32 kind, word, waiters;
	} mutex = {};

	if (read_user(&mutex, sizeof(mutex), address - sizeof(mutex.kind)))
		return 0;
	return mutex.word & MUSL_CONTENDED && mutex.kind & MUSL_OWNED &&
			       !(mutex.kind & ~MUSL_KINDS) && mutex.waiters &&
			       mutex.waiters < MUSL_WAITERS
		       ? mutex.word & FUTEX_TID
		       : 0;
}

/*
 * A mutex of glibc has its owner behind the word that threads wait for; one of musl, or with
 * priority inheritance, has it in the word. Anything else is no mutex. It is the program's memory:
 * the recorder checks that the process has such a thread.
 */
static __always_inline __u32 mutex_holder(const struct pt_regs *regs)
{
	__u64 operation = regs->rsi & ~FUTEX_FLAGS;
	__u32 word;

	if (regs->orig_rax != NR_FUTEX)
		return 0;
	if (operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2)
		return read_user(&word, sizeof(word), regs->rdi) ? 0 : word & FUTEX_TID;
	if (operation != FUTEX_WAIT)
		return 0;
	if ((__u32)regs->rdx == MUTEX_CONTENDED)
		return glibc_holder(regs->rdi);
	return (__u32)regs->rdx & MUSL_CONTENDED ? musl_holder(regs->rdi) : 0;
}

/*
 * A thread that waits for the GIL waits at the condition variable within it. Its holder is a thread
 * state, which has the number of its thread. The holder stays there after a release: so the GIL
 * must be locked, and from 3.14 on the state must say that it holds it.
 */
static __always_inline __u32 gil_holder(const struct runtime_python *python,
					const struct pt_regs *regs)
{
	struct {
		__u64 holder;
		__u32 locked, unused;
	} gil;
	__u64 number;
	__u32 holds = 1;

	if (regs->orig_rax != NR_FUTEX || !python->gil ||
	    regs->rdi - python->gil - GIL_CONDITION >= GIL_CONDITION_BYTES)
		return 0;
	if (read_user(&gil, sizeof(gil), python->gil) || gil.locked != 1 ||
	    read_word(gil.holder + python->state_number, &number) || number > FUTEX_TID)
		return 0;
	if (python->state_holds != RUNTIME_NONE &&
	    read_user(&holds, sizeof(holds), gil.holder + python->state_holds))
		return 0;
	return holds ? number : 0;
}

/* The kernel lock that the task waits for, with its kind; 0: none, or unknown. */
static __always_inline __u64 kernel_lock(struct task_struct *task)
{
	if (bpf_core_field_exists(task->blocker))
		return task->blocker;
	if (bpf_core_field_exists(task->blocked_on) &&
	    !bpf_core_field_exists(((struct mutex *)0)->magic))
		return (__u64)for_reading(task)->blocked_on | BLOCKER_MUTEX;
	return 0;
}

/* The task that has it; 0: unknown. */
static __always_inline __u64 owner_of(__u64 lock)
{
	__u64 kind = lock & BLOCKER_KINDS, owner = 0;

	lock -= kind;
	if (kind == BLOCKER_SEMAPHORE)
		return 0;
	if (kind != BLOCKER_MUTEX) {
		owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
		return owner & RWSEM_HAS_READERS ? 0 : owner & ~OWNER_FLAGS;
	}
	if (bpf_core_field_exists(((struct mutex *)0)->owner))
		owner = BPF_CORE_READ((struct mutex *)lock, owner.counter);
	return owner & MUTEX_HANDED_OVER ? 0 : owner & ~OWNER_FLAGS;
}

/* By the owner's number, because it may have released the lock and ended meanwhile. */
static __always_inline void take_kernel_lock(struct task_struct *task, struct visit_account *v)
{
	__u64 lock = kernel_lock(task), owner;
	struct task_struct *holder;
	struct task_ids ids = {};

	if (!lock)
		return;
	v->found |= VISIT_LOCK;
	owner = owner_of(lock);
	if (!owner)
		return;
	holder = bpf_task_from_pid(BPF_CORE_READ((struct task_struct *)owner, pid));
	if (!holder)
		return;
	if ((__u64)holder == owner && collector_ids(holder, &ids))
		v->holder = ids.tid;
	bpf_task_release(holder);
}

#endif
