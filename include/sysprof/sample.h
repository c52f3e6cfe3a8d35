/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The events that the kernel side writes: samples with frames, notes and stack ends, visits, copies
 * of stacks and code, CPU time at a thread's end, control groups.
 */
#ifndef SYSPROF_SAMPLE_H
#define SYSPROF_SAMPLE_H

#include <sysprof/event_header.h>

/*
 * A frame is an address whose top byte says how it was found. The top byte of a kernel address is
 * always 0xff (with 4 and 5 page-table levels), so kernel addresses are stored unchanged.
 */
#define FRAME_KINDS(X)                                                                             \
	X(NONE, "none", 0, "")                                                                     \
	X(IP, "ip", 1, "where the thread was")                                                     \
	X(POINTER, "frame-pointer", 0, "by frame pointer")                                         \
	X(TABLE, "table", 0, "by unwind table")                                                    \
	X(LEAF_PEEK, "prologue", 0, "by the innermost function's first instructions")              \
	X(AFTER_SIGNAL, "signal", 1, "where a signal came")                                        \
	X(SIGNAL_RETURN, "signal-return", 1, "where its handler, or a fiber, returns to")          \
	X(INSTRUCTIONS, "instructions", 0, "by the instructions that its callee returns to")       \
	X(SWITCH, "stack-switch", 0, "by frame pointer, from another stack")                       \
	X(INFERRED, "inferred", 0, "inferred (code without CFI)")                                  \
	X(CODE_HEAP, "code-heap", 0, "by the JVM's code heap")

/* X(ENUM, name, exact, text): an address that is not exact is a return address. */
enum frame_kind {
#define X(id, name, exact, text) FRAME_##id,
	FRAME_KINDS(X)
#undef X
		FRAME_KIND_COUNT,
	FRAME_KERNEL = 0xff, /* the first kernel frame is exact, the others are return addresses */
};
#define FRAME_KIND_SHIFT   56
#define FRAME_ADDRESS_MASK ((1ULL << FRAME_KIND_SHIFT) - 1)

static inline __u64 frame_pack(enum frame_kind kind, __u64 address)
{
	return ((__u64)kind << FRAME_KIND_SHIFT) | (address & FRAME_ADDRESS_MASK);
}

static inline enum frame_kind frame_kind(__u64 frame)
{
	return (enum frame_kind)(frame >> FRAME_KIND_SHIFT);
}

/* The virtual address of a packed frame. */
static inline __u64 frame_address(__u64 frame)
{
	return frame_kind(frame) == FRAME_KERNEL ? frame : frame & FRAME_ADDRESS_MASK;
}

/*
 * How a user stack ended. X(ENUM, name, complete, sentence): `complete` says whether the stack
 * reached its root (or rightly has no user part), which is what the complete-stack share counts.
 */
#define STACK_ENDS(X)                                                                              \
	X(ROOT, "root", 1, "the thread's entry point was reached")                                 \
	X(NO_USER, "no-user", 1, "a kernel thread, which has no user stack")                       \
	X(DISABLED, "disabled", 1, "user stacks were not requested")                               \
	X(DEPTH, "depth", 0, "deeper than --max-depth")                                            \
	X(FAULT, "fault", 0, "a page of the stack could not be read")                              \
	X(NO_FRAME, "no-frame", 0, "the frame pointer does not lead to a frame")                   \
	X(COMPAT, "compat", 0, "a 32-bit task")                                                    \
	X(USER_WORKER, "user-worker", 0, "a kernel worker that runs for a user process")           \
	X(NO_REGS, "no-regs", 0, "the user registers could not be read")                           \
	X(BUDGET, "budget", 0, "the time budget of one stack was used up")                         \
	X(NO_CALLER, "no-caller", 0, "return address is not in executable memory")                 \
	X(NO_RULE, "no-rule", 0, "unsupported CFI rule")                                           \
	X(COPY, "copy", 0, "stack copy truncated (unwind tables not ready)")                       \
	X(STALE, "stale", 0, "unwound with outdated mappings")                                     \
	X(NO_TABLE, "no-table", 0, "the unwind table of a file was not in memory")                 \
	X(JAVA, "java", 0, "Java without -XX:+PreserveFramePointer, whose code heap is not known") \
	X(NO_MEMORY, "no-memory", 1, "the process was exiting or in execve: it had no user stack") \
	X(CODE_HEAP, "code-heap", 0, "a JVM's code heap does not lead to a caller")                \
	X(UNSURE, "unsure", 0, "JIT code that may keep no frame pointer")                          \
	X(OTHER_STACK, "other-stack", 0,                                                           \
	  "on a stack of its own (a fiber's, or for signals), whose start is not known")

