/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events: the only wire format of the program.
 *
 * The eBPF program writes samples as events, capture/ converts everything else that is read from
 * outside (perf side-band records, /proc, clocks, kallsyms) into events, and a recording file is a
 * sequence of them, byte for byte. Nothing is resolved here: raw addresses, raw clocks, reason codes.
 *
 * Every event starts with a struct event_header, is a multiple of 8 bytes long and holds no
 * pointers. Multi-byte fields are in the byte order of the machine that recorded (the recording
 * file's header says which). Strings are NUL-terminated inside the event, of any bytes. Sizes are
 * checked by stream/event_decode before a field is read; an event of an unknown type is skipped by
 * its size.
 */
#ifndef SYSPROF_EVENT_H
#define SYSPROF_EVENT_H

#include <linux/types.h>
#ifndef __bpf__
#include <stddef.h>
#endif

enum event_type {
	EVENT_NONE = 0,
	/* written by the eBPF program */
	EVENT_SAMPLE = 1,
	EVENT_THREAD_CPU = 2, /* CPU time of a thread at its end; also from /proc, start and stop */
	EVENT_STACK_PIECE = 3, /* more of the stack of the sample that follows; never in a file */
	EVENT_IN_GROUP = 4,    /* the control group of a process, by its id; never in a file */
	EVENT_CODE_COPY =
		5, /* objects that name a Python function, copied at its first sample; never in a file */
	EVENT_VISIT = 6, /* a thread that did not run, as the visitor found it (--wall) */
	/* from perf side-band records; from /proc if EVENT_FROM_PROC is set */
	EVENT_MMAP = 8,
	EVENT_COMM = 9,
	EVENT_FORK = 10,
	EVENT_EXIT = 11,
	EVENT_LOST = 12,
	EVENT_GROUP_MADE = 13, /* the path of a new control group; never in a file */
	/* /proc only */
	EVENT_PROCESS = 16,
	EVENT_THREAD = 17,
	EVENT_MAPS_READ = 18, /* all mappings of a process have just been reported */
	EVENT_MEMORY = 19,    /* how much memory a process has */
	EVENT_CGROUP = 20,    /* the control group that a process is in */
	EVENT_FACTS =
		21, /* facts that a process reports about itself, if the session collects them */
	/* the session */
	EVENT_CLOCK_ANCHOR = 24,
	EVENT_BOOKS = 25,
	EVENT_META = 26,
	EVENT_KALLSYMS = 27,
	EVENT_END = 28,	    /* sampling stopped; time is that of the stop */
	EVENT_WINDOW = 29,  /* a window ends and the next one begins, at header.time */
	EVENT_OUTSIDE = 30, /* counts of what limits left out; a row of base/outside_books.h */
	EVENT_VISIT_BOOKS = 31,
	/* the symbols chunk, appended by a normal stop */
	EVENT_SYMBOL = 32,
	EVENT_SYMBOL_DSO = 33,
	EVENT_SYMBOLS_END = 34, /* all locations of the profile have been reported */
	/* files in which processes report their JIT code: perf maps, jitdumps */
	EVENT_JIT_FILE = 40,
	EVENT_JIT_BYTES = 41,
	/* functions, read from a runtime's memory, that notes of frames refer to */
	EVENT_CODE_FUNCTION = 48,
	EVENT_CODE_CHAIN = 49,
	EVENT_CODE_RUNTIME = 50,
};

/* header.flags */
#define EVENT_FROM_PROC 0x0001 /* state that already held at header.time, not a change */
#define EVENT_COMM_EXEC 0x0002 /* EVENT_COMM: the name comes from an execve */
#define EVENT_BUILD_ID	0x0004 /* EVENT_MMAP: build_id is valid */
/*
 * EVENT_MMAP: the event has a build-id, but users other than the administrator can write or create this file. So the
 * build-id alone does not identify it: device, inode and inode_generation (from size and times) do. inode 0: unknown.
 */
#define EVENT_UNSHARED 0x0080
/* EVENT_MMAP: the file's user is over the limit of files, so all such files count as one. */
#define EVENT_LEFT   0x0100
#define EVENT_EXITED 0x0008 /* EVENT_THREAD_CPU: the thread is exiting */
/* EVENT_THREAD_CPU: earlier CPU time was deliberately not sampled; accounting starts from this value. */
#define EVENT_BASELINE 0x0200
#define EVENT_FINAL    0x0010 /* EVENT_BOOKS: the last counts; no tick follows */
#define EVENT_STACK_COPY                                                                           \
	0x0040 /* EVENT_SAMPLE: a struct stack_copy follows the frames; never in a file */
/* EVENT_CODE_FUNCTION: earlier samples with the same words may belong to another function. */
#define EVENT_DOUBTFUL	0x1000
#define EVENT_NEW_EPOCH 0x0020 /* EVENT_CLOCK_ANCHOR: nothing is interpolated across this point */
#define EVENT_RECORDER	0x0080 /* EVENT_MEMORY: the process is the recorder */
/*
 * EVENT_KALLSYMS. ADDED: symbols that the kernel has added; the earlier ones stay valid. MODULES: a later reading, of
 * all symbols except the kernel image's; they replace the earlier ones when the piece with LAST has arrived.
 */
#define EVENT_KALLSYMS_ADDED   0x0200
#define EVENT_KALLSYMS_MODULES 0x0400
#define EVENT_KALLSYMS_LAST    0x0800

#define EVENT_ALIGN	       8u
#define EVENT_SIZE_MAX	       (64u * 1024)
#define EVENT_LIVE_MAX	       (72u * 1024) /* of an EVENT_SAMPLE with a copy of its stack */
#define EVENT_PATH_MAX	       4096u
#define EVENT_COMM_SIZE	       16
#define BUILD_ID_SIZE	       20

struct event_header {
	__u32 size; /* of the whole event, this header included */
	__u16 type; /* enum event_type */
	__u16 flags;
	__u64 time; /* CLOCK_MONOTONIC in ns; live/ refines a sample's by its TSC */
};

#ifndef __bpf__
/* Sizes of events are multiples of EVENT_ALIGN. */
static inline __u32 event_aligned(size_t size)
{
	return (__u32)((size + EVENT_ALIGN - 1) & ~(size_t)(EVENT_ALIGN - 1));
}
#endif

/* ---- samples --------------------------------------------------------------------------------- */

/*
 * A frame is an address whose top byte says how the frame was found. The top byte of a kernel address
 * is always 0xff (with 4 and with 5 page-table levels), so kernel addresses are stored unchanged.
 */
#define FRAME_KINDS(X)                                                                             \
	X(NONE, "none", 0, "")                                                                     \
	X(IP, "ip", 1, "where the thread was")                                                     \
	X(POINTER, "frame-pointer", 0, "by frame pointer")                                         \
	X(TABLE, "table", 0, "by unwind table")                                                    \
	X(LEAF_PEEK, "prologue", 0, "by the innermost function's first instructions")              \
	X(AFTER_SIGNAL, "signal", 1, "where a signal came")                                        \
	X(SIGNAL_RETURN, "signal-return", 1, "where its handler returns to")                       \
	X(INSTRUCTIONS, "instructions", 0, "by the instructions that its callee returns to")       \
	X(SWITCH, "stack-switch", 0, "by frame pointer, from another stack")                       \
	X(INFERRED, "inferred", 0, "inferred (code without CFI)")                                  \
	X(CODE_HEAP, "code-heap", 0, "by what a JVM's code heap says of the frame before")

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
	X(CODE_HEAP, "code-heap", 0, "a JVM's code heap does not lead to a caller")

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
	__u32 cpu;
	__u16 kernel_frames; /* leaf first */
	__u16 user_frames;   /* leaf first, after the kernel's */
	__u8 user_end;	     /* enum stack_end */
	__u8 from_user;	     /* 1: the tick interrupted user code; 0: kernel code */
	__u16 notes;	     /* behind the frames */
	__u32 places_tag; /* which mappings its user stack was unwound with: unwind_tag(); 0: none */
	__u64 frames
		[]; /* kernel_frames + user_frames packed frames, then `notes` struct frame_note */
};

