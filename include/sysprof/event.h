/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events: the only wire format of the program.
 *
 * The eBPF program writes samples as events, live/ converts everything else that is read from
 * outside (perf side-band records, /proc, clocks, kallsyms) into events, and a recording file is a
 * sequence of them, byte for byte. Addresses and clocks are raw, reasons are codes.
 *
 * Every event starts with a struct event_header, is a multiple of 8 bytes long and holds no
 * pointers. Multi-byte fields are in the byte order of the machine that recorded (the recording
 * file's header says which). Strings are NUL-terminated inside the event, of any bytes. Sizes are
 * checked by stream/event_decode before a field is read; an event of an unknown type is skipped by
 * its size.
 */
#ifndef SYSPROF_EVENT_H
#define SYSPROF_EVENT_H

#include <sysprof/event_header.h>
#include <sysprof/sample.h>

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
	__u64 file; /* the opener's number of it, see files/dso_opener.h; 0: none. Never in a recording */
	char path[]; /* as the kernel names it: "//anon", "[vdso]", "/usr/lib/…", " (deleted)" */
};

/* Room for one with any path. */
struct mmap_event_space {
	union {
		struct mmap_event event;
		char space[sizeof(struct mmap_event) + EVENT_PATH_MAX + EVENT_ALIGN];
	};
};

/*
 * A thread's new name; of an execve (EVENT_COMM_EXEC), also that of the process. With
 * EVENT_FROM_PROC: the name of the program that the process executes, whatever its threads are
 * called.
 */
struct comm_event {
	struct event_header header;
	__u32 pid, tid;
	char comm[EVENT_COMM_SIZE];
};

/*
 * FORK: a new thread (pid == ppid) or process (pid != ppid). EXIT: thread tid ended; with
 * EVENT_FROM_PROC the whole process has, and records of that were lost.
 */
struct task_event {
	struct event_header header;
	__u32 pid, ppid, tid, ptid;
};

/*
 * X(ENUM, name, sentence). Lost samples are in the books as well. If side-band records are lost,
 * mappings and processes may be wrong. RECORDING counts chunks.
 */
#define LOST_SOURCES(X)                                                                            \
	X(SAMPLES, "samples", "samples that the kernel could not write")                           \
	X(SIDEBAND, "sideband", "process and mapping records that were lost")                      \
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
 * The path in the unified hierarchy, or in the cpu controller's, as the recorder's cgroup namespace
 * shows it. Processes from /proc are reported at once, others after they have run for a while;
 * until then a process has its parent's group.
 */
struct cgroup_event {
	struct event_header header;
	__u32 pid;
	__u32 reserved;
	char path[];
};

/* How much of a process's facts was read: it can block a reader for ever. X(ENUM, sentence) */
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
 * All facts so far about one life of a process: "key\0value\0", `count` times. Keys are "exe" (the
 * program's path), "script" (an interpreter's script, module or main class), "user" (of the real
 * uid), "container:NAME" (services/containers.h), "env:NAME" and "otel:ATTRIBUTE" (from its
 * OpenTelemetry process context). No other argument is kept. `since` lies in that life.
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
	__u64 tsc_khz;		    /* TSC frequency over the anchors of this epoch; 0: unknown */
	__u32 error_ns;		    /* half the time that this reading took */
	__u32 epoch;
	__s64 extrapolation_error_ns; /* of the previous anchor's line, extrapolated to here */
};

/*
 * The books of one CPU (its sample accounting). X(ENUM, name, loss, sentence). DELIVERED counts the
 * samples written to the ring, each other line a reason why a tick is not in the profile. The
 * program counts all lines but IDLE_NOT_RUN: some timers of an idle CPU run no program, and the
 * collector moves these ticks from NOT_RUN by the CPU's idle time. due = time_running / period,
 * from the kernel's accounting of the event. due - sum of lines is unexplained and must be 0.
 *
 * Of an event that is no clock a line counts events, the periods of its samples, and due is the
 * kernel's counter. What overflows did not report is NOT_RUN; see bpf_session__books().
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
	X(IDLE_NOT_RUN, "idle-not-run", 0, "not run, in time that /proc/stat counts as idle")

enum book_line {
#define X(id, name, loss, text) BOOK_##id,
	BOOK_LINES(X)
#undef X
		BOOK_COUNT
};

/*
 * One per CPU, written by the program in an mmapable array that the collector reads without a
 * syscall. After the counts comes the per-CPU state of the program (bpf/clock.bpf.h,
 * bpf/cputime.bpf.h). Aligned, so that no two CPUs write to the same cache line.
 */
