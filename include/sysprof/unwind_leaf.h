/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The innermost function of JIT code, if it has no frame: it was just entered, or is about to
 * return. The frame pointer is then its caller's, and following it would skip the caller. The
 * instructions decide. Part of unwind_walk.h.
 *
 * V8's functions begin at a multiple of 64 bytes and read some words before they make their frame.
 * They end with a return that pops their arguments; if more were passed than declared, the return
 * address is moved first.
 */
#ifndef SYSPROF_UNWIND_LEAF_H
#define SYSPROF_UNWIND_LEAF_H

#include <sysprof/unwind_state.h>

#define UNWIND_ENTRY_BYTES 64u
#define UNWIND_ENTRY_WORDS (UNWIND_ENTRY_BYTES / 8)

#define UNWIND_LEAF_WORDS  16u /* the words that identify a function of V8 */

#define UNWIND_PUSH_MOV	   0xe5894855u /* push %rbp; mov %rsp,%rbp, and … */
#define UNWIND_PUSH_MOV_2  0xec8b4855u /* … the other way to write it */

#define UNWIND_CALL_MASK   0x00ffff00000000ffull
#define UNWIND_CALL_ENTRY  0x00bc4900000000bbull
#define UNWIND_EMPTY_ENTRY 0xbc49db33u
#define UNWIND_CALL_AT	   15u
#define UNWIND_CALL_EMPTY  12u
#define UNWIND_CALL_SIZE   5u

/* The frame that the words beside the frame pointer belong to. */
enum unwind_leaf {
	UNWIND_LEAF_IN_FRAME, /* the innermost function's, if any */
	UNWIND_LEAF_ENTERED,  /* not yet: its frame is not complete */
	UNWIND_LEAF_LEFT,     /* no longer: they are beside unwind_state.left */
	UNWIND_LEAF_MOVED,    /* nor are they anywhere */
};

/*
 * One bit for each byte of `word` at which a function makes its frame; `next` has the bytes behind.
 */
static __always_inline __u64 unwind_frames_made(__u64 word, __u64 next)
{
	__u64 made = 0;

#pragma GCC unroll 8
	for (int i = 0; i < 8; i++) {
		__u64 four = (i ? word >> 8 * i | next << (64 - 8 * i) : word) & 0xffffffff;

		/* 1 if they are equal, without a branch */
		made |= (((four ^ UNWIND_PUSH_MOV) - 1) >> 63 |
			 ((four ^ UNWIND_PUSH_MOV_2) - 1) >> 63)
			<< i;
	}
	return made;
}

/*
 * A bit for the call by which V8's baseline code has a builtin make its frame, if it begins with
 * these words: mov $SIZE,%ebx, or xor %ebx,%ebx for a frame without registers; mov
 * $BYTECODES,%r12; call.
 */
static __always_inline __u64 unwind_entry_calls(__u64 first, __u64 second)
{
	__u64 sized = (first & UNWIND_CALL_MASK) ^ UNWIND_CALL_ENTRY;
	__u64 empty = (first & 0xffffffff) ^ UNWIND_EMPTY_ENTRY;

	return ((sized | (second >> 56 ^ 0xe8)) - 1) >> 63 << UNWIND_CALL_AT |
	       ((empty | ((second >> 32 & 0xff) ^ 0xe8)) - 1) >> 63 << UNWIND_CALL_EMPTY;
}

/* Is this return address where such a call may end? */
static __always_inline bool unwind_may_end_entry(__u64 ra)
{
	__u64 at = (ra & (UNWIND_ENTRY_BYTES - 1)) - UNWIND_CALL_SIZE;

	return at == UNWIND_CALL_AT || at == UNWIND_CALL_EMPTY;
}

/* Where the innermost function makes its frame: a bit for each of the 64 bytes that ip is in. */
static __always_inline __u64 unwind_entry(struct unwind_state *s)
{
	__u64 code[UNWIND_ENTRY_WORDS], made = 0;

	if (unwind_read(s, code, sizeof(code), s->ip & ~(__u64)(UNWIND_ENTRY_BYTES - 1)))
		return 0;
#pragma GCC unroll 7
	for (unsigned int i = 0; i + 1 < UNWIND_ENTRY_WORDS; i++)
		made |= unwind_find_frames_made(code[i], code[i + 1]) << (i * 8);
	return made | unwind_entry_calls(code[0], code[1]);
}

