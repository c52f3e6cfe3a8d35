/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwinds one frame of a user stack, by table or by frame pointer. The same source is used in the
 * kernel (bpf/unwind.bpf.h) and natively (unwind/unwind.c).
 *
 * The file that includes this defines first:
 *
 *   long unwind_read(struct unwind_state *s, void *to, __u32 size, __u64 address)
 *	reads user memory; 0, or it cannot be read
 *   __u64 unwind_readable(struct unwind_state *s, __u64 address, __u64 size)
 *	how many of these bytes can be read, if that is known; otherwise `size`
 *   const unsigned char *unwind_segment(struct unwind_state *s, const struct unwind_table *table)
 *	the segment of the table, of unwind_segment_size bytes, a power of two; NULL: there is none
 *   const struct unwind_table *unwind_table_at(struct unwind_state *s, __u32 number)
 *	NULL: the number is no table but one of the special numbers
 *   bool unwind_find_mapping(struct unwind_state *s, __u64 address)
 *	sets s->mapping to the executable mapping of this address; false: there is none
 *   bool unwind_has_mappings(struct unwind_state *s)
 *	false: nothing is known of this process
 *   long unwind_thread_base(struct unwind_state *s, __u64 *base)
 *	the base of the thread's local storage; 0, or it is not known
 *   void unwind_restore_window(struct unwind_state *s)
 *	unwind_put_back() of all s->replaced into the window
 *
 * and these, each a call of a function below, which the kernel verifies by itself:
 *
 *   int unwind_find_ahead(struct unwind_state *s): unwind_ahead_one(s)
 *   int unwind_find_by_code(struct unwind_state *s): unwind_by_code_at(s)
 *   int unwind_across(struct unwind_state *s): unwind_across_at(s)
 *   int unwind_find_call(struct unwind_state *s, __u64 ra): unwind_call_before(s, ra)
 *   int unwind_find_called(struct unwind_state *s, __u64 cfa, __u64 ra): unwind_is_called()
 *   int unwind_find_undescribed(struct unwind_state *s): unwind_undescribed(s)
 *   int unwind_find_return(struct unwind_state *s, __u64 ra): unwind_is_return(s, ra)
 *   int unwind_find_word(struct unwind_state *s, __u32 number): unwind_is_word(s, number)
 *   int unwind_find_pair(struct unwind_state *s, __u64 address): unwind_read_pair() to low, high
 *   int unwind_find_in_words(struct unwind_state *s): unwind_search(s)
 *   int unwind_find_leaf(struct unwind_state *s): unwind_leaf_of_made(s)
 *   int unwind_look(struct unwind_state *s, __u64 address): unwind_look_at(s, address)
 *   __u64 unwind_find_frames_made(__u64 word, __u64 next): unwind_frames_made(word, next)
 *
 * Searches have no data-dependent branches: the verifier (from Linux 6.8 on) would follow every
 * path. Offsets are masked right before each access, after a barrier that keeps the mask.
 */
#ifndef SYSPROF_UNWIND_WALK_H
#define SYSPROF_UNWIND_WALK_H

#include <sysprof/unwind_state.h>

#define UNWIND_FP_STEP_MAX  (1ULL << 20)
#define UNWIND_SIGNAL_WORDS 17
#define UNWIND_ADDRESS_BITS 47
#define UNWIND_SWITCHES_MAX 16 /* calls from C to Go or OCaml and back may nest */

#define UNWIND_CODE_LOWEST  4096
#define UNWIND_STEP_ON	    (-1) /* not an end: continue with the next frame */
#define UNWIND_NOT_CALLED   (-2) /* not an end: the inferred rule is wrong */

static __always_inline bool unwind_is_code(__u64 address)
{
	return address >= UNWIND_CODE_LOWEST && !(address >> UNWIND_ADDRESS_BITS);
}

/*
 * Resets the state for a new stack. The caller sets ip, sp, fp and general. In a system call ip is
 * behind the system call instruction.
 */
static __always_inline void unwind_begin(struct unwind_state *s, bool in_system_call)
{
	s->kind = FRAME_IP;
	s->all_known = true;
	s->after_call = in_system_call;
	s->fp_lost = false;
	s->rbx_known = true;
	s->is_fresh = false;
	s->leaf = 0;
	s->switches = 0;
	s->peeks = 0;
	s->mapping.start = 1;
	s->mapping.end = 0;
	s->window_start = s->window_end = 0;
}

/*
 * Reads two words of the stack. Reading 4 KB costs hardly more than 16 bytes, so the rest of the
 * page is read as well. 0, or they cannot be read.
 */