struct cpu_books {
	__u64 count[BOOK_COUNT];
	__u64 last_tick;    /* bpf_ktime_get_ns() of the last run */
	__u64 grid_origin;  /* CLOCK_MONOTONIC at which the timer started, 0: not run yet */
	__u64 grid_point;   /* periods from there to the last run */
	__u64 period;	    /* ns between ticks, by the collector; 0: not a clock event */
	__u64 grid_enabled; /* the event's enabled time when the timer started, by the collector */
	__u64 tsc_base;	    /* TSC when this CPU's counter was 0, by the collector; 0: none */
	__s64 clock_offset
		[2]; /* event clock minus run queue clock: least of this window and the last */
	__u64 clock_window;
	__u64 busy;	    /* the program is running */
	__u64 hook_since;   /* CLOCK_MONOTONIC since when a hook is writing a record; 0: none is */
	__u64 period_begun; /* of an event that is no clock, in events; 1: of its first one */
	__u64 events;	    /* that the tick stands for */
	__u64 ring;	    /* the CPU's element of the tick rings; set by the collector */
} __attribute__((aligned(128)));

struct books_event {
	struct event_header header;
	__u32 cpu;
	__u32 lines;	    /* BOOK_COUNT of the recorder */
	__u64 period;	    /* ns; 0: not a clock event */
	__u64 time_enabled; /* ns since the event was opened */
	__u64 time_running;
	__u64 received; /* samples of this CPU that the collector has read */
	__u64 counted;	/* events, by the kernel's counter; 0: of a clock */
	__u64 count[BOOK_COUNT];
};

/*
 * Time of a CPU that is no task's own, by /proc/stat. X(ENUM, name, text). Kernels account for it at
 * their tick or exactly (CONFIG_IRQ_TIME_ACCOUNTING), and part of it may be in tasks' CPU time, too.
 */
#define CPU_TIMES(X)                                                                               \
	X(IRQ, "irq", "hardware interrupts")                                                       \
	X(SOFTIRQ, "softirq", "softirqs")                                                          \
	X(STEAL, "steal", "taken by the hypervisor")                                               \
	X(GUEST, "guest", "guests of KVM")

enum cpu_time {
#define X(id, name, text) CPU_TIME_##id,
	CPU_TIMES(X)
#undef X
		CPU_TIME_COUNT
};

/* Comes before the books of its CPU. */
struct cpu_times_event {
	struct event_header header;
	__u32 cpu;
	__u32 kinds;		    /* CPU_TIME_COUNT of the recorder */
	__u64 time[CPU_TIME_COUNT]; /* since sampling began, ns */
};

/* "key\0value\0": facts about the machine and the recording, the keys are in sysprof/meta_keys.h */
struct meta_event {
	struct event_header header;
	char text[];
};

/*
 * Input that limits left out or deferred since `since` and since the last event with the same user,
 * thing and reason: counts add up. userspace/tenants/outside_books.h defines the numbers.
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
 * A piece of /proc/kallsyms: whole lines, text symbols only, in file order. Code that was added or
 * removed has a line, and a second one "END a KALLSYMS_END [MODULE]": stream/kernel_code.h.
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
 * Whether such a file is read, and why not. It belongs to the process, which may be hostile, so it
 * is checked before it is opened. X(ENUM, followed, sentence)
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
	X(NO_READER, 1, "the files of too many users did not answer: no more are read")            \
	X(TOO_MANY_OPEN, 0, "its process has too many open files to decide whether this is one")

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
	__u32 user;  /* charged: a uid, or the number of a user namespace; 0: root */
	char path[]; /* as the process names it; empty: as reported before */
};

/* jit_bytes_event.flags. LOST: replaces bytes that could not be kept; never in a file. */
#define JIT_BYTES_LOST	   0x80000000u
#define JIT_SNAPSHOT_BEGIN 1u /* the file was rewritten: these are its first bytes */
#define JIT_SNAPSHOT_END   2u /* these are the last bytes of the rewritten file */

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

/*
 * The process of the jitdump is in a time namespace. Comes before the file's bytes; without it,
 * times are those of CLOCK_MONOTONIC here.
 */
struct jit_clock_event {
	struct event_header header;
	__u32 file;
	__u8 known; /* 0: `ahead` could not be read */
	__u8 reserved[3];
	__s64 ahead; /* of CLOCK_MONOTONIC here, ns */
};

/* ---- functions of runtimes ------------------------------------------------------------------- */

