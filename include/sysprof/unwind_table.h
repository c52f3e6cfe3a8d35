/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unwind table of an executable file: for every address, the rule that finds the caller.
 * Compiled from .eh_frame by unwind/, read by the eBPF program and by the same code built natively.
 *
 * A row is an address and the rule from there to the next row. Buckets divide the code, of 256
 * bytes each, so a row stores one byte of its address. The index has the number of each bucket's
 * first row; a search takes at most eight steps. At the start of a bucket the last row before it
 * applies; for the first bucket that is row 0, an empty rule. Rules repeat, so a row stores the
 * number of a rule in the dictionary, in one byte if the file has at most 256 rules.
 *
 * The parts of a table follow each other in its segment: struct unwind_rule dictionary[], __u32
 * index[buckets + 1], numbers[rows] of `number_size` bytes, __u8 address[rows], and UNWIND_SLACK
 * bytes that a search may read but does not use.
 */
#ifndef SYSPROF_UNWIND_TABLE_H
#define SYSPROF_UNWIND_TABLE_H

#include <linux/types.h>

#define UNWIND_BUCKET_BITS 8
#define UNWIND_BUCKET_SIZE (1u << UNWIND_BUCKET_BITS)
#define UNWIND_SLACK	   (2 * UNWIND_BUCKET_SIZE)

/* The canonical frame address (CFA): the stack pointer before the call. */
enum unwind_cfa {
	UNWIND_CFA_NONE,     /* the file says nothing about this address */
	UNWIND_CFA_SP,	     /* stack pointer + cfa_offset */
	UNWIND_CFA_FP,	     /* frame pointer + cfa_offset */
	UNWIND_CFA_REGISTER, /* another register + cfa_offset; known in the innermost frame only */
	UNWIND_CFA_DEREF,    /* the word at (register + cfa_offset), + cfa_addend */
	/* the word at (the word at (register + offset) + offset), + cfa_addend, see below */
	UNWIND_CFA_DEREF_TWICE,
	UNWIND_CFA_PLT,	   /* stack pointer + 8; + 16 from byte cfa_offset of each 16 bytes on */
	UNWIND_CFA_SIGNAL, /* a signal handler's trampoline: all registers are on the stack */
	UNWIND_CFA_ROOT,   /* the outermost frame: no caller */
	/* The function changed to another stack, see unwind_walk.h; it begins at cfa_offset. */
	UNWIND_CFA_SWITCH,	   /* its frame pointer leads to its own frame there */
	UNWIND_CFA_GO_DEPTH,	   /* Go's asmcgocall without a frame */
	UNWIND_CFA_GO_CALLER,	   /* Go's systemstack without a frame */
	UNWIND_CFA_GO_INTERRUPTED, /* Go's morestack */
	UNWIND_CFA_UNKNOWN,	   /* unsupported CFI */
	UNWIND_CFA_LATER, /* JIT code newer than the table: the collector will find out its rule */
	/* the return address is that of a starter, which was put where a stack begins */
	UNWIND_CFA_STARTER,
};

/* The caller's frame pointer. */
enum unwind_fp {
	UNWIND_FP_SAME,
	UNWIND_FP_AT_CFA,  /* at CFA + fp_offset */
	UNWIND_FP_AT_FP,   /* at this frame's pointer + fp_offset */
	UNWIND_FP_UNKNOWN, /* cannot be recovered */
};

/*
 * The caller's rbx. Tracked only in files with frames that are relative to it (glibc's dynamic
 * linker, in lazy binding). In other files it would only make the tables larger.
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
	UNWIND_RA_INTERRUPTED, /* as AT_CFA, of a frame that a signal interrupted: no call before */
	/* as AT_CFA, if the address follows a call: there is no CFI here, the rule is inferred from
	 * instructions. With UNWIND_CFA_NONE: it could not be inferred. */
	UNWIND_RA_INFERRED,
	/* in register ra_offset; known in the innermost frame only. A separate bit. */
	UNWIND_RA_REGISTER = 4,
};

/* Fields that a kind does not use are 0. Registers are DWARF register numbers. */
struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 cfa_register;
	__u8 fp : 4;  /* enum unwind_fp */
	__u8 rbx : 4; /* enum unwind_rbx */
	__u8 ra;      /* enum unwind_ra */
	__s32 cfa_offset, fp_offset;
	__s16 ra_offset, cfa_addend;
};