enum stack_end {
#define X(id, name, complete, text) STACK_END_##id,
	STACK_ENDS(X)
#undef X
		STACK_END_COUNT
};

#define SAMPLE_KERNEL_DEPTH_MAX 127
#define SAMPLE_USER_DEPTH_MAX	1024 /* the limit of --max-depth */

struct sample_event {
	struct event_header header;
	__u64 tsc;	/* raw TSC of this CPU as perf's counter has it; 0: not read */
	__u64 cpu_time; /* CPU the thread has used in its life, ns, as CLOCK_THREAD_CPUTIME_ID */
	__u32 tgid;	/* in the pid namespace of the recorder, as in every event */
	__u32 tid;
	__u32 cpu;	     /* ~0: unknown, of a file of perf */
	__u16 kernel_frames; /* leaf first */
	__u16 user_frames;   /* leaf first, after the kernel's */
	__u8 user_end;	     /* enum stack_end */
	__u8 from_user;	     /* 1: the tick interrupted user code; 0: kernel code */
	__u16 notes;	     /* behind the frames */
	__u32 places_tag;    /* unwind_tag() of the mappings that it was unwound with; 0: none */
	__u64 period; /* events that it stands for, of an event that is no clock; 0: a clock's tick */
	__u64 frames
		[]; /* kernel_frames + user_frames packed frames, then `notes` struct frame_note */
};

/*
 * The function of a runtime that a frame belongs to: the words that identified it in the runtime's
 * memory at the sample. EVENT_CODE_FUNCTION resolves them. X(ENUM, runtime)
 *
 * V8            SharedFunctionInfo of a JavaScript frame. place: bytecode offset, 0: not
 *               interpreted. check: upper half: V8's number for the function, unique in its
 *               isolate, or (Node.js 18 to 21) that of its script; lower half: its number in its
 *               script. 0: unknown, as in old recordings
 * PYTHON        code object of a Python frame. place: bytes from there to the instruction. function
 *               0: the group's outer frames and later groups have no notes; check 0: no function
 * HOTSPOT       Method of an interpreted frame. check: ConstMethod; place: bytes from it to the
 *               bytecode; 0: unknown
 * PYTHON_LOOP   the native frame is the interpreter loop of the Python frames of group `place`
 * HOTSPOT_CODE  blob of compiled code or a stub. check: compile id, then low half of the Method's
 *               address; place: bytes from the blob to the instruction or return address. In
 *               EVENT_CODE_FUNCTION also code that lasts as long as its process: its first address;
 *               check: its size, below 2^32
 * V8_WASM       instance of a WebAssembly frame. check, in EVENT_CODE_FUNCTION: index + 1
 * V8_FRAME      type of another V8 frame in JIT code
 *
 * The numbers are in recordings: new ones go at the end. Kinds without a runtime have no functions.
 */
#define FRAME_NOTES(X)                                                                             \
	X(NONE, "")                                                                                \
	X(V8, "V8")                                                                                \
	X(PYTHON, "CPython")                                                                       \
	X(HOTSPOT, "HotSpot")                                                                      \
	X(PYTHON_LOOP, "")                                                                         \
	X(HOTSPOT_CODE, "HotSpot")                                                                 \
	X(V8_WASM, "WebAssembly")                                                                  \
	X(V8_FRAME, "V8")

enum frame_note_kind {
#define X(id, runtime) FRAME_NOTE_##id,
	FRAME_NOTES(X)
#undef X
		FRAME_NOTE_COUNT
};

/*
 * Notes are in the order of the frames, leaf first; those of Python frames in the order of Python's
 * chain, with `frame` the number of their group: the frames that one call of
 * the interpreter loop runs.
 */
struct frame_note {
	__u16 frame;	/* number of the user frame, 0 is the leaf */
	__u8 kind;	/* enum frame_note_kind */
	__u8 flags;	/* Python: FRAME_NOTE_GIL_* */
	__u32 place;	/* in the function's code, see above */
	__u64 function; /* an address */
	__u64 check;	/* other words that must be unchanged when the function is read; 0: none */
};
#define FRAME_NOTES_MAX 256u

