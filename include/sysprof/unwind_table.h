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
 * numbers[rows] of `number_size` bytes, __u8 address[rows], and UNWIND_SLACK bytes that a search may read
 * and does not use.
 */
#ifndef SYSPROF_UNWIND_TABLE_H
#define SYSPROF_UNWIND_TABLE_H

#include <linux/types.h>

#define UNWIND_BUCKET_BITS 8
#define UNWIND_BUCKET_SIZE (1u << UNWIND_BUCKET_BITS)
#define UNWIND_SLACK	   (2 * UNWIND_BUCKET_SIZE)

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
	/* The function went over to another stack, see unwind_walk.h; it begins at cfa_offset. */
	UNWIND_CFA_SWITCH,	   /* its frame pointer leads to its own frame there */
	UNWIND_CFA_GO_DEPTH,	   /* Go's asmcgocall without a frame */
	UNWIND_CFA_GO_CALLER,	   /* Go's systemstack without a frame */
	UNWIND_CFA_GO_INTERRUPTED, /* Go's morestack */
	UNWIND_CFA_UNKNOWN,	   /* the file says something that we do not know */
	UNWIND_CFA_LATER,	   /* code that was made since: what it is will be asked */
};

/* The caller's frame pointer. */
enum unwind_fp {
	UNWIND_FP_SAME,
	UNWIND_FP_AT_CFA,  /* at CFA + fp_offset */
	UNWIND_FP_AT_FP,   /* at this frame's pointer + fp_offset */
	UNWIND_FP_UNKNOWN, /* not to be had */
};

/*
 * The caller's rbx. It is followed in files alone that have frames by it (glibc's dynamic linker, where it binds
 * symbols lazily): elsewhere it would make tables larger for nothing.
 */
enum unwind_rbx {
	UNWIND_RBX_UNTOLD,
	UNWIND_RBX_SAME,
	UNWIND_RBX_AT_CFA, /* at CFA + cfa_addend */
};

/* The return address. */
enum unwind_ra {
	UNWIND_RA_NONE,
	UNWIND_RA_AT_CFA,      /* at CFA + ra_offset */
	UNWIND_RA_INTERRUPTED, /* the same; no call is in front of it, a signal came there */
	/* the same, if it follows a call: the file says nothing, but its instructions do. With
	 * UNWIND_CFA_NONE: nor do they. */
	UNWIND_RA_INFERRED,
	/* in register ra_offset; known in the innermost frame alone. A bit of its own. */
	UNWIND_RA_REGISTER = 4,
};

/* Fields that a kind does not use are 0. Registers have their numbers of the DWARF ABI. */
struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 cfa_register;
	__u8 fp : 4;  /* enum unwind_fp */
	__u8 rbx : 4; /* enum unwind_rbx */
	__u8 ra;      /* enum unwind_ra */
	__s32 cfa_offset, fp_offset;
	__s16 ra_offset, cfa_addend;
};

/* Where a table is; offsets are bytes in its segment. */
struct unwind_table {
	__u64 base;    /* ELF virtual address of the first bucket, a multiple of its size */
	__u32 buckets; /* 0: the file describes no code */
	__u32 dictionary, index, numbers, addresses;
	__u16 segment;
	__u16 number_size; /* 0: the table is not here: not yet, or not any more */
};

/* ---- where the kernel finds them ------------------------------------------------------------- */

/*
 * All of this is in arrays that the kernel and the collector share, and is written by the collector
 * without a system call. The kernel writes but one of them: when a table was last used.
 *
 * A process has one word in a hash table of such words, which says where its
 * places are: a sorted array of starts, and behind it the rest of each. What a word leads to is never
 * changed: a process that maps something gets other places and then another word.
 */
#define UNWIND_PROCESSES    8192u /* words; a power of two */
#define UNWIND_PROBES	    16u	  /* words that a process may be in, from its hash on */
#define UNWIND_TABLES	    8192u
#define UNWIND_PLACES_SIZE  (4u << 20) /* bytes for the places of all processes, a power of two */
#define UNWIND_PLACES_ALIGN 64u
#define UNWIND_PLACES_MAX   4095u /* of one process */
#define UNWIND_SEGMENTS	    16u

