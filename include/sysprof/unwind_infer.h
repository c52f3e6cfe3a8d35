/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds callers of code without CFI (assembly). The return address's location is inferred, and the
 * address is accepted only if it follows a call instruction. Part of unwind_walk.h.
 */
#ifndef SYSPROF_UNWIND_INFER_H
#define SYSPROF_UNWIND_INFER_H

#include <sysprof/unwind_state.h>

#define UNWIND_INFERRED_STEP_MAX (1ULL << 16)
#define UNWIND_FUNCTION_MAX	 (1ULL << 16)
#define UNWIND_WORDS_SEARCHED	 16
#define UNWIND_PEEKS_MAX	 8
#define UNWIND_NEAR_BITS	 40
#define UNWIND_CALL_NEAR	 (1ULL << 20)

enum unwind_call {
	UNWIND_CALL_NONE,      /* not a return address */
	UNWIND_CALL_SOMEWHERE, /* an indirect call: unknown target */
	UNWIND_CALL_TO,	       /* a call of s->call_target */
};

/* Facts about an address; s->row is its row in the table. */
enum unwind_look {
	UNWIND_LOOK_NOTHING,
	UNWIND_LOOK_INFERRED,
	UNWIND_LOOK_DESCRIBED,
};

static __always_inline int unwind_look_at(struct unwind_state *s, __u64 address)
{
	__u32 by_code = s->by_code;
	const struct unwind_rule *rule = unwind_rule_of(s, address, false);

	s->by_code = by_code;
	if (!rule || rule->cfa == UNWIND_CFA_NONE)
		return UNWIND_LOOK_NOTHING;
	return rule->ra == UNWIND_RA_INFERRED ? UNWIND_LOOK_INFERRED : UNWIND_LOOK_DESCRIBED;
}

/*
 * The bytes before `ra`, the last of them highest. Where code begins with its mapping, those of the
 * page before may not be there.
 */
static __always_inline long unwind_read_before(struct unwind_state *s, __u64 *code, __u64 ra)
{
	__u64 size = ra & (UNWIND_PAGE - 1);

	*code = 0;
	if (!unwind_read(s, code, sizeof(*code), ra - sizeof(*code)))
		return 0;
	UNWIND_HIDE(size);
	if (size >= sizeof(*code) || unwind_read(s, code, size, ra - size))
		return -1;
	*code <<= (64 - size * 8) & 63;
	return 0;
}

/* The instruction that ends at `ra`: call rel32, or call through a register or memory (ff /2). */
static __always_inline int unwind_call_before(struct unwind_state *s, __u64 ra)
{
	__u64 code, a, b;

	if (unwind_read_before(s, &code, ra))
		return UNWIND_CALL_NONE;
	if ((code >> 24 & 0xff) == 0xe8) {
		s->call_target = ra + (__u64)(__s64)(__s32)(code >> 32);
		return UNWIND_CALL_TO;
	}
	a = code >> 48; /* 2 bytes: a register, or memory without displacement */
	if ((a & 0xf8ff) == 0xd0ff || ((a & 0xf8ff) == 0x10ff && (a >> 8 & 6) != 4))
		return UNWIND_CALL_SOMEWHERE;
	a = code >> 40 & 0xffff; /* 3: displacement of one byte, or base and index */
	b = code >> 56;
	if (((a & 0xf8ff) == 0x50ff && (a >> 8 & 7) != 4) || (a == 0x14ff && (b & 7) != 5))
		return UNWIND_CALL_SOMEWHERE;
	if ((code >> 32 & 0xffff) == 0x54ff) /* 4: both */
		return UNWIND_CALL_SOMEWHERE;
	a = code >> 16 & 0xffff; /* 6: displacement of four bytes */
	if (a == 0x15ff || ((a & 0xf8ff) == 0x90ff && (a >> 8 & 7) != 4))
		return UNWIND_CALL_SOMEWHERE;
	a = code >> 8 & 0xffff; /* 7: and base and index */
	b = code >> 24 & 7;
	if (a == 0x94ff || (a == 0x14ff && b == 5))
		return UNWIND_CALL_SOMEWHERE;
	return UNWIND_CALL_NONE;
}