/* The thread and the GIL of its interpreter at the sample; equal in all notes of a sample. */
#define FRAME_NOTE_GIL_KNOWN                                                                       \
	1u /* the state was read. Neither HELD nor WAITS: the thread ran native code without it */
#define FRAME_NOTE_GIL_HELD 2u
#define FRAME_NOTE_GIL_WAITS                                                                       \
	4u /* it was about to wait for the GIL, or had just waited (Python 3.15) */

#ifndef __bpf__
/* Is `frame` of a note of this kind the number of a group? */
#define frame_note_has_group(kind) ((kind) == FRAME_NOTE_PYTHON)

/* The notes of a checked sample. */
static inline const struct frame_note *sample_notes(const struct sample_event *e)
{
	return (const struct frame_note *)(e->frames + e->kernel_frames + e->user_frames);
}
#endif

/* ---- visits ---------------------------------------------------------------------------------- */

/* visit_account.found */
#define VISIT_RUNNABLE	0x01u /* it waited for a CPU */
#define VISIT_THROTTLED 0x02u /* the CPU quota of its control group was used up */
#define VISIT_IO_WAIT	0x04u /* in_iowait */
#define VISIT_STOPPED	0x08u /* by a signal, a debugger or the freezer */
#define VISIT_RUNNING	0x10u /* it ran; only at the end */
#define VISIT_ACCOUNT	0x20u /* there is no stack: the last account of the thread */
#define VISIT_LOCK                                                                                 \
	0x40u /* it waited for a lock of the kernel, whose holder may be of another process */
#define VISIT_PENDING 0x80u /* io_uring or libaio: it waited for reads, writes, … of its own */
#define VISIT_ALL     0xffu

#define VISIT_NO_CALL (-1) /* of visit_account.call: no system call, as in a page fault */
#define VISIT_CALL_UNKNOWN                                                                         \
	(-2) /* not read, or of a 32-bit task, whose system calls have other numbers */

/*
 * The account of a thread when it was visited. A thread that has not run since its last visit is
 * not visited again: what was seen still holds.
 */
struct visit_account {
	struct event_header header;
	__u64 seen;	 /* CLOCK_MONOTONIC ns; header.time is the end of the visit */
	__u64 unchanged; /* until then it was as its last event says, at least; 0: unknown */
	__u64 started;	 /* the thread itself: CLOCK_MONOTONIC ns */
	__u64 run_delay; /* ns that it has waited for a CPU, up to `seen` */
	__u64 since;	 /* CLOCK_MONOTONIC ns: when it last ran; 0: unknown */
	__u64 switches;	 /* its own: it has waited so often */
	__u32 holder; /* the thread that has the lock that it waits for, by the lock; 0: unknown */
	__u32 reserved;
	__s32 call;  /* the system call that it is in, or VISIT_NO_CALL, … */
	__u32 found; /* VISIT_… */
};

struct visit_event {
	struct visit_account account;
	struct sample_event stack; /* an event in itself: its header has the size of the rest */
};

#ifndef __bpf__
/* The stack of a sample or of a visit; NULL: it is another event, or has none. */
static inline const struct sample_event *event_stack(const struct event_header *event)
{
	const struct visit_event *visit = (const struct visit_event *)event;

	if (event->type == EVENT_SAMPLE)
		return (const struct sample_event *)event;
	return event->type == EVENT_VISIT && !(visit->account.found & VISIT_ACCOUNT) ? &visit->stack
										     : NULL;
}
#endif

/*
 * The books of the visitor. X(ENUM, name, sentence). A look at a thread ends in one of the lines
 * from UNCHANGED on; they add up to LOOKS.
 */
#define VISIT_LINES(X)                                                                             \
	X(DUE, "due", "visits by the requested rate")                                              \
	X(MADE, "made", "visits, at the rate that the budget allowed")                             \
	X(LATE, "late", "visits after their period")                                               \
	X(LOOKS, "looks", "looks at threads")                                                      \
	X(UNCHANGED, "unchanged", "threads that had not run since the last visit")                 \
	X(RUNNING, "running", "threads that were running")                                         \
	X(WALKED, "walked", "threads whose account and stack were taken")                          \
	X(MOVED, "moved", "threads that ran while they were looked at")                            \
	X(GONE, "gone", "threads that ended before they were looked at")                           \
	X(NO_ROOM, "no-room", "threads whose event did not fit into the ring")                     \
	X(TOO_MANY, "too-many", "threads beyond the number that one visit can take")               \
	X(LEFT, "left", "threads that were left when the visitor was abandoned")

