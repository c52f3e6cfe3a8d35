/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JIT code that may keep no frame pointer, and code that was mapped so recently that no mapping here
 * has it: the instructions are followed from the place where it is up to its return, which shows
 * where the return address is. Conditional branches are not taken, direct jumps are, calls are
 * stepped over. Part of unwind_walk.h.
 *
 * The frame pointer is believed if the code gets its stack pointer from there. If the return is not
 * reached, it is believed if the code uses words below it, or if nothing between the stack pointer
 * and the frame pointer can be the return address of a frame that it would skip.
 */
#ifndef SYSPROF_UNWIND_AHEAD_H
#define SYSPROF_UNWIND_AHEAD_H

#include <sysprof/unwind_state.h>

#define UNWIND_AHEAD_STEPS     40  /* instructions; of the innermost function, … */
#define UNWIND_AHEAD_INNERMOST 128 /* … which is one a stack */
#define UNWIND_AHEAD_WORDS     16
#define UNWIND_INSTRUCTION_MAX 15

enum unwind_ahead_end {
	UNWIND_AHEAD_ON,
	UNWIND_AHEAD_RETURNS,
	UNWIND_AHEAD_UNKNOWN,
};

/*
 * What follows an opcode, four bits each: 1 a ModRM byte, 2 an immediate of one byte, 4 one of four
 * (two with an operand-size prefix); 8: not followed, 9: a prefix. TWO: behind 0f.
 */
#define UNWIND_X86_MODRM  1
#define UNWIND_X86_BYTE	  2
#define UNWIND_X86_WORD	  4
#define UNWIND_X86_BAD	  8
#define UNWIND_X86_PREFIX 9

static const __u64 UNWIND_X86_ONE[16] = {
	0x0842111188421111, 0x8842111188421111, 0x8942111189421111, 0x8942111189421111,
	0x8888888888888888, 0x0000000000000000, 0x8888325499991088, 0x2222222222222222,
	0x1111111111113853, 0x0000080000000000, 0x0000004200008888, 0x4444444422222222,
	0x8888880853000433, 0x1111111108881111, 0x8888284488882222, 0x1100000011089989,
};
static const __u64 UNWIND_X86_TWO[16] = {
	0x8818888888081111, 0x1111111111111111, 0x1111111188881111, 0x8888838188888000,
	0x1111111111111111, 0x1111111111111111, 0x1111111111111111, 0x1111888801113333,
	0x4444444444444444, 0x1111111111111111, 0x1113180088131000, 0x1111138111111111,
	0x0000000013331311, 0x1111111111111111, 0x1111111111111111, 0x8111111111111111,
};

/* Which operands an instruction with a ModRM byte writes: 1 the one of its rm field, 2 of reg. */
#define UNWIND_WRITES_RM  1
#define UNWIND_WRITES_REG 2

static const __u64 UNWIND_X86_ONE_WRITES[16] = {
	0x0000221100002211, 0x0000221100002211, 0x0000221100002211, 0x0000000000002211,
	0x0000000000000000, 0x0000000000000000, 0x0000202000002000, 0x0000000000000000,
	0x1000221133001111, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
	0x0000000011000011, 0x0000000000001111, 0x0000000000000000, 0x1100000011000000,
};
static const __u64 UNWIND_X86_TWO_WRITES[16] = {
	0x0000000000000000, 0x0000000000000000, 0x0022000000000000, 0x0000000000000000,
	0x2222222222222222, 0x0000000000000002, 0x0000000000000000, 0x0100000000000000,
	0x0000000000000000, 0x1111111111111111, 0x2011111111110000, 0x2222110222001011,
	0x0000000000200033, 0x0000000020000000, 0x0000000000000000, 0x0000000000000000,
};

#define UNWIND_REX_W	      8u
#define UNWIND_REX_R	      4u
#define UNWIND_REX_B	      1u
#define UNWIND_RSP	      4u /* numbers of the machine code */
#define UNWIND_RBP	      5u
#define UNWIND_OP_TWO	      0x100u
#define UNWIND_OP_VEX	      0x200u
#define UNWIND_SIB_RSP	      0x24u /* no index */
#define UNWIND_NOT_A_REGISTER 16u

static __always_inline __u64 unwind_x86_entry(const __u64 *table, __u64 opcode)
{
	UNWIND_HIDE(opcode);
	return table[opcode >> 4 & 15] >> (opcode & 15) * 4 & 15;
}

/* 1 or 0 without a branch, which the verifier would follow. */
static __always_inline __u64 unwind_is_equal(__u64 a, __u64 b)
{
	__u64 equal = ((a ^ b) - 1) >> 63;

	UNWIND_HIDE(equal);
	return equal;
}