/* Checks an inferred rule: it may be wrong, or the code may have changed stacks since. */
static __always_inline bool unwind_is_called(struct unwind_state *s, __u64 cfa, __u64 ra)
{
	return cfa - s->sp <= UNWIND_INFERRED_STEP_MAX && unwind_may_return_to(s, ra) &&
	       unwind_find_call(s, ra) != UNWIND_CALL_NONE;
}

/*
 * Does a call end at this address, which is in no mapping? Code that was mapped a moment ago is where
 * the kernel places mappings, near the stack. Data may look like a call: one with a displacement has
 * to lead to code that is here, or not far. Only some words of a stack are looked at.
 */
static __always_inline bool unwind_follows_new_call(struct unwind_state *s, __u64 ra)
{
	int call;

	if (!unwind_has_mappings(s) || (ra ^ s->sp) >> UNWIND_NEAR_BITS ||
	    s->peeks >= UNWIND_PEEKS_MAX)
		return false;
	s->peeks++;
	call = unwind_find_call(s, ra);
	return call == UNWIND_CALL_SOMEWHERE ||
	       (call == UNWIND_CALL_TO &&
		(s->call_target - ra + UNWIND_CALL_NEAR < 2 * UNWIND_CALL_NEAR ||
		 unwind_in_mapping(s, s->call_target)));
}

/*
 * Code without CFI in a file returns to an address after a call. A call of a function that has CFI
 * is another function's. Code that was analyzed without a result may keep no frame pointer, so then
 * only a direct call is accepted.
 */
static __always_inline bool unwind_is_return(struct unwind_state *s, __u64 ra)
{
	int call;

	if (!unwind_may_return_to(s, ra))
		return unwind_is_code(ra) && unwind_follows_new_call(s, ra);
	if (!s->needs_call)
		return true;
	call = unwind_find_call(s, ra);
	return (call == UNWIND_CALL_SOMEWHERE && !s->was_followed) ||
	       (call == UNWIND_CALL_TO && unwind_look(s, s->call_target) != UNWIND_LOOK_DESCRIBED);
}

/* Does the call before ra call the function at pc? Yes if only code without rules is between. */
static __always_inline bool unwind_calls_this(struct unwind_state *s, __u64 ra)
{
	__u64 target, row;

	if (!unwind_may_return_to(s, ra) || unwind_find_call(s, ra) != UNWIND_CALL_TO)
		return false;
	target = s->call_target;
	if (s->ip - target > UNWIND_FUNCTION_MAX || unwind_look(s, target) != UNWIND_LOOK_NOTHING)
		return false;
	row = s->row;
	return unwind_look(s, s->ip) == UNWIND_LOOK_NOTHING && row == s->row;
}

/* UNWIND_STEP_ON: this word above the stack pointer is this function's return address. */
static __always_inline int unwind_is_word(struct unwind_state *s, __u32 number)
{
	__u64 at = s->sp + (__u64)number * 8, ra;

	if (unwind_find_pair(s, at))
		return STACK_END_NO_FRAME;
	ra = s->low;
	if (!unwind_calls_this(s, ra))
		return STACK_END_NO_FRAME;
	s->was_kept = false;		   /* the words are the callee's, or unknown */
	s->fp_lost = s->fp_lost || number; /* the function may have pushed it */
	return unwind_take(s, FRAME_INFERRED, ra, at + 8, s->fp);
}

static __always_inline int unwind_search(struct unwind_state *s)
{
	for (__u32 i = 1; i < UNWIND_WORDS_SEARCHED; i++)
		if (unwind_find_word(s, i) == UNWIND_STEP_ON)
			return UNWIND_STEP_ON;
	return STACK_END_NO_FRAME;
}

#endif