enum visit_line {
#define X(id, name, text) VISIT_LINE_##id,
	VISIT_LINES(X)
#undef X
		VISIT_LINE_COUNT
};

struct visit_books_event {
	struct event_header header;
	__u32 lines;   /* VISIT_LINE_COUNT of the recorder */
	__u32 hz;      /* requested */
	__u64 cpu;     /* CPU time of the visitor, ns */
	__u64 made_at; /* CLOCK_MONOTONIC ns: when the latest visit began; 0: there was none */
	__u64 count[VISIT_LINE_COUNT];
};

/*
 * Follows the sample of a process whose unwind tables are not built yet: what is needed to unwind
 * its stack later. The sample's `frames` were found by frame pointer.
 */
struct stack_copy {
	__u64 general[16]; /* registers, by DWARF number */
	__u64 ip;
	__u64 start; /* address of the copy: the stack pointer, or slightly below or above it */
	__u64 holes; /* unreadable pages, one bit each, starting with the page of `start` */
	__u16 in_system_call; /* 1: ip is behind the instruction */
	__u16 is_fresh;	      /* 1: a new task, whose stack is still empty */
	__u32 size;	      /* of the copy, holes included */
	unsigned char stack[];
};

/*
 * The kernel side puts the first STACK_PIECE_MAX bytes of a stack into the sample. Pieces with the
 * bytes above are sent before it, in address order. The collector joins them.
 */
struct stack_piece {
	struct event_header header;
	__u64 start; /* of a page */
	__u64 holes; /* as above */
	unsigned char stack[];
};
#define STACK_PAGE	4096u
#define STACK_PIECE_MAX (16u * 1024)
#define STACK_PIECES	3

/*
 * Precedes the first sample with a Python function: copies of the objects that describe it, taken
 * at that sample. Strings may be truncated, and bytes behind them may belong to something else.
 */
#define CODE_COPY_HEAD	192u
#define CODE_COPY_NAME	192u
#define CODE_COPY_FILE	304u
#define CODE_COPY_TABLE 8192u /* a function with a longer one is not copied */
struct code_copy_event {
	struct event_header header;
	__u32 tgid, reserved;
	__u64 function, check; /* as in its notes */
	__u64 name, file,
		lines;	     /* addresses of the objects; that of the code object is `function` */
	__u64 hash_at, hash; /* 3.11: a word of another object, and where it is; 0: there is none */
	__u16 head_size, name_size, file_size, lines_size; /* bytes that were copied */
	unsigned char head[CODE_COPY_HEAD];
	unsigned char name_bytes[CODE_COPY_NAME];
	unsigned char file_bytes[CODE_COPY_FILE];
	unsigned char lines_bytes[]; /* filled up to a multiple of EVENT_ALIGN */
};

struct thread_cpu_event {
	struct event_header header;
	__u32 tgid, tid;
	__u64 cpu_time; /* ns */
};

/* ---- control groups by id: the collector maps ids to paths ---------------------------------- */

/*
 * Sent with the first tick of a process, and with the first one after a move. Ids are those of
 * directories in the unified hierarchy; they are never reused.
 */
struct in_group_event {
	struct event_header header;
	__u32 tgid;
	__u32 was_excluded; /* its previous group is filtered: so this tick is no sample either */
	__u64 group;
};

/*
 * Precedes the first tentative sample of a process on a CPU, and further ones after new verdicts.
 * The sample is a target's if the verdicts on what is unknown here say so.
 */
#define NAME_PATH_MAX 1024u
struct name_question_event {
	struct event_header header;
	__u32 tgid;
	__u32 cpu;		/* NAME_NO_CPU: of the visitor, and no sample follows */
	__u32 unknown;		/* NAMED_BY_…: what has no verdict yet */
	__u32 decided;		/* NAME_INCLUDED: by what has one */
	__u64 group;		/* the id of its control group */
	__u64 started, exec_id; /* when it was made, and its count of execve calls */
	__u64 exe[4];		/* the file of its program, as in struct name_key */
	__u32 path_size;	/* 0: unknown */
	__u32 is_cut;		/* outer directories are missing */
	char path
		[NAME_PATH_MAX]; /* names of the file and its directories, inner ones first, each with NUL */
};
#define NAME_NO_CPU (~0u)

struct group_made_event {
	struct event_header header;
	__u64 group;
	char path[]; /* from the root of the unified hierarchy; NUL-terminated */
};

#endif