static __always_inline __u64 unwind_ahead_byte(const struct unwind_state *s, __u64 at)
{
	UNWIND_HIDE(at);
	return s->ahead.code[at & (2 * UNWIND_AHEAD_READ - 1)];
}

static __always_inline __s64 unwind_ahead_word(const struct unwind_state *s, __u64 at)
{
	return (__s32)(unwind_ahead_byte(s, at) | unwind_ahead_byte(s, at + 1) << 8 |
		       unwind_ahead_byte(s, at + 2) << 16 | unwind_ahead_byte(s, at + 3) << 24);
}

static __always_inline __s64 unwind_ahead_signed(const struct unwind_state *s, __u64 at, __u64 size)
{
	return size == 1 ? (__s8)unwind_ahead_byte(s, at) : size ? unwind_ahead_word(s, at) : 0;
}

/* Reads code from the next instruction on, unless it was read. The next page may be missing. */
static __always_inline bool unwind_ahead_read(struct unwind_state *s)
{
	struct unwind_ahead *a = &s->ahead;
	__u64 size = UNWIND_AHEAD_READ;

	if (a->at >= a->start && a->at + UNWIND_INSTRUCTION_MAX <= a->end)
		return true;
	if (unwind_read(s, a->code, UNWIND_AHEAD_READ, a->at)) {
		size = UNWIND_PAGE - (a->at & (UNWIND_PAGE - 1));
		UNWIND_HIDE(size);
		if (size >= UNWIND_AHEAD_READ || unwind_read(s, a->code, size, a->at))
			return false;
	}
	a->start = a->at;
	a->end = a->at + size;
	return true;
}

/* Prefixes and opcode; *at is behind them. Returns the opcode's class. */
static __always_inline __u64 unwind_ahead_opcode(struct unwind_state *s, __u64 *at,
						 __u64 *short_word)
{
	struct unwind_ahead *a = &s->ahead;
	__u64 byte, second, class, n = *at, is_rex;

	*short_word = 0;
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		byte = unwind_ahead_byte(s, n);
		*short_word |= unwind_is_equal(byte, 0x66);
		n += unwind_is_equal(unwind_x86_entry(UNWIND_X86_ONE, byte), UNWIND_X86_PREFIX);
	}
	byte = unwind_ahead_byte(s, n);
	is_rex = unwind_is_equal(byte & 0xf0, 0x40);
	a->rex = byte * is_rex;
	n += is_rex;
	byte = unwind_ahead_byte(s, n);
	second = unwind_ahead_byte(s, n + 1);
	a->op = byte;
	class = unwind_x86_entry(UNWIND_X86_ONE, byte);
	n++;
	if (byte == 0x0f) {
		a->op = UNWIND_OP_TWO | second;
		class = unwind_x86_entry(UNWIND_X86_TWO, second);
		n += second == 0x38 || second == 0x3a ? 2 : 1;
	} else if (byte == 0xc5) {
		a->rex = ~second >> 5 & UNWIND_REX_R;
		a->op = UNWIND_OP_VEX | unwind_ahead_byte(s, n + 1);
		class = unwind_x86_entry(UNWIND_X86_TWO, unwind_ahead_byte(s, n + 1));
		n += 2;
	} else if (byte == 0xc4 || byte == 0x62) {
		n += byte == 0xc4 ? 2 : 3;
		UNWIND_HIDE(n);
		a->rex = ~second >> 5 & 7;
		a->op = UNWIND_OP_VEX | unwind_ahead_byte(s, n);
		second &= 7; /* the map of opcodes */
		class = second == 1   ? unwind_x86_entry(UNWIND_X86_TWO, a->op & 0xff)
			: second == 2 ? UNWIND_X86_MODRM
			: second == 3 ? UNWIND_X86_MODRM | UNWIND_X86_BYTE
				      : UNWIND_X86_BAD;
		n++;
	}
	UNWIND_HIDE(n);
	*at = n;
	return class;
}

static __always_inline __u64 unwind_ahead_immediate(const struct unwind_ahead *a, __u64 class,
						    __u64 short_word)
{
	__u64 reg = a->modrm >> 3 & 7, word = 4 - 2 * short_word;

	if (a->op == 0xc2)
		return 2;
	if ((a->op & ~7u) == 0xb8 && a->rex & UNWIND_REX_W)
		return 8;
	if (a->op == 0xf6 || a->op == 0xf7)
		return reg > 1 ? 0 : a->op == 0xf6 ? 1 : word;
	if (a->op == 0xe8 || a->op == 0xe9 || (a->op & ~15u) == (UNWIND_OP_TWO | 0x80))
		return 4;
	return class & UNWIND_X86_BYTE ? 1 : class & UNWIND_X86_WORD ? word : 0;
}

