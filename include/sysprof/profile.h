/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile: columnar and interned. This is the read side, the only interface of exporters and
 * reports. <sysprof/profile_builder.h> is the write side.
 *
 * Vocabulary (pprof's): a sample has a kind, a weight and a stack; a stack is a location and a
 * parent stack; a location is an address in a dso and has lines: the inline chain, innermost first;
 * a line is a function and the executing line in it; a function has a definition site. Ids are
 * typed, 0 is none, and id n is element n of its table (element 0 is an all-zero placeholder).
 *
 * Samples are columns by thread and kind, so code for one kind is not affected by others.
 */
#ifndef SYSPROF_PROFILE_H
#define SYSPROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/meta_keys.h>
#include <sysprof/event.h> /* the reasons: enum stack_end, enum book_line, enum file_state */

struct string_id {
	uint32_t v;
};
struct dso_id {
	uint32_t v;
};
struct function_id {
	uint32_t v;
};
struct location_id {
	uint32_t v;
};
struct stack_id {
	uint32_t v;
};
struct process_id {
	uint32_t v;
};
struct thread_id {
	uint32_t v;
};

#define PROFILE_UNKNOWN_ADDRESS UINT64_MAX

/* What has code. X(ENUM, name in files) */
#define DSO_KINDS(X)                                                                               \
	X(NONE, "none")                                                                            \
	X(FILE, "file") /* an ELF file, or whatever the process mapped */                          \
	X(VDSO, "vdso")                                                                            \
	X(KERNEL, "kernel")   /* vmlinux, modules, BPF programs, trampolines */                    \
	X(JIT, "jit")	      /* anonymous executable memory */                                    \
	X(UNKNOWN, "unknown") /* an address outside every known mapping */                         \
	X(RUNTIME, "runtime") /* functions that only a runtime identifies; addresses are numbers */

enum dso_kind {
#define X(id, name) DSO_##id,
	DSO_KINDS(X)
#undef X
};

enum profile_category {
	CATEGORY_OTHER = 0,
	CATEGORY_USER, /* the program itself */
	CATEGORY_KERNEL,
	CATEGORY_LIBRARY, /* native shared libraries */
	CATEGORY_JIT,
	CATEGORY_IDLE,
	CATEGORY_COUNT
};

/* Which compiler of a runtime generated some code. X(ENUM, text); "": unknown. */
#define CODE_TIERS(X)                                                                              \
	X(NONE, "")                                                                                \
	X(INTERPRETED, "Interpreted")                                                              \
	X(BASELINE, "Baseline")	 /* V8: Sparkplug; .NET: tier 0; WebAssembly: Liftoff */           \
	X(MIDDLE, "Middle tier") /* V8: Maglev, Turboprop */                                       \
	X(OPTIMIZED, "Optimized")                                                                  \
	X(BUILTIN, "Builtin") /* code of the runtime itself */                                     \
	X(REGEXP, "Regular expression")                                                            \
	X(STUB, "Stub")

enum code_tier {
#define X(id, text) CODE_TIER_##id,
	CODE_TIERS(X)
#undef X
		CODE_TIER_COUNT
};

/* Is it code without a file, so that names come from reports about it only? */
static inline bool dso_kind_is_made(enum dso_kind kind)
{
	return kind == DSO_JIT || kind == DSO_RUNTIME;
}

/* How the symbols of a dso were found, or why it has none. X(ENUM, sentence) */
#define SYMBOL_STATES(X)                                                                           \
	X(PENDING, "not resolved yet")                                                             \
	X(RESOLVED, "symbol tables read")                                                          \
	X(NO_FILE, "cannot open the mapped file")                                                  \
	X(NOT_ELF, "not an ELF file")                                                              \
	X(DAMAGED, "a damaged or truncated ELF file")                                              \
	X(NO_SYMBOLS, "stripped: no symbols")                                                      \
	X(HIDDEN, "kernel symbols hidden by kernel.kptr_restrict")                                 \
	X(CANCELLED, "cancelled")                                                                  \
	X(LEFT, "its user's files take too much CPU time to read")

enum symbol_state {
#define X(id, text) SYMBOL_STATE_##id,
	SYMBOL_STATES(X)
#undef X
		SYMBOL_STATE_COUNT
};

/*
 * Kinds of samples. X(ENUM, name, unit), named as pprof's sample types; the unit is the weight's.
 *
 * CPU: a tick found the thread running. The weight is the CPU time that the thread used since its
 * previous CPU sample or its start; with profile.weight_ahead, until its next sample or its end.
 *
 * IDLE: the thread was off CPU; only in profiles read from a format which says so. The weight is
 * the time until the next sample.
 *
 * WALL: a visit found the thread waiting, for a CPU or anything else (struct profile_wall). The
 * weight is the time that it waited.
 */
#define SAMPLE_KINDS(X)                                                                            \
	X(CPU, "cpu", "nanoseconds")                                                               \
	X(IDLE, "idle", "nanoseconds")                                                             \
	X(WALL, "wall", "nanoseconds")

enum sample_kind {
#define X(id, name, unit) SAMPLE_##id,
	SAMPLE_KINDS(X)
#undef X
		SAMPLE_KIND_COUNT
};

/* The states of a thread. X(ENUM, name, sentence) */
#define WALL_STATES(X)                                                                             \
	X(NONE, "", "")                                                                            \
	X(RUNNING, "running", "on a CPU")                                                          \
	X(RUNNABLE, "runnable", "waits for a CPU")                                                 \
	X(THROTTLED, "throttled", "the CPU quota of its control group is used up")                 \
	X(DISK, "disk", "waits for a disk or another file system")                                 \
	X(LOCK, "lock", "waits for a lock: a futex, or one of the kernel's")                       \
	X(NETWORK, "network", "waits for a socket")                                                \
	X(PIPE, "pipe", "waits for a pipe, a terminal or a message queue")                         \
	X(POLL, "poll", "waits for any of several files: poll, select, epoll, io_uring")           \
	X(SLEEP, "sleep", "waits for a time or a signal")                                          \
	X(CHILD, "child", "waits for a child process")                                             \
	X(FAULT, "fault", "waits for a page of memory")                                            \
	X(STOPPED, "stopped", "by a signal, a debugger or the freezer")                            \
	X(OTHER, "other", "waits for something else")

enum wall_state {
#define X(id, name, text) WALL_##id,
	WALL_STATES(X)
#undef X
		WALL_STATE_COUNT
};

/* The thread would run: it waits for a CPU, which the kernel counts as run delay. */
static inline bool wall_state_is_for_cpu(int state)
{
	return state == WALL_RUNNABLE || state == WALL_THROTTLED;
}

/* The state of a thread towards the GIL of its interpreter at a sample. X(ENUM, name) */
#define GIL_STATES(X)                                                                              \
	X(UNKNOWN, "")                                                                             \
	X(HELD, "held")                                                                            \
	X(RELEASED, "released") /* neither: it ran native code without the GIL */                  \
	X(WAITING, "waiting")	/* it was about to wait for it */

enum gil_state {
#define X(id, name) GIL_##id,
	GIL_STATES(X)
#undef X
		GIL_STATE_COUNT
};

/* What a sample interrupted, if it is not the thread's own work. X(ENUM, name) */
#define SAMPLE_CONTEXTS(X)                                                                         \
	X(NONE, "")                                                                                \
	X(SOFTIRQ, "softirq")                                                                      \
	X(HARDIRQ, "hardirq")

enum sample_context {
#define X(id, name) CONTEXT_##id,
	SAMPLE_CONTEXTS(X)
#undef X
		CONTEXT_COUNT
};

/* A kind of sample in a profile. */
struct profile_sample_type {
	enum sample_kind kind;
	struct string_id name, unit; /* "cpu", "nanoseconds" */
};

struct profile_dso {
	enum dso_kind kind;
	struct string_id path; /* as mapped, without " (deleted)" */
	struct string_id name; /* last component of path */
	bool is_library;       /* its name has ".so" in it */
	bool deleted;
	enum file_state file_state;
	enum symbol_state symbol_state;
	uint8_t build_id_size;
	uint8_t build_id[BUILD_ID_SIZE];
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	bool unshared;	     /* EVENT_UNSHARED: another file with this build-id is another dso */
	bool is_interpreted; /* DSO_RUNTIME: a source file, whose functions an interpreter runs */
	uint8_t source_root; /* is_root_of_dso(): which of several sources of one path are its own */
};

struct profile_function {
	struct string_id name;	    /* demangled */
	struct string_id full_name; /* with the types that `name` leaves out; 0: `name` is all */
	struct dso_id dso;
	uint64_t address, size;		  /* ELF virtual address (kernel: address); UNKNOWN / 0 */
	struct string_id definition_file; /* 0 unknown */
	uint32_t definition_line, definition_column; /* 1-based, 0 unknown */
};

struct profile_line {
	struct function_id function;
	struct string_id file; /* of the executing line, 0 unknown */
	uint32_t line, column; /* 1-based, 0 unknown */
};

/*
 * address: file offset (DSO_FILE, DSO_VDSO), or virtual address (the other kinds). The recorder has
 * already moved return addresses back into the call; no other code adjusts them.
 */
struct profile_location {
	struct dso_id dso;
	enum profile_category category;
	uint64_t address;
	uint64_t elf_address; /* virtual address in the ELF file; UNKNOWN until resolved */
	struct process_id
		process; /* DSO_JIT and DSO_UNKNOWN: whose address it is; 0 for the other kinds */
	uint32_t first_line,
		line_count; /* into profile->lines, innermost first; ≥ 1 once finished */
	/* JIT code: */
	uint32_t version; /* number of the function among those at this address over time, from 0 */
	uint32_t code_version; /* as in profile_code; 0: its machine code is not there */
	enum code_tier tier;
	bool ambiguous;	     /* another function may have been at the address; */
	uint32_t sure_lines; /* this number of outermost lines is certain even so */
	bool unnamed;	     /* it has no function name from a symbol; set when finished */
	struct function_id
		fallback; /* what it is called if nothing names it; 0: nothing is known */
};

/* Is this line uncertain? `line` is an index into profile->lines. */
static inline bool profile_location__is_doubtful(const struct profile_location *l, uint32_t line)
{
	return l->ambiguous && line + l->sure_lines < l->first_line + l->line_count;
}

struct profile_stack {
	struct stack_id parent; /* the caller's stack; 0: this is the root. parent.v < own number */
	struct location_id location;
	uint32_t depth; /* 1 for a root */
};

enum process_begin {
	PROCESS_WAS_THERE = 0, /* before the profile's start, or its beginning was not seen */
	PROCESS_FORKED,
	PROCESS_EXECED,
};

/* A fact that a process reports about itself: see struct facts_event. */
struct profile_fact {
	struct string_id key, value;
};

/*
 * What a process belongs to (docs/AGENT.md has the sources), each the value of a label: valid UTF-8
 * without control characters, at most 1,024 bytes; in files that were imported any text. 0: none, or
 * unknown. The service is 0 only if nothing is known of any process: in files of other programs
 * without its label, and in recordings without facts.
 * X(field, label)
 */
#define PROCESS_NAMES(X)                                                                           \
	X(service, "service_name")                                                                 \
	X(source, "service_source")                                                                \
	X(version, "service_version")                                                              \
	X(name_space, "namespace")                                                                 \
	X(pod, "pod")                                                                              \
	X(container, "container")	/* its name, or the first digits of its id */              \
	X(container_id, "container_id") /* all digits */                                           \
	X(unit, "unit")			/* of systemd: "postgresql@.service", … */               \
	X(instance, "instance")		/* … and "14-main" */                                    \
	X(user, "user")			/* of its real uid: the name on the host, or the number */

struct profile_names {
#define X(field, label) struct string_id field;
	PROCESS_NAMES(X)
#undef X
};

/* One life of a pid under one name: an execve starts a new one. */
struct profile_process {
	uint32_t pid, ppid;
	struct string_id name;
	uint64_t start,
		end; /* ns, CLOCK_MONOTONIC, clipped to the recording; end 0: still running */
	enum process_begin began;
	bool execs; /* it ended by an execve: the pid's next life goes on */
	bool is_kernel;
	bool is_target;		 /* requested on the command line, or a child of one that was */
	struct string_id cgroup; /* the path of its control group, as last read; 0: unknown */
	/* the path of the file that it executes, by its mappings; 0: unknown */
	struct string_id program;
	uint64_t life; /* unique in a session, the same in all of its windows; 0: unknown */
	uint64_t born; /* when its pid was given out, before the session too; 0: unknown */
	/* Only if the session collects them. Indexes into profile->facts. */
	enum facts_state facts_state;
	uint32_t first_fact, fact_count;
	struct profile_names names;
};

/* A sample whose stack is not complete, and why. */
struct profile_cut {
	uint32_t sample; /* number of its row */
	enum stack_end end;
};

/* A thread's name from `time` on. */
struct profile_rename {
	uint64_t time;
	struct string_id name;
};

/* How much memory a process had: the resident set, in bytes. */
struct profile_memory_reading {
	uint64_t time, bytes;
};

/* Read about once a second, of processes that ran. Times strictly increase. */
struct profile_memory {
	struct process_id process; /* 0: the recorder, where it is no process of the profile */
	uint32_t pid;
	bool is_recorder;
	size_t count;
	const struct profile_memory_reading *readings;
};

/*
 * The samples of one kind of one thread: columns, in time order, times strictly increasing. The
 * weights of a thread's samples of one kind add up to less than 2^62, and so do the ticks.
 *
 * A row is one tick, except in a profile that was read from a format that adds equal stacks up.
 * CPU samples of an event that is no clock (profile.event) have a second weight, the events that
 * they stand for. Files of other tools have rows of no events, and events of no sample: 0 ticks.
 */
struct profile_samples {
	size_t count;		      /* of rows */
	uint64_t tick_sum;	      /* count, if ticks is NULL */
	uint64_t event_sum;	      /* tick_sum, if events is NULL */
	const uint64_t *ticks;	      /* how many ticks a row stands for; NULL: one each */
	const uint64_t *events;	      /* how many events; NULL: as many as ticks */
	const uint64_t *time;	      /* CLOCK_MONOTONIC ns */
	const uint64_t *weight;	      /* see SAMPLE_KINDS */
	const struct stack_id *stack; /* never 0 */
	const struct string_id *comm; /* the thread's name at that time */
	const uint8_t *gil;	      /* enum gil_state; NULL: unknown of all of them */
	const uint8_t *context;	      /* enum sample_context; NULL: all are CONTEXT_NONE */
	const uint16_t *cpu;	      /* on which CPU, + 1; 0: unknown; NULL: of all of them */
	const uint8_t *state;	      /* enum wall_state, of WALL samples; NULL: of other kinds */
	const struct thread_id
		*holder; /* the same: which thread has the lock; 0: not known, or none */
	/*
	 * The same: it was seen waiting in [since, until], ns, later than the wait before. Equal:
	 * times unknown. The weight is an estimate that adds up; it may differ from until - since.
	 */
	const uint64_t *since, *until;
};

/*
 * The account of a visited thread: where the time between `since` and `until` went, ns. `running`
 * and `runnable` (run delay, throttled time too) are the kernel's, `blocked` is the rest. Visits
 * divide `runnable` and `blocked` among the WALL samples, whose weights add up to them. Where
 * several files are one profile, it is as long as their accounts of the thread together.
 * until - since = running + runnable + blocked + unvisited.
 */
struct profile_wall {
	uint64_t since, until;
	uint64_t running, runnable, blocked;
	uint64_t unvisited; /* between its last visit and its end, less what it ran */
};

/* The books of the visitor, of this window: see VISIT_LINES. */
struct profile_visits {
	uint32_t hz;  /* requested; 0: there were no visits */
	uint64_t cpu; /* CPU time of the visitor, ns */
	uint64_t count[VISIT_LINE_COUNT];
};

/*
 * One life of a tid. The weights of its CPU samples and cpu_tail, the CPU time after the last of
 * them, add up to exactly the CPU time that it used while it was recorded.
 */
struct profile_thread {
	struct process_id process;
	uint32_t tid;
	struct string_id name; /* its last one */
	bool is_main;
	uint64_t start, end; /* as of the process */
	uint64_t cpu_tail;
	/*
	 * With several windows: CPU time, ns, that this and earlier windows counted in excess. A
	 * later reading found it, when no weight was left to reduce. Set when the thread has ended.
	 */
	uint64_t cpu_excess;
	struct profile_samples samples[SAMPLE_KIND_COUNT]; /* by kind */
	struct profile_wall wall;			   /* all 0: it was not visited */
	/* CPU samples with an incomplete stack, in order; only among the first 2^32 rows. */
	size_t cut_count;
	const struct profile_cut *cuts;
	/* Later names of the thread, in order; at most some hundred. */
	size_t rename_count;
	const struct profile_rename *renames;
};

/* The perf map or jitdump of a process. */
struct profile_jit_file {
	struct string_id path; /* 0: none was found */
	enum jit_file_state state;
	uint64_t entries;   /* pieces of code */
	uint64_t bad_lines; /* malformed lines or records */
	uint64_t torn;	    /* bytes of an incomplete last line or record */
};

/* A process that ran JIT code. It counts CPU samples. */
struct profile_jit {
	struct process_id process;
	struct string_id runtime; /* "Node.js", "Java", …; 0: not recognized */
	struct string_id remedy;  /* how to start it so that its code gets names; 0 unknown */
	struct string_id
		refusal; /* why its interpreter's functions are not read; 0: they are, or none */
	struct profile_jit_file map, dump;
	uint64_t samples;   /* with a frame in JIT code that no runtime's memory has named */
	uint64_t unnamed;   /* of these, with such a frame without a name */
	uint64_t ambiguous; /* of these, with such a frame that is ambiguous */
	uint64_t read;	    /* samples with a frame whose function was read from process memory */
};

/*
 * Frames named from a runtime's memory, over all processes with that runtime. Frames that count as
 * neither stale nor unknown have a name.
 */
struct profile_runtime {
	struct string_id name; /* of FRAME_NOTES */
	uint64_t frames;
	uint64_t ambiguous; /* named, but possibly of another function */
	uint64_t stale;	    /* without a name: the memory held another function when it was read */
	uint64_t unknown;   /* without a name: not read, or not readable */
	struct string_id remedy; /* of ambiguous names, if they are many; 0: none */
};

/* A thread and the GIL of its interpreter, by its CPU samples. */
struct profile_gil {
	struct process_id process;
	struct thread_id thread;
	uint64_t samples;   /* with a GIL state */
	uint64_t held;	    /* of these, the thread held the GIL of its interpreter */
	uint64_t waiting;   /* of these, the thread was about to wait for it */
	uint64_t held_time; /* ns: CPU time of the samples that held it */
};

struct profile_cpu_books {
	uint32_t cpu;
	uint64_t period;
	uint64_t time_enabled, time_running;
	/*
	 * time_running / period, or one more in a later window. With `counts_events` what the
	 * kernel has counted, and lines count events as well. 0: unknown.
	 */
	uint64_t due;
	bool counts_events;
	/* `period` is the last one; due is the sum of all stretches, and of all files */
	bool period_changed;
	uint64_t received;
	uint64_t count[BOOK_COUNT];
	uint64_t times[CPU_TIME_COUNT]; /* ns; all 0 in older recordings */
};

static inline bool profile_cpu_books__due_is_known(const struct profile_cpu_books *books)
{
	return books->period || books->counts_events;
}

/*
 * A clause of a filter (docs/FILTERS.md), or several with one meaning, and what it dropped. What the
 * profile has and what all of its clauses dropped add up to the profile that was filtered.
 */
struct profile_clause {
	struct string_id text;	  /* "--focus=parse", "@10s-20s" */
	uint64_t samples, events; /* CPU samples, as in sample_count and event_count */
	uint64_t cpu, wall;	  /* ns: CPU time, and time of visited threads */
};

/*
 * A time that a program or its profiler has given a name, on a thread; an instant ends where it
 * begins. Of formats with markers.
 */
struct profile_marker {
	struct thread_id thread;
	struct string_id name;
	uint64_t start, end;
};

/* Is a part of it, or the instant, in this time? What has an extent never becomes an instant. */
static inline bool marker_overlaps(const struct profile_marker *m, uint64_t start, uint64_t end)
{
	return m->start == m->end ? m->start >= start && m->end <= end
				  : m->start < end && m->end > start;
}

struct profile_lost_range {
	uint64_t since, until;
};

/* Input that a limit left out or deferred: see userspace/tenants/outside_books.h. */
struct profile_outside {
	uint32_t user; /* a uid, or one of the OUTSIDE_USER_… */
	uint8_t thing, reason;
	uint64_t count; /* in the thing's unit */
	uint64_t since; /* CLOCK_MONOTONIC ns of the first one, since the recording's start */
};

struct profile_meta {
	struct string_id key, value;
};

/* The instruction set of some code. X(ENUM, name) */
#define CODE_MACHINES(X)                                                                           \
	X(UNKNOWN, "")                                                                             \
	X(X86_64, "x86-64")                                                                        \
	X(ARM64, "arm64")

enum code_machine {
#define X(id, name) CODE_MACHINE_##id,
	CODE_MACHINES(X)
#undef X
		CODE_MACHINE_COUNT
};

/*
 * The machine code of a function that had samples, as it was mapped, or as its JIT compiler reported it.
 * A location's code has the same dso and process, of JIT code the location's code_version, else version
 * 0, and its bytes include the location's address. Codes with equal dso, process and version do not
 * overlap. Functions without code were left out.
 */
struct profile_code {
	struct dso_id dso;
	struct process_id process; /* as in profile_location: 0 but for JIT code */
	uint32_t version;	   /* of JIT code: a number of its own, from 1 on */
	enum code_machine machine;
	uint64_t address; /* of the first byte, as profile_location.address counts for the dso */
	uint32_t size;	  /* of `bytes`; at least 1 */
	const uint8_t *bytes;
	/* Of profile->code_rows; 0: nothing is known of its lines. */
	uint32_t first_row, row_count;
};

/*
 * The line of some instructions of a code. A row is valid from its offset to the next row's, the last
 * one to the end of the code. Offsets of a code's rows strictly increase.
 */
struct profile_code_row {
	uint32_t offset; /* in the code, below its size */
	uint32_t depth;	 /* inlined calls around: 0: it is the outermost function's own */
	struct function_id function; /* the innermost one; 0: unknown */
	struct string_id file;	     /* as in profile_line; 0: unknown */
	uint32_t line, column;	     /* 1-based, 0 unknown */
};

/* Is a source the text that its program was made of? X(ENUM, sentence) */
#define SOURCE_STATES(X)                                                                           \
	X(UNCHANGED, "the same text by its MD5")                                                   \
	X(PLAUSIBLE, "older than the program")                                                     \
	X(CHANGED, "changed since the program was built")

enum source_state {
#define X(id, text) SOURCE_##id,
	SOURCE_STATES(X)
#undef X
		SOURCE_STATE_COUNT
};

static inline bool is_root_of_dso(uint32_t root)
{
	return root <= SOURCE_ROOT_LAST || root == SOURCE_ROOT_NONE;
}

/* The text of a source file. */
struct profile_source {
	struct string_id
		path; /* as profile_line.file and profile_function.definition_file have it */
	uint8_t root; /* of dsos with this number; or SOURCE_ROOT_SCRIPTS or _ALL */
	enum source_state state;
	uint32_t size;	  /* of `text`, at least 1 */
	const char *text; /* without NUL bytes but for one behind its end; of any encoding */
};

/*
 * Folded stacks whose numbers are no counts of samples begin with a comment. Of weights, and of
 * events that differ from sample to sample, it has the unit of the numbers and the event: "bytes",
 * "bytes of memory", "5 ns of CPU time". Of equal samples it has the events of one, too. These are
 * for printf and scanf. No line may end with a number: readers would take it for a stack.
 */
#define FOLDED_WEIGHTS	"# weights: "
#define FOLDED_CPU_UNIT "%" PRIu64 " ns of CPU time"
#define FOLDED_FILTER	"# filter: "
#define PART_OF_NEXT	"; " /* between what filters kept and dropped, in META_PART_OF */
#define COLLAPSED_FILES "--collapse=dso" /* in folded and pprof: each frame is all code of a file */
#define FOLDED_SAMPLES	"# samples: each "
#define FOLDED_OF	" of "

/* Firefox files must name a product: this one if the profile has none. */
#define FIREFOX_NO_PRODUCT "sysprof"

/* Every array has `*_count` elements; where ids point into it, element 0 is the placeholder. */
struct profile {
	/* The kinds of samples, each once, no placeholder. No thread has other kinds. */
	const struct profile_sample_type *sample_types;
	size_t sample_type_count;
	const char *const *strings;
	size_t string_count; /* strings[0] is "" */
	const struct profile_dso *dsos;
	size_t dso_count;
	const struct profile_function *functions;
	size_t function_count;
	const struct profile_line *lines;
	size_t line_count; /* no ids, no placeholder */
	const struct profile_location *locations;
	size_t location_count;
	const struct profile_stack *stacks;
	size_t stack_count;
	const struct profile_process *processes;
	size_t process_count;
	const struct profile_fact *facts;
	size_t fact_count; /* no ids, no placeholder */
	const struct profile_thread *threads;
	size_t thread_count; /* ordered by first appearance */
	const struct profile_cpu_books *books;
	size_t books_count; /* by cpu, no placeholder */
	const struct profile_jit *jits;
	size_t jit_count; /* in order of their processes, no placeholder */
	const struct profile_runtime *runtimes;
	size_t runtime_count; /* each name once, no placeholder */
	const struct profile_gil *gils;
	size_t gil_count; /* each thread once, no placeholder */
	const struct profile_meta *meta;
	size_t meta_count; /* in order of arrival, no placeholder */
	const struct profile_lost_range *lost_ranges;
	size_t lost_range_count;
	const struct profile_outside *outside; /* by user, thing and reason, no placeholder */
	size_t outside_count;
	const struct profile_memory *memories; /* no placeholder; each process once */
	size_t memory_count;
	const struct profile_clause *clauses; /* no placeholder; none: it is not filtered */
	size_t clause_count;
	const struct profile_marker *markers; /* in order of their starts, no placeholder */
	size_t marker_count;
	const uint64_t *epochs; /* when clock epochs after the first began, ns, in order */
	size_t epoch_count;
	/* By dso, process, version and address, no placeholder. */
	const struct profile_code *codes;
	size_t code_count;
	const struct profile_code_row *code_rows; /* no placeholder; each of one code */
	size_t code_row_count;
	const struct profile_source *sources; /* by path (its number) and root, no placeholder */
	size_t source_count;

	uint64_t start, end;	 /* CLOCK_MONOTONIC ns: sampling was on in [start, end] */
	uint64_t start_realtime; /* ns since the epoch at `start` */
	uint64_t period;	 /* ns between two ticks of a CPU */
	/* What CPU samples count, and its unit, as pprof's sample types; 0: ticks of a clock. */
	struct string_id event, event_unit;
	uint64_t event_count;	 /* events of the CPU samples of all threads; of a clock: ticks */
	double event_squares;	 /* sum of the squares of single samples' events, for errors */
	uint64_t event_period;	 /* events between two samples; 0: it varies, or a clock */
	uint64_t tsc_khz;	 /* 0: the monotonic clock was used */
	uint64_t clock_error_ns; /* largest anchor error + extrapolation error */
	uint32_t clock_epochs;
	uint64_t sample_count;			 /* ticks of the CPU samples of all threads */
	uint64_t stack_ends[STACK_END_COUNT];	 /* of these, by the reason why the stack ends */
	uint64_t frames_found[FRAME_KIND_COUNT]; /* their user frames, by how the frame was found */
	uint64_t lost[LOST_SOURCE_COUNT];
	struct profile_visits visits;
	uint64_t unmapped_frames;  /* user frames outside every known mapping */
	uint64_t inlined_left_out; /* lines of locations beyond the bound of docs/FORMATS.md */
	/* Of a format without times: made-up times in row order, period 0, real weights, ticks. */
	bool untimed;
	/*
	 * Of a format with weights instead of counts: how many samples there were is unknown, so
	 * shares have no intervals and differences no verdicts. Ticks are the file's weights, in
	 * units of tick_cpu ns of CPU time; or, where that is 0, in those of event_unit. There are
	 * no other events.
	 */
	bool uncounted;
	uint64_t tick_cpu;
	/* From a format with IDLE samples: threads were off CPU there and nowhere else. */
	bool idle_known;
	bool weight_ahead; /* weights count to the next sample; implies idle_known */
	bool cut_short;	   /* the recording has no end: its writer was killed or is still writing */
	struct string_id filter; /* of a filtered profile: all clauses as text */
	bool arguments; /* facts about command lines have them; set before the first fact */
	/*
	 * Names of locations are those of functions, or of all code of a file (--collapse dso), also if
	 * code without a symbol would get the same; set before the profile is finished.
	 */
	bool has_only_names;
	bool is_slice;	       /* start and end are those of a slice */
	bool dropped_running;  /* a filter dropped a target that still ran at the end */
	bool finished_symbols; /* every location was symbolized, or is in the symbols chunk */
};

static inline enum gil_state profile_samples__gil(const struct profile_samples *samples, size_t i)
{
	return samples->gil ? (enum gil_state)samples->gil[i] : GIL_UNKNOWN;
}

/* "held", …; "": unknown. */
static inline const char *gil_state_name(enum gil_state state)
{
	static const char *const names[GIL_STATE_COUNT] = {
#define X(id, name) name,
		GIL_STATES(X)
#undef X
	};

	return (unsigned int)state < GIL_STATE_COUNT ? names[state] : "";
}

static inline enum sample_context profile_samples__context(const struct profile_samples *samples,
							   size_t i)
{
	return samples->context ? (enum sample_context)samples->context[i] : CONTEXT_NONE;
}

/* On which CPU; -1: unknown. */
static inline int profile_samples__cpu(const struct profile_samples *samples, size_t i)
{
	return samples->cpu ? samples->cpu[i] - 1 : -1;
}

/* "softirq", …; "": the thread's own work. */
static inline const char *sample_context_name(enum sample_context context)
{
	static const char *const names[CONTEXT_COUNT] = {
#define X(id, name) name,
		SAMPLE_CONTEXTS(X)
#undef X
	};

	return (unsigned int)context < CONTEXT_COUNT ? names[context] : "";
}

static inline enum wall_state profile_samples__state(const struct profile_samples *samples,
						     size_t i)
{
	return samples->state ? (enum wall_state)samples->state[i] : WALL_NONE;
}

/* "lock", … */
const char *wall_state_name(enum wall_state state);

static inline uint64_t profile_samples__ticks(const struct profile_samples *samples, size_t i)
{
	return samples->ticks ? samples->ticks[i] : 1;
}

static inline const char *profile__string(const struct profile *p, struct string_id id)
{
	return p->strings[id.v];
}

/* Value of a key of <sysprof/meta_keys.h>, or NULL. */
const char *profile__meta(const struct profile *p, const char *key);

/* What a row counts: events, or the ticks of a clock. */
static inline uint64_t profile_samples__events(const struct profile_samples *samples, size_t i)
{
	return samples->events ? samples->events[i] : profile_samples__ticks(samples, i);
}

/* The sum of the squares of single samples' events; events without a sample are of one. */
static inline double profile_square(uint64_t events, uint64_t ticks)
{
	return (double)events * (double)events / (double)(ticks ? ticks : 1);
}

/* That of the samples in a row: the variance of their sum. */
static inline double profile_samples__square(const struct profile_samples *samples, size_t i)
{
	return profile_square(profile_samples__events(samples, i),
			      profile_samples__ticks(samples, i));
}

/* "cycles", …; "samples" of a clock, whose unit is "count"; "weight" where they are uncounted. */
const char *profile__event(const struct profile *p);
const char *profile__event_unit(const struct profile *p);

/* This event is CPU time: events are the weights, and divide CPU time as ticks of a clock do. */
#define EVENT_CPU      "cpu"
#define EVENT_CPU_UNIT "nanoseconds"
bool profile__events_are_cpu(const struct profile *p);

/* Formats without times, or whose times are relative, start one second after the clock's zero. */
#define PROFILE_MADE_UP_START 1000000000ULL
#define PROFILE_YEAR_2000     946684800000000000ULL /* ns: later times are since 1970 */

/* The code at a location; NULL: the profile has none. */
const struct profile_code *profile__code(const struct profile *p,
					 const struct profile_location *location);
/* The row that is valid at an offset of a code; NULL: none is. */
const struct profile_code_row *profile__code_row(const struct profile *p,
						 const struct profile_code *code, uint64_t offset);
/*
 * Where a line of a location is in its source: lines[line], or of code that a runtime has made the
 * beginning of the function, if that is all that is known.
 */
struct profile_line profile__source_line(const struct profile *p, const struct profile_location *l,
					 uint32_t line);
/* The profile_source.root that the sources of that code have. */
uint8_t profile__source_root(const struct profile *p, struct dso_id dso);
/* The first text of a path, of whichever code; NULL: the profile has none. */
const struct profile_source *profile__first_source(const struct profile *p, struct string_id path);
/* The text of a source file of that code; NULL: the profile has none. */
const struct profile_source *profile__source(const struct profile *p, struct dso_id dso,
					     struct string_id path);
const char *code_machine_name(enum code_machine machine); /* "x86-64", …; "": unknown */
const char *source_state_text(enum source_state state);

const char *code_tier_text(enum code_tier tier);
const char *symbol_state_text(enum symbol_state state);

/* Does this end mean that the whole stack is there? */
bool stack_end_is_complete(enum stack_end end);

/* CPU time of a thread over the whole recording, ns: its CPU samples' weights and its tail. */
uint64_t profile_thread__cpu(const struct profile_thread *thread);

/* Add the events of the CPU samples of all threads to `events`, by stack. */
void profile__count_stacks(const struct profile *p, uint64_t *events);

/* Share of CPU samples whose stack is complete, 0..1; 1 if there is no sample. */
double profile__complete_share(const struct profile *p);

/* Share of distinct locations with a function name from a symbol, 0..1; 1 without locations. */
double profile__named_share(const struct profile *p);

/* Sum of (due - Σ lines) over all CPUs whose due is known: ticks or events not in the books. */
int64_t profile__unexplained_ticks(const struct profile *p);
/*
 * How many missing ticks are within the measurement error: two per CPU for the edges of the
 * recording, plus 50 ppm, because the two counts come from different kernel clocks (local_clock,
 * and CLOCK_MONOTONIC under NTP). Of a PMU's events two periods per CPU: many kernels report a
 * varying period when it begins.
 */
int64_t profile__unexplained_allowed(const struct profile *p);

#endif
