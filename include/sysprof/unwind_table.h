/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the stack of a function is taken apart, for every address of one executable file: compiled
 * from its .eh_frame by unwind/, read by the eBPF program and by its native twin.
 *
 * A row says from which address on which rule holds, up to the next row. The code is cut into
 * buckets of 256 bytes, so that a row needs one byte of its address: the index has the number of
 * each bucket's first row, and at most eight steps find the right one. What holds at the start of a
 * bucket is the last row before it; row 0 is there for the first bucket and says nothing. Rules repeat, so
 * rows have numbers of them, of one byte where the file has no more than 256.
 *
 * In the segment a table is, one behind the other: struct unwind_rule dictionary[], __u32 index[buckets + 1],
 * numbers[rows] of `number_size` bytes, __u8 address[rows].
 */
#ifndef SYSPROF_UNWIND_TABLE_H
#define SYSPROF_UNWIND_TABLE_H

#include <linux/types.h>

#define UNWIND_BUCKET_BITS 8
#define UNWIND_BUCKET_SIZE (1u << UNWIND_BUCKET_BITS)

/* The canonical frame address (CFA): the stack pointer before the call, as it was pushed for. */
enum unwind_cfa {
	UNWIND_CFA_NONE,     /* the file says nothing about this address */
	UNWIND_CFA_SP,	     /* stack pointer + cfa_offset */
	UNWIND_CFA_FP,	     /* frame pointer + cfa_offset */
	UNWIND_CFA_REGISTER, /* another register + cfa_offset; known in the innermost frame alone */
	UNWIND_CFA_DEREF,    /* what is at register + cfa_offset, + cfa_addend */
	UNWIND_CFA_PLT,	     /* stack pointer + 8, and 8 more from byte cfa_offset of 16 on */
	UNWIND_CFA_SIGNAL,   /* the return of a signal handler: all registers are on the stack */
	UNWIND_CFA_ROOT,     /* nobody called this */
	UNWIND_CFA_UNKNOWN,  /* the file says something that we do not know */
};

/* The caller's frame pointer. */
enum unwind_fp {
	UNWIND_FP_SAME,
	UNWIND_FP_AT_CFA,  /* at CFA + fp_offset */
	UNWIND_FP_AT_FP,   /* at this frame's pointer + fp_offset */
	UNWIND_FP_UNKNOWN, /* not to be had */
};

/* The return address. */
enum unwind_ra {
	UNWIND_RA_NONE,
	UNWIND_RA_AT_CFA,   /* at CFA + ra_offset */
	UNWIND_RA_REGISTER, /* in register ra_offset; known in the innermost frame alone */
};

/* Fields that a kind does not use are 0. Registers have their numbers of the DWARF ABI. */
struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 cfa_register;
	__u8 fp; /* enum unwind_fp */
	__u8 ra; /* enum unwind_ra */
	__s32 cfa_offset, fp_offset;
	__s16 ra_offset, cfa_addend;
};

/* Where a table is; offsets are bytes in its segment. */
struct unwind_table {
	__u64 base;    /* ELF virtual address of the first bucket, a multiple of its size */
	__u32 buckets; /* 0: there is no table */
	__u32 dictionary, index, numbers, addresses;
	__u16 rules; /* in the dictionary */
	__u16 number_size;
};

#ifndef __bpf__
_Static_assert(sizeof(struct unwind_rule) == 16, "four to a cache line");
_Static_assert(sizeof(struct unwind_table) == 32, "two to a cache line");
#endif

/* x86-64: numbers of the DWARF ABI, and where a signal frame has the registers of what it interrupted. */
#define UNWIND_X86_RBP		  6
#define UNWIND_X86_RSP		  7
#define UNWIND_X86_RA		  16
#define UNWIND_X86_SIGNAL_CONTEXT 40 /* of the stack pointer: r8 to r15, rdi, rsi, rbp, rbx, … */
#define UNWIND_X86_SIGNAL_RBP	  120
#define UNWIND_X86_SIGNAL_RSP	  160
#define UNWIND_X86_SIGNAL_RIP	  168

#endif