/* The next instruction; a->at moves behind it. False: it cannot be followed. */
static __always_inline bool unwind_ahead_decode(struct unwind_state *s)
{
	struct unwind_ahead *a = &s->ahead;
	__u64 at = a->at - a->start, class, size, mod, base, short_word;

	class = unwind_ahead_opcode(s, &at, &short_word);
	if (class >= UNWIND_X86_BAD)
		return false;
	a->modrm = a->sib = 0;
	a->disp = 0;
	if (class & UNWIND_X86_MODRM) {
		a->modrm = unwind_ahead_byte(s, at);
		if (a->op == 0x8f && a->modrm >> 3 & 7) /* AMD's XOP */
			return false;
		at++;
		mod = a->modrm >> 6;
		base = a->modrm & 7;
		if (mod != 3 && base == UNWIND_RSP) {
			a->sib = unwind_ahead_byte(s, at);
			base = a->sib & 7;
			at++;
		}
		size = mod == 1 ? 1 : mod == 2 || (!mod && base == UNWIND_RBP) ? 4 : 0;
		a->disp = unwind_ahead_signed(s, at, size);
		at += size;
		UNWIND_HIDE(at);
	}
	size = unwind_ahead_immediate(a, class, short_word);
	a->imm = size == 2 ? unwind_ahead_byte(s, at) | unwind_ahead_byte(s, at + 1) << 8
			   : (__u64)unwind_ahead_signed(s, at, size);
	a->at = a->start + at + size;
	return a->at <= a->end;
}

/* ---- effects --------------------------------------------------------------------------------- */

static __always_inline __u64 unwind_ahead_reg(const struct unwind_ahead *a)
{
	return (a->modrm >> 3 & 7) | (a->rex & UNWIND_REX_R) << 1;
}

/* The operand beside the register, if it is a register, too. */
static __always_inline __u64 unwind_ahead_rm(const struct unwind_ahead *a)
{
	return a->modrm >> 6 == 3 ? (a->modrm & 7) | (a->rex & UNWIND_REX_B) << 3
				  : UNWIND_NOT_A_REGISTER;
}

static __always_inline void unwind_ahead_set_fp(struct unwind_ahead *a, __u64 fp, bool known)
{
	a->fp = fp;
	a->fp_known = known;
	a->fp_same = false;
}

static __always_inline void unwind_ahead_pop_fp(struct unwind_ahead *a, __u64 at)
{
	unwind_ahead_set_fp(a, 0, false);
	a->restored = at;
}

/* The stack pointer becomes the frame pointer and more. */
static __always_inline int unwind_ahead_leave(struct unwind_ahead *a, __u64 more)
{
	a->sp = a->fp + more;
	a->sp_known = a->fp_known;
	a->by_fp = a->by_fp || a->fp_same;
	return UNWIND_AHEAD_ON;
}

/* A register that becomes the sum of a base register and a displacement, by lea. */
static __always_inline int unwind_ahead_lea(struct unwind_ahead *a, __u64 reg)
{
	__u64 rm = a->modrm & 7;
	bool of_sp = rm == UNWIND_RSP && a->sib == UNWIND_SIB_RSP && !(a->rex & UNWIND_REX_B);
	bool of_fp = rm == UNWIND_RBP && a->modrm >> 6 && !(a->rex & UNWIND_REX_B);

	if (reg == UNWIND_RBP && of_fp && !a->disp) /* Mono pads with it */
		return UNWIND_AHEAD_ON;
	if (reg == UNWIND_RBP) {
		unwind_ahead_set_fp(a, a->sp + a->disp, of_sp && a->sp_known);
	} else if (reg == UNWIND_RSP) {
		if (of_fp)
			return unwind_ahead_leave(a, a->disp);
		a->sp += a->disp;
		a->sp_known = a->sp_known && of_sp;
	}
	return UNWIND_AHEAD_ON;
}

/* `to` = `from`, registers. */
static __always_inline int unwind_ahead_move(struct unwind_ahead *a, __u64 to, __u64 from)
{
	if (to == UNWIND_RBP)
		unwind_ahead_set_fp(a, a->sp, from == UNWIND_RSP && a->sp_known);
	if (to != UNWIND_RSP)
		return UNWIND_AHEAD_ON;
	if (from == UNWIND_RBP)
		return unwind_ahead_leave(a, 0);
	a->sp_known = false;
	return UNWIND_AHEAD_ON;
}

