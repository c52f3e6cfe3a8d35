/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions of 64-bit x86: length, target, effect on the stack pointer. Nothing else is decoded.
 * Registers have the numbers of the machine code (rsp 4, rbp 5).
 */
#ifndef ELF_X86_CODE_H
#define ELF_X86_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_RSP	     4
#define X86_RBP	     5
#define X86_SIZE_MAX 15

enum x86_effect {
	X86_PLAIN,     /* no effect here but for `writes` */
	X86_PADDING,   /* does nothing */
	X86_PUSH,      /* push reg; X86_NO_REGISTER: another word */
	X86_POP,       /* pop reg */
	X86_ADD_SP,    /* rsp += amount */
	X86_COPY_SP,   /* reg = rsp + amount */
	X86_SET_SP,    /* rsp = reg + amount */
	X86_LOAD_SP,   /* rsp = what is at rsp + amount */
	X86_LOAD,      /* reg = what is at rsp + amount */
	X86_LOAD_FP,   /* rbp = what is at rbp */
	X86_STORE,     /* what is at rsp + amount = reg */
	X86_LEAVE,     /* rsp = rbp, pop rbp */
	X86_LOSE_SP,   /* rsp becomes unknown */
	X86_CALL,      /* it returns */
	X86_BRANCH,    /* to target, or on */
	X86_JUMP,      /* to target */
	X86_JUMP_AWAY, /* target unknown */
	X86_RETURN,
	X86_STOP, /* what lies behind is not reached from here */
};

#define X86_NO_REGISTER 16

struct x86_instruction {
	uint8_t size;
	uint8_t effect; /* enum x86_effect */
	uint8_t reg;
	uint16_t
		writes; /* bits of the registers that it may change, but for rsp as `effect` says */
	int32_t amount; /* of a jump or a call: the target's distance from the end */
};

/* False: unknown instruction, or it does not end within `size`. */
bool x86_decode(const uint8_t *code, size_t size, struct x86_instruction *instruction);

#endif
