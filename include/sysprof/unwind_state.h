/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a walk up a user stack is. What it does is in unwind_walk.h. */
#ifndef SYSPROF_UNWIND_STATE_H
#define SYSPROF_UNWIND_STATE_H

#include <stdbool.h>

#include <sysprof/event.h>
#include <sysprof/unwind_table.h>

#define UNWIND_WINDOW  4096u
#define UNWIND_GENERAL 16

struct unwind_mapping {
	__u64 start, end;
	__u64 bias; /* address - bias is the file's virtual address */
	__u32 table;
};

/* g.sched (struct gobuf) */
struct unwind_go_saved {
	__u64 sp, pc, g, ctxt, unused, bp, old_bp;
};

/* On the way from one stack to another. The kernel's verifier follows no values that are kept here. */
struct unwind_across {
	struct unwind_rule rule;
	__u64 noted[2], top, offset, thread, goroutine, frame[2];
	struct unwind_go_saved saved;
};

struct unwind_state {
	__u64 ip, sp, fp;	       /* of the frame that was found last */
	__u64 general[UNWIND_GENERAL]; /* by DWARF number; while `all_known` */
	__u32 kind;		       /* enum frame_kind of that frame */
	bool all_known;	 /* all registers are its own: it is the innermost, or a signal met it */
	bool after_call; /* ip is behind the call that it is in */
	bool fp_lost;
	bool rbx_known;	    /* general[] has that of this frame, whatever all_known says */
	bool is_fresh;	    /* a task that was just made, on a stack that has nothing on it yet */
	bool in_trampoline; /* the frame before the last is where a signal handler returns to */
	bool by_code;	    /* the last address lies in UNWIND_BY_CODE */
	__u32 switches;	    /* how often it went to another stack */
	struct unwind_across across;
	bool needs_call; /* a return address is taken only if it follows a call */
	/* Of FRAME_INFERRED: code without CFI called this frame's callee, which is the innermost frame: what the caller takes
	 * its stack pointer from behind the call is still in its register. */
	bool was_kept;
	bool was_followed; /* the code was read, and its instructions do not tell */
	__u64 row;	   /* of the last address that was looked for, in its table */
	__u64 low, high;   /* the last words that were read by unwind_find_pair() */
	__u64 call_target; /* of the last call instruction that was looked at */
	__u32 missing; /* why the last address has no rule: STACK_END_NO_TABLE, STACK_END_JAVA; 0 */
	__u32 places, place_count;	/* the surroundings' own ... */
	__u64 places_time;		/* ... and of when they are, CLOCK_MONOTONIC ns */
	bool outside;			/* an address on the way lies in none of them */
	struct unwind_mapping mapping;	/* of the last address looked for; start > end: none */
	__u64 window_start, window_end; /* what `window` holds */
	__u64 window[UNWIND_WINDOW / 8];
};

#endif