/* UNWIND_WRITES_…, as far as they are known. Group 5 is not among them. */
static __always_inline __u64 unwind_ahead_writes(const struct unwind_ahead *a)
{
	__u64 op = a->op & 0xff, reg = a->modrm >> 3 & 7;

	if (a->op >= UNWIND_OP_VEX)
		return op >= 0xf0 ? UNWIND_WRITES_REG : 0;
	if (a->op >= UNWIND_OP_TWO)
		return unwind_x86_entry(UNWIND_X86_TWO_WRITES, op);
	if ((op >> 2 == 0x80 >> 2 && reg == 7) || (op >> 1 == 0xf6 >> 1 && reg >> 1 != 1))
		return 0; /* cmp; test, and those with fixed registers */
	return unwind_x86_entry(UNWIND_X86_ONE_WRITES, op);
}

/* Instructions with a ModRM byte, or without an effect here. */
static __always_inline int unwind_ahead_operands(struct unwind_ahead *a)
{
	__u64 reg = unwind_ahead_reg(a), rm = unwind_ahead_rm(a), writes;

	if (a->op == 0x8d)
		return unwind_ahead_lea(a, reg);
	if ((a->op | 2) == 0x8b && rm != UNWIND_NOT_A_REGISTER)
		return a->op & 2 ? unwind_ahead_move(a, reg, rm) : unwind_ahead_move(a, rm, reg);
	if (a->op == 0x8b && reg == UNWIND_RBP && a->sib == UNWIND_SIB_RSP &&
	    !(a->rex & UNWIND_REX_B)) {
		unwind_ahead_pop_fp(a, a->sp + a->disp);
		return UNWIND_AHEAD_ON;
	}
	if ((a->op == 0x83 || a->op == 0x81) && rm == UNWIND_RSP && (reg & 7) != 7) {
		a->sp += (reg & 7) == 5 ? -a->imm : a->imm;
		a->sp_known = a->sp_known && ((reg & 7) == 5 || !(reg & 7));
		return UNWIND_AHEAD_ON;
	}
	writes = unwind_ahead_writes(a);
	reg = writes & UNWIND_WRITES_REG ? reg : UNWIND_NOT_A_REGISTER;
	rm = writes & UNWIND_WRITES_RM ? rm : UNWIND_NOT_A_REGISTER;
	if (reg == UNWIND_RSP || rm == UNWIND_RSP)
		a->sp_known = false;
	if (reg == UNWIND_RBP || rm == UNWIND_RBP)
		unwind_ahead_set_fp(a, 0, false);
	return UNWIND_AHEAD_ON;
}

static __always_inline int unwind_ahead_pop(struct unwind_ahead *a)
{
	__u64 reg = (a->op & 7) | (a->rex & UNWIND_REX_B) << 3;

	if (reg == UNWIND_RBP)
		unwind_ahead_pop_fp(a, a->sp);
	a->sp_known = a->sp_known && reg != UNWIND_RSP;
	a->sp += 8;
	return UNWIND_AHEAD_ON;
}

/* Group 5: ff /n. */
static __always_inline int unwind_ahead_group(struct unwind_ahead *a)
{
	__u64 number = a->modrm >> 3 & 7;

	if (number == 6)
		a->sp -= 8;
	if (number < 2)
		return unwind_ahead_operands(a);
	return number == 2 || number == 6 ? UNWIND_AHEAD_ON : UNWIND_AHEAD_UNKNOWN;
}

static __always_inline int unwind_ahead_apply(struct unwind_ahead *a)
{
	__u64 op = a->op;

	if (op == 0xc3 || op == 0xc2) {
		a->removed = op == 0xc2 ? a->imm : 0;
		return a->sp_known ? UNWIND_AHEAD_RETURNS : UNWIND_AHEAD_UNKNOWN;
	}
	if (a->fp_same && a->modrm >> 6 != 3 && (a->modrm & 7) == UNWIND_RBP && a->disp < 0 &&
	    a->modrm >> 6 && !(a->rex & UNWIND_REX_B))
		a->uses_fp = true;
	if (op == 0xe9 || op == 0xeb) {
		a->at += a->imm;
		return UNWIND_AHEAD_ON;
	}
	if ((op & ~7ull) == 0x50 || op == 0x68 || op == 0x6a || op == 0x9c) {
		a->sp -= 8;
		return UNWIND_AHEAD_ON;
	}
	if ((op & ~7ull) == 0x58)
		return unwind_ahead_pop(a);
	if (op == 0x9d || op == 0x8f)
		a->sp += 8;
	if (op == 0xc9) {
		unwind_ahead_leave(a, 8);
		unwind_ahead_pop_fp(a, a->sp - 8);
		return UNWIND_AHEAD_ON;
	}
	if (op == 0xff)
		return unwind_ahead_group(a);
	if (op == 0xbd || op == 0x95) /* mov $N,%ebp; xchg %rax,%rbp */
		unwind_ahead_set_fp(a, 0, false);
	return unwind_ahead_operands(a);
}