/*
 * Which function of a runtime a frame belongs to: the words that identify it in the runtime's memory, as they were at
 * the sample. EVENT_CODE_FUNCTION resolves them. X(ENUM, runtime)
 *
 * V8            a JavaScript frame: its SharedFunctionInfo. place: offset into the bytecode array, 0: not interpreted.
 *               check: upper half: V8's number for the function, unique in its isolate, or (Node.js 18 to 21) the number
 *               of its script; lower half: the function's number in its script. 0: unknown, as in old recordings
 * PYTHON        a Python frame: its code object. place: bytes from there to the instruction. function 0: the outer frames
 *               of the group and all later groups have no notes; check 0: the frame has no function
 * HOTSPOT       an interpreted frame: its Method; check: its ConstMethod; place: bytes from there to the bytecode; 0: unknown
 * PYTHON_LOOP   the native frame is the interpreter loop that runs the Python frames of group `place`
 * HOTSPOT_CODE  compiled code and stubs: the blob; check: its compile id, then the low half of its Method's address;
 *               place: bytes from the blob to the instruction or the return address. In EVENT_CODE_FUNCTION also a piece of
 *               code that lasts as long as its process: its first address; check: its size, below 2^32
 * V8_WASM       a WebAssembly frame in V8: the instance of its module; check, in EVENT_CODE_FUNCTION: function index + 1
 * V8_FRAME      another frame of V8 in code made at run time: its type
 *
 * The numbers are stored in recordings: new ones go at the end.
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
 * Notes are in the order of the frames, leaf first. Notes of Python frames are in the order of Python's own chain, and
 * `frame` is the number of their group: the frames that one call of the interpreter loop runs.
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
	1u /* the state was read. Without HELD and WAITS, the thread ran native code without the GIL */