/* Instead of the number of a table. */
#define UNWIND_NO_TABLE (~0u) /* frame pointers have to do */
#define UNWIND_LATER	(~1u) /* it is not here yet */
#define UNWIND_JAVA	(~2u) /* code of a HotSpot that uses the frame pointer for something else */
#define UNWIND_BY_CODE	(~3u) /* small pieces without frame pointers: their instructions tell */

struct unwind_place {
	__u64 end;  /* of an executable mapping */
	__u64 bias; /* address - bias is the file's virtual address */
	__u32 table;
	__u32 unused;
};

/* tgid 22 bits, number of places 12, where they are (in units of UNWIND_PLACES_ALIGN) 30 */
static inline __u64 unwind_word(__u32 tgid, __u32 count, __u32 offset)
{
	return ((__u64)(offset / UNWIND_PLACES_ALIGN) << 34) | (__u64)count << 22 | tgid;
}

static inline __u32 unwind_word_tgid(__u64 word)
{
	return word & ((1u << 22) - 1);
}

static inline __u32 unwind_word_count(__u64 word)
{
	return (word >> 22) & UNWIND_PLACES_MAX;
}

static inline __u32 unwind_word_offset(__u64 word)
{
	return (__u32)(word >> 34) * UNWIND_PLACES_ALIGN;
}

/* Tells the places of one time from those of another. */
static inline __u32 unwind_tag(__u64 as_of)
{
	return (__u32)(as_of >> 10) | 1;
}

static inline __u32 unwind_hash(__u32 tgid)
{
	return (tgid * 2654435761u) >> 19; /* 13 bits: UNWIND_PROCESSES */
}

/*
 * The last execve that fell on a hash: tgid 22 bits, and CLOCK_MONOTONIC in units of 16 us, 42 bits, which wrap
 * after two years. One word, so that it is read and written in one piece.
 */
#define UNWIND_EXEC_UNIT_BITS 14

static inline __u64 unwind_exec_word(__u32 tgid, __u64 time)
{
	return (time >> UNWIND_EXEC_UNIT_BITS) << 22 | tgid;
}

/* Is that the execve of this process, and later than `as_of`? One in the same 16 us is not. */
static inline int unwind_exec_is_after(__u64 word, __u32 tgid, __u64 as_of)
{
	return unwind_word_tgid(word) == tgid &&
	       (__s64)((word >> 22 << 22) - ((as_of >> UNWIND_EXEC_UNIT_BITS) << 22)) > 0;
}

#ifndef __bpf__
_Static_assert(UNWIND_PROCESSES == 1u << (32 - 19), "unwind_hash()");
_Static_assert(sizeof(struct unwind_place) == 24, "three words");
_Static_assert(sizeof(struct unwind_rule) == 16, "four to a cache line");
_Static_assert(sizeof(struct unwind_table) == 32, "two to a cache line");
#endif

/* x86-64: numbers of the DWARF ABI, and where a signal frame has the registers of what it interrupted. */
#define UNWIND_X86_RBX		  3
#define UNWIND_X86_RBP		  6
#define UNWIND_X86_RSP		  7
#define UNWIND_X86_RA		  16
#define UNWIND_X86_SIGNAL_CONTEXT 40 /* of the stack pointer: r8 to r15, rdi, rsi, rbp, rbx, … */
#define UNWIND_X86_SIGNAL_RBP	  120
#define UNWIND_X86_SIGNAL_RSP	  160
#define UNWIND_X86_SIGNAL_RIP	  168

/* Go's structures: g.stack.hi, g.m, g.sched. The rest of what is needed is in the rules. */
#define UNWIND_GO_STACK_TOP 8
#define UNWIND_GO_THREAD    0x30
#define UNWIND_GO_SAVED	    0x38
#define UNWIND_GO_SAVED_BP  0x60 /* of g; before there was a word more */
#define UNWIND_GO_NEAR	    512

#endif