/* One instruction. enum unwind_ahead_end. */
static __always_inline int unwind_ahead_one(struct unwind_state *s)
{
	if (!unwind_ahead_read(s) || !unwind_ahead_decode(s))
		return UNWIND_AHEAD_UNKNOWN;
	return unwind_ahead_apply(&s->ahead);
}

/* ---- the caller ------------------------------------------------------------------------------ */

static __always_inline void unwind_ahead_begin(struct unwind_state *s)
{
	struct unwind_ahead *a = &s->ahead;

	a->at = s->ip;
	a->start = a->end = 0;
	a->sp = s->sp;
	a->sp_known = true;
	a->fp = s->fp;
	a->fp_known = a->fp_same = !s->fp_lost;
	a->by_fp = a->uses_fp = false;
	a->restored = 0;
}

/* The caller's frame pointer. What the code pushes ahead is not in memory yet. */
static __always_inline long unwind_ahead_fp(struct unwind_state *s, __u64 *fp)
{
	const struct unwind_ahead *a = &s->ahead;

	*fp = s->fp;
	s->fp_lost = s->fp_lost || (!a->restored && !a->fp_same);
	if (a->restored < s->sp)
		return 0;
	s->fp_lost = false;
	return unwind_read_word(s, a->restored, fp);
}

/* The return is reached. STACK_END_NO_FRAME: what should be a return address is none. */
static __always_inline int unwind_ahead_take(struct unwind_state *s)
{
	const struct unwind_ahead *a = &s->ahead;
	bool fp_lost = s->fp_lost;
	__u64 ra, fp;

	if (a->sp < s->sp || a->sp - s->sp > UNWIND_FP_STEP_MAX || (a->sp & 7))
		return STACK_END_NO_FRAME;
	if (unwind_read_word(s, a->sp, &ra))
		return STACK_END_FAULT;
	if (unwind_ahead_fp(s, &fp))
		return STACK_END_FAULT;
	if (!ra && !fp)
		return STACK_END_ROOT;
	s->needs_call = !a->by_fp;
	if (unwind_find_return(s, ra))
		return unwind_take(s, a->by_fp ? FRAME_POINTER : FRAME_INSTRUCTIONS, ra,
				   a->sp + 8 + a->removed, fp);
	s->fp_lost = fp_lost;
	return STACK_END_NO_FRAME;
}

/* May a return address be between the stack pointer and the frame that the frame pointer leads to? */
static __always_inline bool unwind_may_skip(struct unwind_state *s)
{
	__u64 at = s->sp, word;

	s->needs_call = true;
	for (__u32 i = 0; i < UNWIND_AHEAD_WORDS && at < s->fp; i++, at += 8)
		if (unwind_read_word(s, at, &word) || unwind_find_return(s, word))
			return true;
	return at < s->fp;
}

static __always_inline int unwind_by_code_at(struct unwind_state *s)
{
	__u32 steps = s->after_call, by_code = s->by_code;
	int end = UNWIND_AHEAD_ON;

	/* the verifier follows both loops if it can distinguish them */
	UNWIND_HIDE(steps);
	steps = UNWIND_AHEAD_INNERMOST - steps * (UNWIND_AHEAD_INNERMOST - UNWIND_AHEAD_STEPS);
	unwind_ahead_begin(s);
	for (__u32 i = 0; i < UNWIND_AHEAD_INNERMOST && i < steps && end == UNWIND_AHEAD_ON; i++)
		end = unwind_find_ahead(s);
	if (!s->ahead.end) /* not even the first instruction could be read, as in a copied stack */
		return STACK_END_FAULT;
	end = end == UNWIND_AHEAD_RETURNS ? unwind_ahead_take(s) : STACK_END_NO_FRAME;
	if (end != STACK_END_NO_FRAME)
		return end;
	if (!s->ahead.uses_fp && !s->fp_lost && (!s->fp || unwind_may_skip(s)))
		return by_code == UNWIND_NEW_CODE ? STACK_END_NO_FRAME : STACK_END_UNSURE;
	s->needs_call = false;
	return unwind_by_frame_pointer(s);
}

#endif