#define FRAME_NOTE_GIL_HELD 2u
#define FRAME_NOTE_GIL_WAITS                                                                       \
	4u /* it was about to wait for the GIL, or had just waited (Python 3.15) */

#ifndef __bpf__
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
#define VISIT_ALL     0x7fu

#define VISIT_NO_CALL (-1) /* of visit_account.call: no system call, as in a page fault */
#define VISIT_CALL_UNKNOWN                                                                         \
	(-2) /* not read, or of a 32-bit task, whose system calls have other numbers */

/*
 * The account of a thread when it was visited. A thread that has not run since its last visit is not visited again: what
 * was seen still holds.
 */
struct visit_account {
	struct event_header header;
	__u64 seen;	 /* CLOCK_MONOTONIC ns; header.time is the end of the visit */
	__u64 unchanged; /* until then it was as its last event says, at least; 0: unknown */
	__u64 started;	 /* the thread itself: CLOCK_MONOTONIC ns */
	__u64 run_delay; /* ns that it has waited for a CPU, up to `seen` */
	__u64 since;	 /* CLOCK_MONOTONIC ns: when it last ran; 0: unknown */
	__u64 switches;	 /* its own: it has waited so often */
	__u32 holder; /* the thread that has the lock that it waits for, as the lock says; 0: not known */
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
 * The books of the visitor. X(ENUM, name, sentence). A look at a thread ends in one of the lines from UNCHANGED on; they
 * add up to LOOKS.
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
 * Follows the sample of a process whose unwind tables are not built yet: everything needed to unwind
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
 * The kernel side puts the first STACK_PIECE_MAX bytes of a stack into the sample itself. The bytes above
 * are sent before it as pieces, in address order. The collector joins them.
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
#define STACK_COPY_MAX	((STACK_PIECES + 1) * STACK_PIECE_MAX)

/*
 * Precedes the first sample with a Python function: copies of the objects that describe the function, taken at that
 * sample. Strings may be truncated, and bytes behind them may belong to something else.
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

/* ---- control groups by id: from the kernel to the collector, which maps ids to paths ---------- */

/*
 * Sent with the first tick of a process, and with the first one after a move. Ids are those of directories in the
 * unified hierarchy; they are never reused.
 */
struct in_group_event {
	struct event_header header;
	__u32 tgid;
	__u32 was_excluded; /* ticks of its previous group are filtered: so this tick is no sample either */
	__u64 group;
};

struct group_made_event {
	struct event_header header;
	__u64 group;
	char path[]; /* from the root of the unified hierarchy; NUL-terminated */
};

/* ---- processes and mappings ------------------------------------------------------------------ */

/*
 * The result of opening the mapped file, which is done as soon as the mapping is seen.
 * X(ENUM, sentence)
 */
#define FILE_STATES(X)                                                                             \
	X(NONE, "not backed by a file")                                                            \
	X(UNOPENED, "not opened")                                                                  \
	X(RIGHT, "opened; its build-id or inode matches the mapping")                              \
	X(MISSING, "file and process are gone")                                                    \
	X(REPLACED, "replaced by another file")                                                    \
	X(NOT_REGULAR, "not a regular file")                                                       \
	X(TOO_BIG, "exceeds the size limit")                                                       \
	X(DENIED, "permission denied")                                                             \
	X(NO_FDS, "no file descriptor left")                                                       \
	X(NO_ANSWER, "its file system did not answer")                                             \
	X(BANNED, "not read: earlier files of this user did not answer")                           \
	X(OVER_BUDGET, "not read: this user's files take too much to read")                        \
	X(LATE, "not read in time: files of this user were too slow")

enum file_state {
#define X(id, text) FILE_STATE_##id,
	FILE_STATES(X)
#undef X
		FILE_STATE_COUNT
};

/* A new executable mapping. Other mappings are not reported. */
struct mmap_event {
	struct event_header header;
	__u32 pid, tid;
	__u64 start, length, page_offset; /* bytes */
	__u32 protection, map_flags;	  /* PROT_*, MAP_* */
	__u32 major, minor;		  /* device; 0 if the record had only a build-id */
	__u64 inode, inode_generation;
	__u8 build_id_size; /* 0..BUILD_ID_SIZE, from the record or from the opened file */
	__u8 file_state;    /* enum file_state */
	__u8 build_id[BUILD_ID_SIZE];
	__u8 reserved[2];
	char path[]; /* as the kernel names it: "//anon", "[vdso]", "/usr/lib/…", " (deleted)" */
};

struct comm_event {
	struct event_header header;
	__u32 pid, tid;
	char comm[EVENT_COMM_SIZE];
};

/* FORK: a new thread (pid == ppid) or process (pid != ppid). EXIT: thread tid ended. */
struct task_event {
	struct event_header header;
	__u32 pid, ppid, tid, ptid;
};

/*
 * X(ENUM, name, sentence). Lost samples are in the books as well; where side-band records are lost, processes may be
 * wrong; the count of RECORDING is chunks.
 */
#define LOST_SOURCES(X)                                                                            \
	X(SAMPLES, "samples", "samples that the kernel could not write")                           \
	X(SIDEBAND, "sideband", "process and mapping records that the kernel could not write")     \
	X(LATE, "late", "events that came too late to be put in order")                            \
	X(RECORDING, "recording", "damaged chunks of the recording")

enum lost_source {
#define X(id, name, text) LOST_##id,
	LOST_SOURCES(X)
#undef X
		LOST_SOURCE_COUNT
};

struct lost_event {
	struct event_header header;
	__u32 source; /* enum lost_source */
	__u32 cpu;    /* ~0 if it does not apply */
	__u64 count;
	__u64 since; /* CLOCK_MONOTONIC: the loss happened in (since, header.time]; 0 unknown */
};

struct process_event {
	struct event_header header;
	__u32 pid, ppid;
	__u64 start_time; /* CLOCK_MONOTONIC ns, from /proc/PID/stat (10 ms grain) */
	__u32 is_target;  /* 1: this process is to be sampled */
	__u32 is_kernel;  /* 1: a kernel thread */
	char name[];	  /* comm of the leader */
};

struct thread_event {
	struct event_header header;
	__u32 pid, tid;
	__u64 start_time; /* as above */
	__u64 cpu_time;	  /* ns used so far, from schedstat; ~0 unknown */
	char comm[EVENT_COMM_SIZE];
};

struct maps_read_event {
	struct event_header header;
	__u32 pid;
	__u32 reserved;
};

/* Read about once a second: of the recorder, and of the processes that have been sampled since. */
struct memory_event {
	struct event_header header;
	__u32 pid;
	__u32 reserved;
	__u64 resident; /* bytes, from /proc/PID/statm */
};

/*
 * The path in the unified hierarchy, or in that of the cpu controller, as the recorder's cgroup namespace shows it.
 * Reported at once for processes from /proc, and later for others, once they have run for a while; until then a process
 * has its parent's group.
 */
struct cgroup_event {
	struct event_header header;
	__u32 pid;
	__u32 reserved;
	char path[];
};

/*
 * How much of the facts about a process was read. A process can block a reader of its memory for ever. X(ENUM,
 * sentence)
 */
#define FACTS_STATES(X)                                                                            \
	X(NONE, "not read")                                                                        \
	X(FIRST, "read, except for its memory")                                                    \
	X(WHOLE, "read")                                                                           \
	X(REFUSED, "its memory was not read: it, or others of its user, did not answer")

enum facts_state {
#define X(id, text) FACTS_STATE_##id,
	FACTS_STATES(X)
#undef X
		FACTS_STATE_COUNT
};

#define PROCESS_FACTS_MAX  64u	 /* of one process */
#define PROCESS_FACTS_SIZE 8192u /* bytes of their text */

/*
 * All facts so far about one life of a process: "key\0value\0", `count` times. Keys are "exe" (the path of its
 * program), "script" (an interpreter's script, module or main class), "env:NAME" and "otel:ATTRIBUTE" (of its
 * OpenTelemetry process context). `since` lies in that life.
 */
struct facts_event {
	struct event_header header;
	__u32 pid;
	__u8 state; /* enum facts_state, not NONE */
	__u8 reserved[3];
	__u64 since; /* CLOCK_MONOTONIC ns: when reading began; it ended by header.time */
	__u32 count;
	__u32 size; /* of text, without padding */
	char text[];
};

/* ---- the session ----------------------------------------------------------------------------- */

struct clock_anchor_event {
	struct event_header header; /* time == monotonic */
	__u64 tsc;		    /* 0 if samples use the monotonic clock */
	__u64 monotonic;	    /* ns */
	__u64 realtime;		    /* ns since the Unix epoch */
	__u64 tsc_khz; /* running TSC frequency measured over the anchors of this epoch, 0 unknown */
	__u32 error_ns; /* half the time that this reading took */
	__u32 epoch;
	__s64 extrapolation_error_ns; /* error of the previous anchor's line, extrapolated to here */
};

/*
 * The books of one CPU (its sample accounting). X(ENUM, name, loss, sentence): DELIVERED counts the samples
 * written to the ring; each other line is a reason why a tick is not in the profile. The program counts all
 * lines but IDLE_NOT_RUN: some timers of an idle CPU run no program, and the collector moves these ticks
 * from NOT_RUN to IDLE_NOT_RUN by the CPU's idle time. due = time_running / period, from the kernel's
 * own accounting of the event. due - sum of lines is unexplained and must be 0.
 */
#define BOOK_LINES(X)                                                                              \
	X(DELIVERED, "delivered", 0, "handed to the collector")                                    \
	X(IDLE, "idle", 0, "the CPU was idle")                                                     \
	X(FILTERED, "filtered", 0, "not a target")                                                 \
	X(RING_FULL, "ring-full", 1, "the collector was too slow or stopped")                      \
	X(REENTRY, "re-entry", 1, "the program was already running on this CPU")                   \
	X(INTERNAL, "internal", 1, "a map lookup failed")                                          \
	X(NOT_RUN, "not-run", 1,                                                                   \
	  "the kernel did not run the program: the timer was late, or bpf() was active")           \
	X(IDLE_NOT_RUN, "idle-not-run", 0, "not run either, but the CPU was idle")

enum book_line {
#define X(id, name, loss, text) BOOK_##id,
	BOOK_LINES(X)
#undef X
		BOOK_COUNT
};

/*
 * Written by the program, one per CPU, in an mmapable array; the collector reads it without a syscall.
 * After the counts comes the per-CPU state of the program (bpf/clock.bpf.h, bpf/cputime.bpf.h). It is
 * aligned so that no two CPUs write to the same cache line.
 */
struct cpu_books {
	__u64 count[BOOK_COUNT];
	__u64 last_tick;   /* bpf_ktime_get_ns() of the last run */
	__u64 grid_origin; /* CLOCK_MONOTONIC at which the timer started, 0: not run yet */
	__u64 grid_point;  /* periods from there to the last run */
	__u64 period; /* ns between ticks, of this grid; 0: the event is not a clock. Set by the collector */
	__u64 grid_enabled; /* the event's enabled time when the timer started; set by the collector */
	__u64 tsc_base; /* TSC at which this CPU's counter was 0; 0: there is none. Set by the collector */
	__s64 clock_offset
		[2]; /* event clock minus run queue clock: least of this window and the last */
	__u64 clock_window;
	__u64 busy;	  /* the program is running */
	__u64 hook_since; /* CLOCK_MONOTONIC since when a hook is writing a record; 0: none is */
	__u64 ring;	  /* the CPU's element of the tick rings; set by the collector */
} __attribute__((aligned(128)));

struct books_event {
	struct event_header header;
	__u32 cpu;
	__u32 lines;	    /* BOOK_COUNT of the recorder */
	__u64 period;	    /* ns; 0: not a clock event, due is unknown */
	__u64 time_enabled; /* ns since the event was opened */
	__u64 time_running;
	__u64 received; /* samples of this CPU that the collector has read */
	__u64 count[BOOK_COUNT];
};

/* "key\0value\0": facts about the machine and the recording, the keys are in sysprof/meta_keys.h */
struct meta_event {
	struct event_header header;
	char text[];
};

/*
 * Input that limits left out of this recording, or deferred, since `since` and since the last event with the same
 * user, thing and reason: counts add up. base/outside_books.h in userspace defines the numbers.
 */
struct outside_event {
	struct event_header header;
	__u32 user;	    /* a uid; ~0: unknown; ~0 - 1: all users without a row of their own */
	__u8 thing, reason; /* a reader skips unknown values */
	__u8 reserved[2];
	__u64 count; /* in the thing's unit */
	__u64 since; /* CLOCK_MONOTONIC: time of the first one */
};

/*
 * A piece of /proc/kallsyms, whole lines, text symbols only; pieces are in file order. A symbol that was added may have
 * a second line, "END a KALLSYMS_END [MODULE]": its code ends there, and what earlier symbols inside stood for is gone.
 */
#define KALLSYMS_END "end"
struct kallsyms_event {
	struct event_header header;
	__u32 text_size;
	__u32 piece; /* 0 begins a reading */
	char text[];
};

/* ---- JIT code -------------------------------------------------------------------------------- */

enum jit_file_kind {
	JIT_FILE_MAP = 0,  /* text: jit/perf_map.h */
	JIT_FILE_DUMP = 1, /* binary: jit/jitdump.h */
	JIT_FILE_KIND_COUNT
};

/*
 * Whether such a file is read, and why not. The file belongs to the process, which may be hostile, so it is
 * checked before it is opened. X(ENUM, followed, sentence)
 */
#define JIT_FILE_STATES(X)                                                                         \
	X(NONE, 0, "there is none")                                                                \
	X(FOLLOWED, 1, "read as it grew")                                                          \
	X(NOT_REGULAR, 0, "not a regular file")                                                    \
	X(LINK, 0, "a symbolic link")                                                              \
	X(FOREIGN, 0, "it does not belong to the process's user")                                  \
	X(OUTDATED, 0, "it is older than the process")                                             \
	X(DENIED, 0, "it may not be opened")                                                       \
	X(FUSE, 0, "on a FUSE file system, which can block its readers")                           \
	X(TOO_BIG, 1, "over the size limit: names are missing, or in doubt")                       \
	X(BAD, 1, "neither a perf map nor a jitdump")                                              \
	X(SHARED, 0, "another process has the same file")                                          \
	X(TOO_MANY, 0, "too many of them at one time")                                             \
	X(MOUNTED, 0, "it is a mount of its own")                                                  \
	X(NO_DATA, 0, "on a file system that does not hold data, like /proc")                      \
	X(UNREADABLE, 0, "the process's user may not read it")                                     \
	X(WRITABLE, 0, "users other than its owner may write to it")                               \
	X(USER_LIMIT, 1, "its user's files reached their limit: names are missing, or in doubt")   \
	X(LIMIT, 1, "all files together reached their limit: names are missing, or in doubt")      \
	X(HUNG, 1, "its user's files did not answer: they are not read any more")                  \
	X(NO_READER, 1, "the files of too many users did not answer: no more are read")

enum jit_file_state {
#define X(id, followed, text) JIT_FILE_STATE_##id,
	JIT_FILE_STATES(X)
#undef X
		JIT_FILE_STATE_COUNT
};

#ifndef __bpf__
static inline int jit_file_state_is_followed(enum jit_file_state state)
{
	static const unsigned char followed[JIT_FILE_STATE_COUNT] = {
#define X(id, followed, text) followed,
		JIT_FILE_STATES(X)
#undef X
	};

	return state < JIT_FILE_STATE_COUNT && followed[state];
}
#endif

/* A file was found, or its state has changed. */
struct jit_file_event {
	struct event_header header;
	__u32 pid;
	__u32 file;	     /* from 1 on; later events refer to it by this number */
	__u64 process_start; /* CLOCK_MONOTONIC ns, as of a process_event; 0 unknown */
	__u8 kind;	     /* enum jit_file_kind */
	__u8 state;	     /* enum jit_file_state */
	__u8 reserved[2];
	__u32 user; /* the user whose quota pays: a uid, or the number of a user namespace; 0: root */
	char path[]; /* as the process names it; empty: as reported before */
};

/* jit_bytes_event.flags. LOST: replaces bytes that could not be kept; never in a file. */
#define JIT_BYTES_LOST	   0x80000000u
#define JIT_SNAPSHOT_BEGIN 1u /* the file was rewritten: these are its first bytes */
#define JIT_SNAPSHOT_END   2u /* these are the last bytes of the rewritten file */
#define JIT_RESTART	   4u /* the file starts over; its earlier entries remain valid */

/* A piece of the file, in file order, written in (after, before], CLOCK_MONOTONIC ns. */
struct jit_bytes_event {
	struct event_header header;
	__u64 after, before;
	__u32 file;
	__u32 size; /* of bytes */
	__u32 flags;
	__u32 reserved;
	char bytes[];
};

/* ---- functions of runtimes ------------------------------------------------------------------- */

/* The result of reading a function. X(ENUM, sentence) */
#define CODE_STATES(X)                                                                             \
	X(UNKNOWN, "it could not be read")                                                         \
	X(CONFIRMED, "what was sampled is what was read")                                          \
	X(STALE, "something else is at its address by now")                                        \
	X(INFERRED, "what was sampled, but another function may run that is inlined there")

enum code_state {
#define X(id, text) CODE_STATE_##id,
	CODE_STATES(X)
#undef X
		CODE_STATE_COUNT
};

/* Valid from this offset of the function's code up to the next row. */
struct code_row {
	__u32 offset;	    /* in the unit of frame_note.place */
	__u32 line, column; /* 1-based; 0: unknown */
};

#define CODE_ROWS_MAX 4096u
#define CODE_NAME_MAX 1024u /* bytes with the NUL */

/*
 * The function that a note's words identify, read from process memory at header.time, after its first sample; reported
 * again if it changes. Rows ascend by offset. The function's name and file follow them, each with its NUL.
 */
struct code_function_event {
	struct event_header header;
	__u32 pid;
	__u8 kind;		    /* enum frame_note_kind */
	__u8 state;		    /* enum code_state; only CONFIRMED has a name */
	__u16 name_size, file_size; /* with their NUL */
	__u16 reserved;
	__u64 function, check; /* as in the note */
	__u32 line, column;    /* where it is defined, 1-based; 0: unknown */
	__u32 row_count;
	__u32 base; /* the place of the function's first instruction: rows count from there */
	struct code_row rows[];
};

/* One function of a chain: it was inlined into the next one. */
struct code_call {
	__u64 function, check;
	__u32 line, column; /* the executing line; 0: unknown */
};

#define CODE_CALLS_MAX 64u

/* Whether a runtime's functions can be read, and why not. X(ENUM, sentence) */
#define CODE_RUNTIME_STATES(X)                                                                     \
	X(READ, "its functions are read from its memory")                                          \
	X(FREE_THREADED, "free-threaded builds are not read")                                      \
	X(OTHER_LIBC, "on another C library than glibc it is not read")                            \
	X(TOO_OLD, "versions before 3.11 are not read")                                            \
	X(UNKNOWN, "this version or build of it is not known")                                     \
	X(UNREADABLE, "its memory cannot be read")

enum code_runtime_state {
#define X(id, text) CODE_RUNTIME_##id,
	CODE_RUNTIME_STATES(X)
#undef X
		CODE_RUNTIME_STATE_COUNT
};

/* The state of a runtime in a process; reported again if it changes. */
struct code_runtime_event {
	struct event_header header;
	__u32 pid;
	__u8 kind;  /* enum frame_note_kind: which runtime */
	__u8 state; /* enum code_runtime_state */
	__u16 reserved;
};

/*
 * The functions that compiled code at an address consists of, innermost first; the last one is the function of the note.
 * States other than CONFIRMED and INFERRED have no calls to use.
 *
 * HOTSPOT_CODE: the last one is the blob with the note's check, not a function of the stack; those before it are of kind
 * HOTSPOT. If it stands alone, the blob is a stub, and EVENT_CODE_FUNCTION has its name. If the state is INFERRED, the
 * `line` of the last one is the number of outermost functions that are certain.
 *
 * V8_WASM: the last one is the instance of the note, not a function of the stack; the one before it is the function.
 */
struct code_chain_event {
	struct event_header header;
	__u32 pid;
	__u8 kind;
	__u8 state;
	__u16 call_count;
	__u64 function; /* of the note */
	__u64 address;	/* of the sample's frame, less 1 if it is a return address */
	struct code_call calls[];
};

/* ---- the symbols chunk ----------------------------------------------------------------------- */

/* The dso of all EVENT_SYMBOLs up to the next EVENT_SYMBOL_DSO, by its index in the profile. */
struct symbol_dso_event {
	struct event_header header;
	__u32 dso;   /* struct dso_id */
	__u32 state; /* enum symbol_state of profile.h: how its symbols were found, or why not */
};

struct symbol_event {
	struct event_header header;
	__u64 address; /* of the location, as the recorder made it (file offset or kernel address) */
	__u64 elf_address; /* virtual address in the ELF file; ~0 unknown */
	__u32 frames;	   /* innermost first, then packed as struct symbol_event_frame + strings */
	__u32 same_size; /* number of ELF addresses with this chain; 0: unknown, as in a recording */
	char payload[];
};

struct symbol_event_frame {
	__u64 function_address; /* ELF virtual address of the function, ~0 unknown */
	__u64 function_size;	/* 0 unknown */
	__u32 line, column;	/* executing line, 1-based, 0 unknown */
	__u32 definition_line, definition_column;	  /* 1-based, 0 unknown */
	__u16 name_size, file_size, definition_file_size; /* with their NUL; 0: none */
	__u16 reserved;
	/* the three strings follow, then padding to 8 */
};

#ifndef __bpf__
#define EVENT_ASSERT(type) _Static_assert(sizeof(struct type) % EVENT_ALIGN == 0, #type)
EVENT_ASSERT(event_header);
EVENT_ASSERT(sample_event);
EVENT_ASSERT(visit_event);
EVENT_ASSERT(visit_books_event);
EVENT_ASSERT(stack_copy);
EVENT_ASSERT(stack_piece);
EVENT_ASSERT(thread_cpu_event);
EVENT_ASSERT(in_group_event);
EVENT_ASSERT(group_made_event);
EVENT_ASSERT(mmap_event);
EVENT_ASSERT(comm_event);
EVENT_ASSERT(task_event);
EVENT_ASSERT(lost_event);
EVENT_ASSERT(process_event);
EVENT_ASSERT(thread_event);
EVENT_ASSERT(maps_read_event);
EVENT_ASSERT(memory_event);
EVENT_ASSERT(cgroup_event);
EVENT_ASSERT(facts_event);
EVENT_ASSERT(clock_anchor_event);
EVENT_ASSERT(cpu_books);
EVENT_ASSERT(books_event);
EVENT_ASSERT(outside_event);
EVENT_ASSERT(kallsyms_event);
EVENT_ASSERT(jit_file_event);
EVENT_ASSERT(jit_bytes_event);
EVENT_ASSERT(frame_note);
EVENT_ASSERT(code_function_event);
EVENT_ASSERT(code_chain_event);
EVENT_ASSERT(code_runtime_event);
EVENT_ASSERT(code_call);
EVENT_ASSERT(symbol_event);
EVENT_ASSERT(symbol_dso_event);
EVENT_ASSERT(symbol_event_frame);
#undef EVENT_ASSERT
#endif

#endif