/* Is this an end of a V8 function, after pop %rbp? Its return address is on top of the stack. */
static __always_inline bool unwind_is_leaving(__u64 code)
{
	return (code & 0xff) == 0xc2 ||				/* ret $BYTES */
	       (code & 0xfffff0) == 0xc20370 ||			/* jcc; that */
	       (code & 0xfffff000f8fffe) == 0xc2037000f88348 || /* cmp $COUNT,%r; that */
	       /* the same two with a displacement of four bytes (Maglev) */
	       (code & 0xfffffffffff0ff) == 0xc200000003800f ||
	       (code & 0xfffff0ff00f8fffe) == 0x0003800f00f88348 ||
	       /* pop %r; lea (%rsp,%r,8),%rsp; push %r */
	       (code & 0xf8ff00fffffdf8ff) == 0x504100248d485841 ||
	       (code & 0xfff800fffffdf8) == 0xc35000248d4858;
}

/* Behind that pop. The DWARF number of the register with the return address; 0: none. */
static __always_inline __u32 unwind_moved_return(__u64 code)
{
	if ((code & 0xfff8ff) == 0xc35041)
		return 8 + (code >> 8 & 7);
	if ((code & 0xfff8ff00fffffd) == 0xc3504100248d48)
		return 8 + (code >> 40 & 7);
	if ((code & 0xffff) == 0xc351 || (code & 0xffff00fffffd) == 0xc35100248d48)
		return 2; /* %rcx */
	return 0;
}

static __always_inline int unwind_take_leaf(struct unwind_state *s, enum unwind_leaf leaf, __u64 ra)
{
	if (!unwind_may_return_to(s, ra) || unwind_find_call(s, ra) == UNWIND_CALL_NONE)
		return STACK_END_NO_FRAME;
	s->leaf = leaf;
	s->left = s->sp - 8;
	return unwind_take(s, FRAME_LEAF_PEEK, ra, s->sp + (leaf == UNWIND_LEAF_MOVED ? 0 : 8),
			   s->fp);
}

/* Behind such a call: the builtin has no frame itself, and has not made this code's yet. */
static __always_inline int unwind_leaf_that_calls(struct unwind_state *s)
{
	__u64 code[2], at = s->ip & (UNWIND_ENTRY_BYTES - 1);

	if (unwind_read(s, code, sizeof(code), s->ip - at) ||
	    !(unwind_entry_calls(code[0], code[1]) >> (at - UNWIND_CALL_SIZE) & 1) ||
	    unwind_find_pair(s, s->sp))
		return STACK_END_NO_FRAME;
	return unwind_take_leaf(s, UNWIND_LEAF_ENTERED, s->low);
}

/* UNWIND_STEP_ON: the innermost function has no frame, and its caller was found. */
static __always_inline int unwind_leaf_of_made(struct unwind_state *s)
{
	__u64 code, made, at = s->ip & (UNWIND_ENTRY_BYTES - 1);
	__u32 moved;

	if (s->after_call)
		return unwind_leaf_that_calls(s);
	if (unwind_read(s, &code, sizeof(code), s->ip) || unwind_find_pair(s, s->sp))
		return STACK_END_NO_FRAME;
	if (unwind_is_leaving(code))
		return unwind_take_leaf(s, UNWIND_LEAF_LEFT, s->low);
	moved = unwind_moved_return(code);
	if (moved)
		return unwind_take_leaf(s, UNWIND_LEAF_MOVED, unwind_general(s, moved));
	code = s->low;
	if (!s->is_made)
		return STACK_END_NO_FRAME;
	if (s->fp - s->sp >= UNWIND_LEAF_WORDS && !unwind_may_return_to(s, code))
		return STACK_END_NO_FRAME;
	made = unwind_entry(s);
	if (made >> at)
		return unwind_take_leaf(s, UNWIND_LEAF_ENTERED, code);
	if (made && s->fp - s->sp < UNWIND_LEAF_WORDS)
		s->leaf = UNWIND_LEAF_ENTERED;
	return STACK_END_NO_FRAME;
}

#endif
