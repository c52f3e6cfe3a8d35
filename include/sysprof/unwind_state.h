/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of unwinding one user stack. The algorithm is in unwind_walk.h. */
#ifndef SYSPROF_UNWIND_STATE_H
#define SYSPROF_UNWIND_STATE_H

#include <stdbool.h>

#include <sysprof/event.h>
#include <sysprof/unwind_table.h>

#define UNWIND_WINDOW  4096u
#define UNWIND_GENERAL 16
#define UNWIND_PAGE    4096

/* Hides a value from the compiler and the verifier. */
#define UNWIND_HIDE(x) __asm__ volatile("" : "+r"(x))

#include <sysprof/unwind_replaced.h>

struct unwind_mapping {
	__u64 start, end;
	__u64 bias; /* address - bias is the file's virtual address */
	__u32 table;
};

/* g.sched (struct gobuf) */
struct unwind_go_saved {
	__u64 sp, pc, g, ctxt, unused, bp, old_bp;
};

/* A change from one stack to another. The kernel's verifier does not track values stored here. */
struct unwind_across {
	struct unwind_rule rule;
	__u64 noted[2], top, offset, thread, goroutine, frame[2];
	struct unwind_go_saved saved;
};

#define UNWIND_AHEAD_READ 128u /* bytes of code; a power of two */

/* Code that is followed: unwind_ahead.h. */
struct unwind_ahead {
	__u64 at;	  /* the next instruction */
	__u64 start, end; /* addresses of the code that was read */
	__u64 sp, fp;	  /* the registers before that instruction */
	__u64 restored;	  /* where the caller's frame pointer was taken from; 0: nowhere */
	__u64 removed;	  /* by the return, besides its address */
	bool sp_known, fp_known;
	bool fp_same; /* as at the beginning */
	bool by_fp;   /* sp comes from that */
	bool uses_fp; /* words below it */
	__u32 op, modrm, sib, rex;
	__s64 disp;
	__u64 imm;
	unsigned char code[2 * UNWIND_AHEAD_READ]; /* half of it; offsets are masked */
};

/* Is code followed by its instructions? */
enum unwind_by_code {
	UNWIND_NOT_BY_CODE,
	UNWIND_MADE_CODE, /* in an UNWIND_BY_CODE mapping */
	UNWIND_NEW_CODE,  /* in no mapping, although there are some */
};

struct unwind_state {
	__u64 ip, sp, fp;	       /* of the last frame found */
	__u64 general[UNWIND_GENERAL]; /* by DWARF number; valid if all_known */
	__u32 kind;		       /* enum frame_kind of that frame */
	bool all_known;	 /* all registers are this frame's: innermost, or hit by a signal */
	bool after_call; /* ip is behind its call or system call instruction */
	bool fp_lost;
	bool rbx_known;	    /* general[] has rbx of this frame, even if all_known is false */
	bool is_fresh;	    /* a new task, whose stack is still empty */
	bool in_trampoline; /* the frame before the last is a signal's or a fiber's trampoline */
	__u32 by_code;	    /* enum unwind_by_code: of the last address */
	__u32 peeks;	    /* words that were looked at although no mapping has them */
	__u32 switches;	    /* how often the walk changed stacks */
	struct unwind_across across;
	bool needs_call; /* accept a return address only if it follows a call instruction */
	/* FRAME_INFERRED: no CFI here, and the callee is innermost. So the register from which this
	 * frame restores its stack pointer after the call still has its value. */
	bool was_kept;
	bool was_followed; /* the code was analyzed, without a result */
	bool is_made;	   /* the innermost address is in code that is made as it runs */
	__u32 leaf;	   /* enum unwind_leaf: of the innermost frame, in JIT code */
	__u64 left;	   /* the frame pointer that it had */
	__u64 row;	   /* of the last address looked up, in its table */
	__u64 low, high;   /* the last words read by unwind_find_pair() */
	__u64 call_target; /* of the last call instruction examined */
	__u32 missing; /* why the last address has no rule: STACK_END_NO_TABLE, STACK_END_JAVA; 0 */
	__u32 places, place_count; /* for the includer's use: the mappings of the process ... */
	__u64 places_time; /* ... and the time at which they were valid, CLOCK_MONOTONIC ns */
	bool outside;	   /* an address of the walk is in no mapping */
	struct unwind_mapping mapping; /* of the last address looked up; start > end: none */
	struct unwind_ahead ahead;
	struct unwind_replaced replaced; /* by the includer, before the first frame */
	__u64 window_start, window_end;	 /* the addresses that `window` holds */
	__u64 window[UNWIND_WINDOW / 8];
};

#endif
