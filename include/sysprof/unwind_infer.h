/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Callers of code that its file does not describe (assembly without CFI). Where the return address is, is
 * inferred; it is taken only if it follows a call instruction. Part of unwind_walk.h.
 */
#ifndef SYSPROF_UNWIND_INFER_H
#define SYSPROF_UNWIND_INFER_H

#include <sysprof/unwind_state.h>

#define UNWIND_INFERRED_STEP_MAX (1ULL << 16)

enum unwind_call {
	UNWIND_CALL_NONE,      /* that is no return address */
	UNWIND_CALL_SOMEWHERE, /* the instruction does not tell where to */
	UNWIND_CALL_TO,	       /* s->call_target */
};


/* The instruction that ends at `ra`: call rel32, or call through a register or memory (ff /2). */
static __always_inline int unwind_call_before(struct unwind_state *s, __u64 ra)
{
	__u64 code, a, b;

	if (unwind_read(s, &code, sizeof(code), ra - sizeof(code)))
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

/* By a rule that the file did not give: it may be wrong, or the code may have another stack by now. */
static __always_inline bool unwind_is_called(struct unwind_state *s, __u64 cfa, __u64 ra)
{
	return cfa - s->sp <= UNWIND_INFERRED_STEP_MAX && unwind_may_return_to(s, ra) &&
	       unwind_find_call(s, ra) != UNWIND_CALL_NONE;
}

#endif