/* The offsets of UNWIND_CFA_DEREF_TWICE are the halves of cfa_offset, `first` the lower one. */
static inline __s32 unwind_two_offsets(__s16 first, __s16 second)
{
	return (__s32)((__u32)(__u16)second << 16 | (__u16)first);
}

static inline __s16 unwind_first_offset(__s32 offsets)
{
	return (__s16)offsets;
}

static inline __s16 unwind_second_offset(__s32 offsets)
{
	return (__s16)(offsets >> 16);
}

#define UNWIND_RULES_MAX (1u << 16) /* of one table, because their numbers have 16 bits at most */

/* Where a table is; offsets are bytes in its segment. */
struct unwind_table {
	__u64 base;    /* ELF virtual address of the first bucket, a multiple of its size */
	__u32 buckets; /* 0: the file describes no code */
	__u32 dictionary, index, numbers, addresses;
	__u16 segment;
	__u16 number_size; /* 0: the table is not loaded: not yet, or no longer */
};

/* ---- where the kernel finds them ------------------------------------------------------------- */

/*
 * All of this is in arrays shared by the kernel and the collector. The collector writes them
 * without system calls. The kernel writes only one: when a table was last used.
 *
 * Each process has one word in a hash table. It says where the process's places are: a sorted array
 * of start addresses, then the rest of each place. Places never change: a process that maps
 * something gets new places first, and then a new word.
 */
#define UNWIND_PROCESSES    8192u /* words; a power of two */
#define UNWIND_PROBES	    16u	  /* words that are searched for a process, from its hash on */
#define UNWIND_TABLES	    8192u
#define UNWIND_PLACES_SIZE  (4u << 20) /* bytes for the places of all processes, a power of two */
#define UNWIND_PLACES_ALIGN 64u
#define UNWIND_PLACES_MAX   4095u /* of one process */
#define UNWIND_SEGMENTS	    16u

/* Special table numbers. */
#define UNWIND_NO_TABLE (~0u) /* there is none: use frame pointers */
#define UNWIND_LATER	(~1u) /* not built yet */
#define UNWIND_JAVA	(~2u) /* code of a HotSpot that uses the frame pointer for something else */
#define UNWIND_BY_CODE	(~3u) /* code that may keep no frame pointer: see unwind_ahead.h */

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

/* Distinguishes the places of one time from those of another. */
static inline __u32 unwind_tag(__u64 as_of)
{
	return (__u32)(as_of >> 10) | 1;
}

static inline __u32 unwind_hash(__u32 tgid)
{
	return (tgid * 2654435761u) >> 19; /* 13 bits: UNWIND_PROCESSES */
}

/*
 * The last execve with a hash: tgid in 22 bits, and CLOCK_MONOTONIC in units of 16 us in 42 bits,
 * which wrap after two years. One word, so that it is read and written atomically.
 */
#define UNWIND_EXEC_UNIT_BITS 14

static inline __u64 unwind_exec_word(__u32 tgid, __u64 time)
{
	return (time >> UNWIND_EXEC_UNIT_BITS) << 22 | tgid;
}

/* Is this an execve of this process after `as_of`? Not if within the same 16 us. */
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

/* x86-64: DWARF register numbers, and offsets of registers in a signal frame. */
#define UNWIND_X86_RBX		  3
#define UNWIND_X86_RDI		  5
#define UNWIND_X86_RBP		  6
#define UNWIND_X86_RSP		  7
#define UNWIND_X86_RA		  16
#define UNWIND_X86_SIGNAL_CONTEXT 40 /* of the stack pointer: r8 to r15, rdi, rsi, rbp, rbx, … */
#define UNWIND_X86_SIGNAL_RSP	  160

/* Offsets in Go's structures: g.stack.hi, g.m, g.sched. The other offsets are in the rules. */
#define UNWIND_GO_STACK_TOP 8
#define UNWIND_GO_THREAD    0x30
#define UNWIND_GO_SAVED	    0x38
#define UNWIND_GO_SAVED_BP  0x60 /* of g; older versions had one more word before it */
#define UNWIND_GO_NEAR	    512

#endif