static __always_inline long unwind_read_pair(struct unwind_state *s, __u64 address, __u64 *low,
					     __u64 *high)
{
	__u64 at, size;

	if (address & 7)
		return -1;
	if (address < s->window_start || address + 16 > s->window_end) {
		size = unwind_readable(s, address, UNWIND_WINDOW - (address & (UNWIND_WINDOW - 1)));
		size = size < 16 ? 16 : size; /* the pair may straddle two pages */
		s->window_start = s->window_end = 0;
		UNWIND_HIDE(size);
		if (size > UNWIND_WINDOW || unwind_read(s, s->window, size, address))
			return -1;
		s->window_start = address;
		s->window_end = address + size;
		if (s->replaced.trampoline)
			unwind_restore_window(s);
	}
	at = (address - s->window_start) >> 3;
	UNWIND_HIDE(at);
	at &= UNWIND_WINDOW / 8 - 1;
	*low = s->window[at];
	at++;
	UNWIND_HIDE(at);
	at &= UNWIND_WINDOW / 8 - 1;
	*high = s->window[at];
	return 0;
}

/* One word, which few rules need. The last one of a page has no other above it. */
static __always_inline long unwind_read_word(struct unwind_state *s, __u64 address, __u64 *word)
{
	/* 1: it is the last one; without a branch, as it is read in many places */
	__u64 is_last = (((address & (UNWIND_WINDOW - 1)) ^ (UNWIND_WINDOW - 8)) - 1) >> 63;

	UNWIND_HIDE(is_last);
	if (unwind_find_pair(s, address - is_last * 8))
		return -1;
	*word = s->low ^ ((s->low ^ s->high) & -is_last);
	return 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static __always_inline __u32 unwind_load_u32(const unsigned char *segment, __u64 offset)
{
	UNWIND_HIDE(offset);
	offset &= unwind_segment_size - 4;
	return *(const __u32 *)(segment + offset);
}

static __always_inline __u64 unwind_load_u8(const unsigned char *segment, __u64 offset)
{
	UNWIND_HIDE(offset);
	offset &= unwind_segment_size - 1;
	return segment[offset];
}

static __always_inline __u32 unwind_load_u16(const unsigned char *segment, __u64 offset)
{
	UNWIND_HIDE(offset);
	offset &= unwind_segment_size - 2;
	return *(const __u16 *)(segment + offset);
}

/* A step: `found`, or + 2^bit if that many of the `count` addresses at `offset` are <= `low`. */
static __always_inline __u64 unwind_count_on(const unsigned char *segment, __u64 offset,
					     __u64 count, __u64 low, __u64 found, int bit)
{
	__u64 next = found + (1u << bit), address, take;

	address = unwind_load_u8(segment, offset + next - 1);
	/* address <= low and next <= count */
	take = ((address - low - 1) & (next - count - 1)) >> 63;
	UNWIND_HIDE(take);
	return found + (take << bit);
}

/*
 * How many of the `count` addresses at `offset` are at most `low`; 256 at most. Most buckets have a
 * few rows: needless steps are left out, two or three at a time as the verifier follows branches.
 */
static __always_inline __u64 unwind_count_rows(const unsigned char *segment, __u64 offset,
					       __u64 count, __u64 low, bool is_hot)
{
	__u64 found = 0;

	if (!is_hot || count >> 6) {
		found = unwind_count_on(segment, offset, count, low, found, 8);
		found = unwind_count_on(segment, offset, count, low, found, 7);
		found = unwind_count_on(segment, offset, count, low, found, 6);
	}
	if (!is_hot || count >> 4) {
		found = unwind_count_on(segment, offset, count, low, found, 5);
		found = unwind_count_on(segment, offset, count, low, found, 4);
	}
	if (!is_hot || count >> 2) {
		found = unwind_count_on(segment, offset, count, low, found, 3);
		found = unwind_count_on(segment, offset, count, low, found, 2);
	}
	found = unwind_count_on(segment, offset, count, low, found, 1);
	return unwind_count_on(segment, offset, count, low, found, 0);
}

/* Of an ELF virtual address within the table's buckets. */
static __always_inline __u64 unwind_find_row(const unsigned char *segment,
					     const struct unwind_table *t, __u64 offset,
					     bool is_hot)
{
	__u64 bucket = offset >> UNWIND_BUCKET_BITS;
	__u32 first = unwind_load_u32(segment, t->index + bucket * 4);
	__u32 end = unwind_load_u32(segment, t->index + bucket * 4 + 4);

	return first - 1 +
	       unwind_count_rows(segment, (__u64)t->addresses + first, end - first,
				 offset & (UNWIND_BUCKET_SIZE - 1), is_hot);
}

/* The rule for an ELF virtual address; NULL: there is none, or no such table. */
static __always_inline const struct unwind_rule *unwind_find_rule(struct unwind_state *s,
								  const unsigned char *segment,
								  const struct unwind_table *t,
								  __u64 address, bool is_hot)
{
	__u64 offset = address - t->base, row, number;

	if (offset >> UNWIND_BUCKET_BITS >= t->buckets)
		return NULL;
	row = unwind_find_row(segment, t, offset, is_hot);
	if (!is_hot)
		s->row = row;
	if (t->number_size == 1)
		number = unwind_load_u8(segment, t->numbers + row);
	else
		number = unwind_load_u16(segment, t->numbers + row * 2);
	offset = t->dictionary + number * sizeof(struct unwind_rule);
	UNWIND_HIDE(offset);
	offset &= unwind_segment_size - sizeof(struct unwind_rule);
	return (const struct unwind_rule *)(segment + offset);
}

static __always_inline bool unwind_in_mapping(struct unwind_state *s, __u64 address)
{
	if (address >= s->mapping.start && address < s->mapping.end)
		return true;
	return unwind_find_mapping(s, address);
}

/*
 * Rare fields are found without branches, which the verifier counts as paths. Code in no mapping
 * was mapped a moment ago: whether it keeps frame pointers is not known.
 */
static __always_inline const struct unwind_rule *unwind_rule_of(struct unwind_state *s, __u64 pc,
								bool is_hot)
{
	const unsigned char *segment;
	const struct unwind_table *table;

	s->missing = 0;
	s->by_code = UNWIND_NOT_BY_CODE;
	if (!is_hot)
		s->row = ~0ULL;
	if (!unwind_in_mapping(s, pc)) {
		s->by_code = unwind_has_mappings(s) ? UNWIND_NEW_CODE : UNWIND_NOT_BY_CODE;
		return NULL;
	}
	if (s->mapping.table == UNWIND_NO_TABLE)
		return NULL;
	if (s->mapping.table == UNWIND_BY_CODE) {
		s->by_code = UNWIND_MADE_CODE;
		return NULL;
	}
	s->missing = s->mapping.table == UNWIND_JAVA ? STACK_END_JAVA : STACK_END_NO_TABLE;
	table = unwind_table_at(s, s->mapping.table);
	/* volatile: it says whether the rest may be read */
	if (!table || !*(const volatile __u16 *)&table->number_size)
		return NULL;
	s->missing = 0;
	segment = unwind_segment(s, table);
	if (!segment)
		return NULL;
	return unwind_find_rule(s, segment, table, pc - s->mapping.bias, is_hot);
}

/* ---- one frame ------------------------------------------------------------------------------- */

static __always_inline __u64 unwind_general(const struct unwind_state *s, __u64 number)
{
	UNWIND_HIDE(number);
	return s->general[number & (UNWIND_GENERAL - 1)];
}

/* If nothing is known of the process, every address may be code. */
static __always_inline bool unwind_may_return_to(struct unwind_state *s, __u64 ra)
{
	return unwind_is_code(ra) && (!unwind_has_mappings(s) || unwind_in_mapping(s, ra - 1));
}

/* Step to the caller; its other registers are unknown. */
static __always_inline int unwind_take(struct unwind_state *s, __u32 kind, __u64 ip, __u64 sp,
				       __u64 fp)
{
	s->ip = ip;
	s->sp = sp;
	s->fp = fp;
	s->kind = kind;
	s->all_known = false;
	s->rbx_known = s->rbx_known && kind == FRAME_TABLE;
	s->after_call = kind != FRAME_AFTER_SIGNAL;
	return UNWIND_STEP_ON;
}

static __always_inline int unwind_found(struct unwind_state *s, __u32 kind, __u64 ip, __u64 sp,
					__u64 fp)
{
	if (!ip)
		return STACK_END_ROOT;
	if (!unwind_may_return_to(s, ip))
		return STACK_END_NO_CALLER;
	return unwind_take(s, kind, ip, sp, fp);
}

#include <sysprof/unwind_infer.h>
#include <sysprof/unwind_leaf.h>

/* rt_sigframe: the registers as the signal found them, r8 first. */
static __always_inline int unwind_signal(struct unwind_state *s)
{
	static const unsigned char ORDER[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};
	__u64 *saved = s->window; /* a program's own stack is small */

	s->window_start = s->window_end = 0;
	if (unwind_read(s, saved, UNWIND_SIGNAL_WORDS * sizeof(*saved),
			s->sp + UNWIND_X86_SIGNAL_CONTEXT))
		return STACK_END_FAULT;
#pragma GCC unroll 16
	for (int i = 0; i < UNWIND_GENERAL; i++)
		s->general[ORDER[i]] = saved[i];
	s->fp_lost = false;
	if (!unwind_is_code(saved[16]))
		return STACK_END_NO_CALLER;
	s->ip = saved[16];
	s->sp = saved[15];
	s->fp = saved[10];
	s->kind = FRAME_AFTER_SIGNAL;
	s->all_known = s->rbx_known = true;
	s->after_call = false;
	return UNWIND_STEP_ON;
}

/*
 * Unwinds by frame pointer. STACK_END_ROOT: there is none (0, or a saved pair of zeros), which
 * marks the outermost frame.
 */
static __always_inline int unwind_by_frame_pointer(struct unwind_state *s)
{
	__u64 fp = s->fp, caller_fp, ra;

	if (s->fp_lost)
		return STACK_END_NO_FRAME;
	if (!fp && s->kind != FRAME_IP)
		return STACK_END_ROOT;
	if ((fp & 7) || fp < s->sp || fp - s->sp > UNWIND_FP_STEP_MAX)
		return STACK_END_NO_FRAME;
	if (unwind_find_pair(s, fp))
		return STACK_END_FAULT;
	caller_fp = s->low;
	ra = s->high;
	if (!ra && !caller_fp)
		return STACK_END_ROOT;
	if (!unwind_find_return(s, ra))
		return STACK_END_NO_FRAME;
	return unwind_take(s, FRAME_POINTER, ra, fp + 16, caller_fp);
}

#include <sysprof/unwind_ahead.h>

/*
 * The innermost function may not have set up its frame yet, or may have removed it already. Then
 * the frame pointer is the caller's, and following it would skip the caller. The instruction at ip
 * decides. UNWIND_STEP_ON: the caller was found this way.
 */
static __always_inline int unwind_by_prologue(struct unwind_state *s)
{
	__u64 code, fp = s->fp, ra;
	bool pushed;

	if (unwind_read(s, &code, sizeof(code), s->ip))
		return STACK_END_NO_FRAME;
	if ((code & 0xffffff) == 0xe58948 || (code & 0xffffff) == 0xec8b48 || /* mov %rsp,%rbp */
	    (code & 0xffff) == 0xc35d)					      /* pop %rbp; ret */
		pushed = true;
	else if ((code & 0xff) == 0x55 ||	      /* push %rbp */
		 (code & 0xffffffff) == 0xfa1e0ff3 || /* endbr64 */
		 (code & 0xff) == 0xc3)		      /* ret */
		pushed = false;
	else
		return STACK_END_NO_FRAME;
	if (unwind_find_pair(s, s->sp))
		return STACK_END_NO_FRAME;
	ra = s->low;
	if (pushed) {
		fp = ra;
		ra = s->high;
	}
	if (!unwind_find_return(s, ra))
		return STACK_END_NO_FRAME;
	s->leaf = (code & 0xff) == 0x5d || (code & 0xff) == 0xc3 ? UNWIND_LEAF_LEFT
								 : UNWIND_LEAF_ENTERED;
	s->left = pushed ? s->sp : s->sp - 8;
	return unwind_take(s, FRAME_LEAF_PEEK, ra, s->sp + (pushed ? 16 : 8), fp);
}

/*
 * May this frame be on another stack than its callee, below it? Functions that run others on a stack
 * of their own note theirs in memory (OCaml 5, whose code runs on such stacks and C on the thread's;
 * effect handlers through their fiber's parent), in rbp (__morestack of gcc, psm of Rust) or in rbx
 * (OCaml, around C that does not allocate). The return address has to follow a call, and so few
 * frames may that no walk is endless.
 */
static __always_inline bool unwind_may_switch(struct unwind_state *s,
					      const struct unwind_rule *rule)
{
	return rule->cfa >= UNWIND_CFA_FP && rule->cfa <= UNWIND_CFA_DEREF_TWICE &&
	       rule->ra == UNWIND_RA_AT_CFA && s->switches++ < UNWIND_SWITCHES_MAX;
}

static __always_inline int unwind_by_rule(struct unwind_state *s, const struct unwind_rule *rule,
					  __u64 pc)
{
	/* zero: a path without a use may copy it uninitialized, which the verifier rejects */
	__u64 cfa = 0, ra = 0, fp = s->fp, base = s->sp;
	__u32 how = rule->cfa,
	      kind = rule->ra == UNWIND_RA_INTERRUPTED ? FRAME_AFTER_SIGNAL : FRAME_TABLE;
	bool switches, by_other = false;

	if (rule->cfa_register == UNWIND_X86_RBP) {
		base = fp;
	} else if (rule->cfa_register != UNWIND_X86_RSP) {
		base = unwind_general(s, rule->cfa_register);
		by_other = true;
	}
	if ((by_other || rule->ra == UNWIND_RA_REGISTER) && !s->all_known &&
	    (rule->cfa_register != UNWIND_X86_RBX || rule->ra == UNWIND_RA_REGISTER ||
	     !s->rbx_known) &&
	    !(rule->ra == UNWIND_RA_INFERRED && s->kind == FRAME_INFERRED && s->was_kept))
		return STACK_END_NO_RULE;
	if (rule->cfa_register == UNWIND_X86_RBP && s->fp_lost)
		return STACK_END_NO_RULE;
	if (how == UNWIND_CFA_DEREF) {
		if (unwind_read_word(s, base + rule->cfa_offset, &cfa))
			return STACK_END_FAULT;
		cfa += rule->cfa_addend;
	} else if (how == UNWIND_CFA_DEREF_TWICE) {
		if (unwind_read_word(s, base + unwind_first_offset(rule->cfa_offset), &cfa) ||
		    unwind_read_word(s, cfa + unwind_second_offset(rule->cfa_offset), &cfa))
			return STACK_END_FAULT;
		cfa += rule->cfa_addend;
	} else if (how == UNWIND_CFA_PLT) {
		cfa = s->sp + 8 + ((pc & 15) >= (__u64)rule->cfa_offset ? 8 : 0);
	} else {
		cfa = base + rule->cfa_offset;
	}
	/*
	 * the stack pointer grows with each frame, except if the return address has left the stack
	 * (vfork, runtime.clone of Go), or the function has left it
	 */
	switches = cfa < s->sp + (rule->ra != UNWIND_RA_REGISTER);
	if ((switches && !unwind_may_switch(s, rule)) || (cfa & 7))
		return STACK_END_NO_CALLER;
	if (unwind_read_pair(s, cfa - 16, &base, &ra))
		return STACK_END_FAULT;
	if (rule->ra == UNWIND_RA_REGISTER)
		ra = unwind_general(s, rule->ra_offset);
	else if (rule->ra_offset != -8 && unwind_read_word(s, cfa + rule->ra_offset, &ra))
		return STACK_END_FAULT;
	if (switches && unwind_find_call(s, ra) == UNWIND_CALL_NONE)
		return STACK_END_NO_CALLER;
	if (rule->ra == UNWIND_RA_INFERRED) {
		if (!unwind_find_called(s, cfa, ra))
			return UNWIND_NOT_CALLED;
		kind = FRAME_INFERRED;
		s->was_kept = s->all_known;
	}
	if (rule->fp == UNWIND_FP_AT_FP) {
		if (unwind_read_word(s, fp + rule->fp_offset, &fp))
			return STACK_END_FAULT;
	} else if (rule->fp == UNWIND_FP_AT_CFA) {
		fp = base;
		if (rule->fp_offset != -16 && unwind_read_word(s, cfa + rule->fp_offset, &fp))
			return STACK_END_FAULT;
		s->fp_lost = false;
	} else if (rule->fp == UNWIND_FP_UNKNOWN) {
		s->fp_lost = true;
	}
	s->rbx_known = rule->rbx == UNWIND_RBX_SAME && s->rbx_known;
	if (rule->rbx == UNWIND_RBX_AT_CFA) {
		s->rbx_known = !unwind_find_pair(s, cfa + rule->cfa_addend);
		s->general[UNWIND_X86_RBX] = s->low;
	}
	return unwind_found(s, kind, ra, cfa, fp);
}

/* ---- common frames --------------------------------------------------------------------------- */

#define UNWIND_NOT_COMMON    (-3) /* not an end: unwind_to_caller() finds this caller */
#define UNWIND_NOT_DESCRIBED (-4) /* not an end: there is no rule, by the table */

static __always_inline bool unwind_window_has(const struct unwind_state *s, __u64 address)
{
	return address >= s->window_start && address + 8 <= s->window_end && !(address & 7);
}

/* A word that the window has. */
static __always_inline __u64 unwind_window_word(const struct unwind_state *s, __u64 address)
{
	__u64 at = (address - s->window_start) >> 3;

	UNWIND_HIDE(at);
	return s->window[at & (UNWIND_WINDOW / 8 - 1)];
}

/* The caller's frame pointer by a common rule. False: another rule, or not in the window. */
static __always_inline bool unwind_common_fp(const struct unwind_state *s,
					     const struct unwind_rule *rule, __u64 cfa, __u64 below,
					     __u64 *fp)
{
	__u64 at = cfa + rule->fp_offset;

	*fp = s->fp;
	if (rule->fp == UNWIND_FP_SAME)
		return true;
	if (rule->fp != UNWIND_FP_AT_CFA)
		return false;
	*fp = below;
	if (rule->fp_offset == -16)
		return true;
	if (!unwind_window_has(s, at))
		return false;
	*fp = unwind_window_word(s, at);
	return true;
}

/* A caller that was found without looking at the code. Its mapping becomes s->mapping. */
static __always_inline bool unwind_common_return(struct unwind_state *s, __u64 ra)
{
	return unwind_is_code(ra) && unwind_in_mapping(s, ra - 1);
}

/*
 * Does what unwind_to_caller() does for a frame that has made a call, if its rule is a common one:
 * the CFA relative to the stack or frame pointer, the return address right below it.
 * UNWIND_STEP_ON; or UNWIND_NOT_COMMON: no caller was stored.
 */
static __always_inline int unwind_by_common_rule(struct unwind_state *s,
						 const struct unwind_rule *rule)
{
	__u64 cfa = s->sp, ra, below, fp, rbx_at;
	bool rbx_known = rule->rbx == UNWIND_RBX_SAME && s->rbx_known;

	if ((rule->cfa != UNWIND_CFA_SP && rule->cfa != UNWIND_CFA_FP) ||
	    rule->ra != UNWIND_RA_AT_CFA || rule->ra_offset != -8)
		return UNWIND_NOT_COMMON;
	if (rule->cfa_register == UNWIND_X86_RBP && !s->fp_lost)
		cfa = s->fp;
	else if (rule->cfa_register != UNWIND_X86_RSP)
		return UNWIND_NOT_COMMON;
	cfa += rule->cfa_offset;
	if (cfa <= s->sp || (cfa & 7))
		return UNWIND_NOT_COMMON;
	if (cfa - 16 < s->window_start || cfa > s->window_end) {
		if (unwind_find_pair(s, cfa - 16))
			return UNWIND_NOT_COMMON;
		below = s->low;
		ra = s->high;
	} else {
		below = unwind_window_word(s, cfa - 16);
		ra = unwind_window_word(s, cfa - 8);
	}
	rbx_at = cfa + rule->cfa_addend;
	if (rule->rbx == UNWIND_RBX_AT_CFA &&
	    (!unwind_window_has(s, rbx_at) || !unwind_window_has(s, rbx_at + 8)))
		return UNWIND_NOT_COMMON;
	if (!unwind_common_fp(s, rule, cfa, below, &fp) || !unwind_common_return(s, ra))
		return UNWIND_NOT_COMMON;
	if (rule->rbx == UNWIND_RBX_AT_CFA) {
		s->general[UNWIND_X86_RBX] = unwind_window_word(s, rbx_at);
		rbx_known = true;
	}
	s->rbx_known = rbx_known;
	s->fp_lost = s->fp_lost && rule->fp == UNWIND_FP_SAME;
	return unwind_take(s, FRAME_TABLE, ra, cfa, fp);
}

/*
 * The same for a frame without a rule: in a file whose table has none there and does not say that
 * one was looked for; or in code without a table, if its callee was found by frame pointer, too.
 */
static __always_inline int unwind_by_common_pointer(struct unwind_state *s)
{
	__u64 fp = s->fp, below, ra;

	if (s->fp_lost || !fp || (fp & 7) || fp < s->sp || fp - s->sp > UNWIND_FP_STEP_MAX)
		return UNWIND_NOT_COMMON;
	if (fp < s->window_start || fp + 16 > s->window_end) {
		if (unwind_find_pair(s, fp))
			return UNWIND_NOT_COMMON;
		below = s->low;
		ra = s->high;
	} else {
		below = unwind_window_word(s, fp);
		ra = unwind_window_word(s, fp + 8);
	}
	if (!unwind_common_return(s, ra))
		return UNWIND_NOT_COMMON;
	return unwind_take(s, FRAME_POINTER, ra, fp + 16, below);
}

/* May the frame in `s` be a common one? It has made a call, and s->mapping is its mapping. */
static __always_inline bool unwind_may_be_common(const struct unwind_state *s)
{
	__u64 pc = s->ip - 1;

	return s->after_call && !s->all_known && pc >= s->mapping.start && pc < s->mapping.end;
}

/* ---- from one stack to another --------------------------------------------------------------- */

/* Is there a call right before the return address whose target is in [start, start + room)? */
static __always_inline bool unwind_is_call_of(struct unwind_state *s, __u64 ra, __u64 start,
					      __u64 room)
{
	__u64 code;

	if (unwind_read(s, &code, sizeof(code), ra - 8))
		return false;
	/* call rel32 */
	return (code >> 24 & 0xff) == 0xe8 && ra + (__s64)(__s32)(code >> 32) - start < room;
}

/*
 * Go's asmcgocall, up to 1.20, has no frame. It stores on the new stack the goroutine that it left
 * and how deep in its stack; if it stayed, 0 and the stack pointer. 0, or it cannot be read.
 */
static __always_inline long unwind_go_depth(struct unwind_state *s, __s64 slot)
{
	struct unwind_across *a = &s->across;

	if (unwind_read(s, a->noted, sizeof(a->noted), s->sp + slot))
		return -1;
	a->top = 0;
	if (a->noted[1] &&
	    unwind_read(s, &a->top, sizeof(a->top), a->noted[1] + UNWIND_GO_STACK_TOP))
		return -1;
	a->saved.sp = a->noted[1] ? a->top - a->noted[0] : a->noted[0];
	return 0;
}

/*
 * The registers that Go's runtime saved for this thread's goroutine, while the thread is on another
 * stack; by thread-local storage. UNWIND_STEP_ON, or an end: the root, if there is none.
 */
static __always_inline int unwind_go_saved(struct unwind_state *s)
{
	struct unwind_across *a = &s->across;
	__u64 at;

	a->offset = (__s64)a->rule.fp_offset;
	if (a->rule.cfa_register && unwind_read(s, &a->offset, sizeof(a->offset),
						s->mapping.bias + (__u32)a->rule.fp_offset))
		return STACK_END_FAULT;
	/* the saved registers are those of the last change of stacks, not of earlier ones */
	if (s->switches > 1)
		return STACK_END_NO_RULE;
	if (unwind_thread_base(s, &at) || unwind_read(s, &at, sizeof(at), at + a->offset) ||
	    unwind_read(s, &a->thread, sizeof(at), at + UNWIND_GO_THREAD) ||
	    unwind_read(s, &a->goroutine, sizeof(at), a->thread + a->rule.ra_offset))
		return STACK_END_FAULT;
	if (!a->goroutine)
		return STACK_END_ROOT;
	if (unwind_read(s, &at, sizeof(at), a->goroutine + UNWIND_GO_THREAD) ||
	    unwind_read(s, &a->saved, sizeof(a->saved), a->goroutine + UNWIND_GO_SAVED))
		return STACK_END_FAULT;
	return at == a->thread ? UNWIND_STEP_ON : STACK_END_ROOT;
}

/* s->across.frame: the caller's frame pointer and the return address, which is at saved.sp. */
static __always_inline int unwind_find_across(struct unwind_state *s)
{
	struct unwind_across *a = &s->across;
	int end;

	if (a->rule.cfa == UNWIND_CFA_SWITCH) {
		a->saved.sp = s->fp + 8;
	} else if (a->rule.cfa == UNWIND_CFA_GO_DEPTH) {
		if (unwind_go_depth(s, a->rule.fp_offset))
			return STACK_END_FAULT;
	} else {
		end = unwind_go_saved(s);
		if (end != UNWIND_STEP_ON)
			return end;
	}
	if (a->rule.cfa == UNWIND_CFA_GO_INTERRUPTED) {
		a->frame[0] = a->rule.cfa_addend == UNWIND_GO_SAVED_BP ? a->saved.bp
								       : a->saved.old_bp;
		a->frame[1] = a->saved.pc;
		a->saved.sp -= 8;
		return UNWIND_STEP_ON;
	}
	if ((a->saved.sp & 7) || unwind_read(s, a->frame, sizeof(a->frame), a->saved.sp - 8))
		return STACK_END_FAULT;
	if (a->rule.cfa != UNWIND_CFA_SWITCH)
		a->frame[0] = s->fp;
	return UNWIND_STEP_ON;
}

/*
 * Functions of Go that switch to another stack, by s->across. Go's stacks move and are reused, so
 * the return address on the old stack must follow a call of this function.
 *
 * Functions with a frame keep their frame pointer, the others their caller's. morestack continues
 * the goroutine that ran out of stack, if it is still this thread's.
 */
static __always_inline int unwind_across_at(struct unwind_state *s)
{
	struct unwind_across *a = &s->across;
	int end;
	__u64 room;

	if (s->switches++ == UNWIND_SWITCHES_MAX)
		return STACK_END_NO_CALLER;
	if (s->fp_lost)
		return STACK_END_NO_RULE;
	end = unwind_find_across(s);
	if (end != UNWIND_STEP_ON)
		return end;
	/* morestack_noctxt, right behind it, goes on to morestack */
	room = a->rule.cfa == UNWIND_CFA_GO_INTERRUPTED ? UNWIND_GO_NEAR : 1;
	if (!unwind_is_call_of(s, a->frame[1], s->mapping.bias + (__u32)a->rule.cfa_offset, room))
		return room == 1 ? STACK_END_NO_CALLER : STACK_END_ROOT;
	return unwind_found(s, FRAME_SWITCH, a->frame[1], a->saved.sp + 8, a->frame[0]);
}

/* ---- code without CFI ------------------------------------------------------------------------ */

/*
 * Code without CFI. In a file it may keep no frame pointer. Where the frame pointer led nowhere,
 * the stack is not searched: the code's own frame may hold old return addresses.
 */
static __always_inline int unwind_undescribed(struct unwind_state *s)
{
	bool innermost = s->all_known && !s->after_call && unwind_has_mappings(s), searches, made;
	int end;

	searches = innermost && !s->was_followed && unwind_in_mapping(s, s->ip) &&
		   s->mapping.table < UNWIND_BY_CODE;
	made = innermost && !s->was_followed && !searches &&
	       (s->mapping.table == UNWIND_NO_TABLE || s->by_code);
	s->is_made = made;
	s->needs_call = searches || s->was_followed;
	if (innermost && unwind_by_prologue(s) == UNWIND_STEP_ON) {
		s->leaf = made ? s->leaf : 0;
		return UNWIND_STEP_ON;
	}
	if (s->by_code)
		return unwind_find_by_code(s);
	/* also the caller of a V8 builtin without a frame, which is innermost */
	if ((innermost || (s->after_call && s->kind != FRAME_POINTER &&
			   unwind_may_end_entry(s->ip) && s->mapping.table == UNWIND_NO_TABLE)) &&
	    unwind_find_leaf(s) == UNWIND_STEP_ON)
		return UNWIND_STEP_ON;
	if (searches && unwind_find_word(s, 0) == UNWIND_STEP_ON)
		return UNWIND_STEP_ON;
	end = unwind_by_frame_pointer(s);
	if (searches && end == STACK_END_NO_FRAME && unwind_find_in_words(s) == UNWIND_STEP_ON)
		return UNWIND_STEP_ON;
	return end;
}

/*
 * Steps from the frame in `s` to its caller. UNWIND_STEP_ON, or enum stack_end. With
 * s->in_trampoline the frame that it came from is FRAME_SIGNAL_RETURN.
 *
 * If a function ends with a call that never returns, the return address is behind its end. So the
 * call is looked up, one byte before.
 */
static __always_inline int unwind_to_caller(struct unwind_state *s)
{
	__u64 pc = s->after_call ? s->ip - 1 : s->ip;
	const struct unwind_rule *rule = unwind_rule_of(s, pc, true);
	int end;

	s->in_trampoline = false;
	/* the file describes the task that made this one */
	if (s->is_fresh && s->all_known)
		return STACK_END_ROOT;
	if (!rule && s->missing)
		return s->missing;
	if (!rule || rule->cfa == UNWIND_CFA_NONE) {
		s->was_followed = rule && rule->ra == UNWIND_RA_INFERRED;
		return unwind_find_undescribed(s);
	}
	if (rule->cfa == UNWIND_CFA_SIGNAL) {
		s->in_trampoline = true;
		return unwind_signal(s);
	}
	if (rule->cfa == UNWIND_CFA_ROOT)
		return STACK_END_ROOT;
	if (rule->cfa == UNWIND_CFA_UNKNOWN)
		return STACK_END_NO_RULE;
	if (rule->cfa == UNWIND_CFA_LATER)
		return STACK_END_NO_TABLE;
	if (rule->cfa == UNWIND_CFA_STARTER) {
		s->in_trampoline = true;
		return STACK_END_ROOT;
	}
	if (rule->cfa >= UNWIND_CFA_SWITCH) {
		s->across.rule = *rule;
		return unwind_across(s);
	}
	end = unwind_by_rule(s, rule, pc);
	if (end != UNWIND_NOT_CALLED)
		return end;
	s->was_followed = true;
	return unwind_find_undescribed(s);
}

#endif