/* The result of reading a function. X(ENUM, sentence) */
#define CODE_STATES(X)                                                                             \
	X(UNKNOWN, "it could not be read")                                                         \
	X(CONFIRMED, "confirmed")                                                                  \
	X(STALE, "something else is at its address by now")                                        \
	X(INFERRED, "confirmed, but a function that is inlined there may run")

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
 * The function that a note identifies, read from process memory at header.time, after its first
 * sample; reported again if it changes. Rows ascend by offset; NUL-terminated name and file follow.
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
 * The functions that compiled code at an address consists of, innermost first; the last one is the
 * note's. Only CONFIRMED and INFERRED chains have calls to use.
 *
 * HOTSPOT_CODE: the last one is the blob with the note's check, the ones before it are HOTSPOT
 * functions. If it stands alone, the blob is a stub, and EVENT_CODE_FUNCTION has its name. If
 * INFERRED, the `line` of the last one is the number of outermost functions that are certain.
 *
 * V8_WASM: the last one is the note's instance, the one before it is the function.
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
	__u64 address;	   /* as the recorder made the location: file offset or kernel address */
	__u64 elf_address; /* virtual address in the ELF file; ~0 unknown */
	__u32 frames;	   /* innermost first, then packed as struct symbol_event_frame + strings */
	__u32 same_size;   /* number of ELF addresses with this chain; 0: unknown, as in files */
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

#define CODE_TEXT_MAX	 (1u << 20)  /* bytes of a function's code */
#define CODE_LINES_MAX	 1024u	     /* rows of an event */
#define SOURCE_TEXT_MAX	 (16u << 20) /* bytes of a source */
#define CODE_PIECE_BYTES (32u * 1024)

/*
 * A piece of a function's machine code. Pieces of a function come one after the other, the first one
 * with offset 0; then its EVENT_CODE_LINES.
 */
struct code_text_event {
	struct event_header header;
	__u32 dso;     /* as in symbol_dso_event */
	__u32 process; /* of JIT code: index in the profile; else 0 */
	__u64 address; /* of the code's first byte; as in symbol_event */
	__u32 version; /* of JIT code */
	__u32 size;    /* of the whole code, at most CODE_TEXT_MAX */
	__u32 offset;  /* of this piece in it */
	__u32 count;   /* bytes of the piece */
	__u8 machine;  /* enum code_machine of profile.h */
	__u8 reserved[7];
	__u8 bytes[];
};

/* From this offset of the code up to the next row. */
struct code_line_row {
	__u32 offset;
	__u32 line;   /* 0: unknown */
	__u16 column; /* 0: unknown */
	__u16 place;  /* number of a frame of the event's symbol: innermost function, and file */
	__u16 depth;  /* inlined calls around */
	__u16 reserved;
};

/*
 * Lines of the code before it. Rows ascend by offset, over all events of a code. Behind them follows
 * a whole EVENT_SYMBOL, whose frames are no chain: rows refer to them by number.
 */
struct code_lines_event {
	struct event_header header;
	__u64 address;
	__u32 dso;
	__u32 count; /* of rows */
	struct code_line_row rows[];
};

/* Root directories have numbers up to SOURCE_ROOT_LAST. */
#define SOURCE_ROOT_LAST    252
#define SOURCE_ROOT_SCRIPTS 253 /* what runtimes name: of code that dso_kind_is_made() */
#define SOURCE_ROOT_NONE    254 /* of dsos without sources of their own */
#define SOURCE_ROOT_ALL	    255 /* of all dsos */

/* A piece of a source file, as with EVENT_CODE_TEXT. The path with its NUL, then the bytes follow. */
struct source_event {
	struct event_header header;
	__u32 size;   /* of the whole text, at most SOURCE_TEXT_MAX */
	__u32 offset; /* of this piece in it */
	__u32 count;  /* bytes of the piece */
	__u16 path_size;
	__u8 state; /* enum source_state of profile.h */
	__u8 root;  /* of dsos with this number; or SOURCE_ROOT_SCRIPTS or _ALL */
	char data[];
};

/* Modules whose sources are not those of number 0, which needs no event. */
struct source_root_event {
	struct event_header header;
	__u32 dso;  /* as in symbol_dso_event */
	__u32 root; /* up to SOURCE_ROOT_LAST, or SOURCE_ROOT_NONE */
};

#ifndef __bpf__
#define EVENT_ASSERT(type) _Static_assert(sizeof(struct type) % EVENT_ALIGN == 0, #type)
EVENT_ASSERT(event_header);
EVENT_ASSERT(source_root_event);
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
EVENT_ASSERT(cpu_times_event);
EVENT_ASSERT(outside_event);
EVENT_ASSERT(kallsyms_event);
EVENT_ASSERT(jit_file_event);
EVENT_ASSERT(jit_bytes_event);
EVENT_ASSERT(jit_clock_event);
EVENT_ASSERT(frame_note);
EVENT_ASSERT(code_function_event);
EVENT_ASSERT(code_chain_event);
EVENT_ASSERT(code_runtime_event);
EVENT_ASSERT(code_call);
EVENT_ASSERT(symbol_event);
EVENT_ASSERT(symbol_dso_event);
EVENT_ASSERT(symbol_event_frame);
EVENT_ASSERT(code_text_event);
EVENT_ASSERT(code_line_row);
EVENT_ASSERT(code_lines_event);
EVENT_ASSERT(source_event);
#undef EVENT_ASSERT
#endif

#endif
