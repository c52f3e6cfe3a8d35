/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Return addresses that uretprobes have replaced by the address of a trampoline. The kernel keeps
 * the original ones, and where they were on the stack. They are put back into what was read of it.
 */
#ifndef SYSPROF_UNWIND_REPLACED_H
#define SYSPROF_UNWIND_REPLACED_H

#include <linux/types.h>

#define UNWIND_REPLACED_MAX 64u /* of one thread: the kernel's limit, MAX_URETPROBE_DEPTH */

struct unwind_replaced {
	__u64 trampoline; /* 0: none was replaced */
	__u64 next;	  /* of the kernel's list, while it is read */
	__u32 count;
	struct {
		__u64 at; /* on the stack */
		__u64 address;
	} of[UNWIND_REPLACED_MAX];
};

/* A stack pointer may be at any address. */
#ifdef __bpf__
typedef __u64 stack_word_u64;
#else
typedef __u64 __attribute__((aligned(1))) stack_word_u64;
#endif

/*
 * Puts number `i` back, if it is in the copy of `size` bytes of the stack from `start` on, which
 * begins `from` bytes into `bytes`, `room` bytes. A probed function that was left by longjmp() is
 * still listed, but another word may be in its place. Without branches, for the verifier.
 */
static __always_inline void unwind_put_back(const struct unwind_replaced *r, __u32 i, void *bytes,
					    __u64 room, __u64 from, __u64 size, __u64 start)
{
	stack_word_u64 *word;
	__u64 offset, is_in, is_replaced, other, is_there = ((__u64)i - r->count) >> 63;

	i &= UNWIND_REPLACED_MAX - 1;
	offset = r->of[i].at - start;
	is_in = ((offset - (size - (sizeof(*word) - 1))) & ~offset) >> 63;
	offset = from + (offset & -is_in);
	UNWIND_HIDE(offset);
	if (offset > room - sizeof(*word))
		return;
	word = (void *)((char *)bytes + offset);
	other = *word ^ r->trampoline;
	is_replaced = is_there & is_in & (((other - 1) & ~other) >> 63);
	UNWIND_HIDE(is_replaced);
	*word ^= (*word ^ r->of[i].address) & -is_replaced;
}

#endif
