/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What we know: the profile, columnar and interned.
 *
 * The write side (struct profile_builder) is filled in time order by process/recorder, then the
 * symbols are added location by location, then profile_builder__finish() checks every invariant
 * and freezes it. The read side (const struct profile) is all that exporters and reports see.
 *
 * Vocabulary (pprof's): a sample has a stack; a stack is a location and a parent stack; a location
 * is an address in a dso, and has lines: the inline chain, innermost first; a line is a function
 * and the executing line in it; a function has a definition site. Ids are typed, 0 is none, and
 * number n is element n of its table (element 0 of each table is an all-zero placeholder).
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

enum dso_kind {
	DSO_NONE = 0,
	DSO_FILE, /* an ELF file, or whatever the process mapped */
	DSO_VDSO,
	DSO_KERNEL,  /* vmlinux, modules, BPF programs, trampolines */
	DSO_JIT,     /* anonymous executable memory */
	DSO_UNKNOWN, /* an address outside every known mapping */
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

/* Which compiler of a runtime made a piece of code. X(ENUM, text); "" is not told. */
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

/* How the symbols of a dso were got, or why there are none. X(ENUM, sentence) */
#define SYMBOL_STATES(X)                                                                           \
	X(PENDING, "not asked yet")                                                                \
	X(RESOLVED, "symbol tables were read")                                                     \
	X(NO_FILE, "the mapped file could not be opened")                                          \
	X(NOT_ELF, "not an ELF file")                                                              \
	X(DAMAGED, "a damaged or truncated ELF file")                                              \
	X(NO_SYMBOLS, "stripped: it has no symbols")                                               \
	X(HIDDEN, "kernel.kptr_restrict hides the kernel's symbols")                               \
	X(CANCELLED, "the user did not wait")

enum symbol_state {
#define X(id, text) SYMBOL_STATE_##id,
	SYMBOL_STATES(X)
#undef X
		SYMBOL_STATE_COUNT
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
};

struct profile_function {
	struct string_id name; /* demangled */
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
 * address: file offset (DSO_FILE, DSO_VDSO), or virtual address (the other kinds). Return addresses
 * have been moved back into the call, once, by the recorder.
 */
struct profile_location {
	struct dso_id dso;
	enum profile_category category;
	uint64_t address;
	uint64_t elf_address; /* virtual address in the ELF file; UNKNOWN until resolved */
	struct process_id
		process; /* for DSO_JIT and DSO_UNKNOWN: addresses mean something there only */
	uint32_t first_line,
		line_count; /* into profile->lines, innermost first; ≥ 1 once finished */
	/* of code that is made as it runs: */
	uint32_t version; /* tells apart what lay at one address in turn; 0 first */
	enum code_tier tier;
	bool ambiguous; /* another function may have been there */
};

struct profile_stack {
	struct stack_id parent; /* the caller's stack; 0: this is the root. parent.v < own number */
	struct location_id location;
	uint32_t depth; /* 1 for a root */
};

/* One life of a pid under one name: an execve starts a new one. */
struct profile_process {
	uint32_t pid, ppid;
	struct string_id name;
	uint64_t start,
		end; /* ns, CLOCK_MONOTONIC, clipped to the recording; end 0: still running */
	bool is_kernel;
	bool is_target; /* asked for by the command line, or a child of one that was */
};

/*
 * One life of a tid. Samples are in time order, times strictly increasing. cpu_delta[i] is the CPU time, in ns, that the
 * thread used in (time[i-1], time[i]], where time[-1] is start; cpu_tail is what it used after its
 * last sample. The sum of all is exactly what the thread used while it was recorded.
 */
struct profile_thread {
	struct process_id process;
	uint32_t tid;
	struct string_id name; /* its last one */
	bool is_main;
	uint64_t start, end; /* as of the process */
	uint64_t cpu_tail;
	size_t sample_count;
	const uint64_t *time;	      /* CLOCK_MONOTONIC ns */
	const struct stack_id *stack; /* never 0 */
	const uint64_t *cpu_delta;
	const struct string_id *comm; /* the thread's name at that time */
};

/* What a process's perf map or jitdump told. */
struct profile_jit_file {
	struct string_id path; /* 0: none was found */
	enum jit_file_state state;
	uint64_t entries;   /* pieces of code */
	uint64_t bad_lines; /* lines or records that are none */
	uint64_t torn;	    /* bytes of a last line or record that was not finished */
};

/* A process that ran code which it had made itself. */
struct profile_jit {
	struct process_id process;
	struct string_id runtime; /* "Node.js", "Java", …; 0: not recognized */
	struct string_id remedy;  /* how to start it so that it tells of its code; 0 unknown */
	struct profile_jit_file map, dump;
	uint64_t samples;   /* with a frame in such code */
	uint64_t unnamed;   /* of these, with such a frame that has no name */
	uint64_t ambiguous; /* of these, with a frame that may be of another function */
};

struct profile_cpu_books {
	uint32_t cpu;
	uint64_t period;
	uint64_t time_enabled, time_running;
	uint64_t due; /* time_running / period; 0 where period is 0 */
	uint64_t received;
	uint64_t count[BOOK_COUNT];
};

struct profile_lost_range {
	uint64_t since, until;
};

struct profile_meta {
	struct string_id key, value;
};

/* The read side. Every array has `*_count` elements, number 0 being the placeholder where ids are. */
struct profile {
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
	const struct profile_thread *threads;
	size_t thread_count; /* ordered by first appearance */
	const struct profile_cpu_books *books;
	size_t books_count; /* by cpu, no placeholder */
	const struct profile_jit *jits;
	size_t jit_count; /* in order of their processes, no placeholder */
	const struct profile_meta *meta;
	size_t meta_count; /* in order of arrival, no placeholder */
	const struct profile_lost_range *lost_ranges;
	size_t lost_range_count;

	uint64_t start, end;	 /* CLOCK_MONOTONIC ns: sampling was on in [start, end] */
	uint64_t start_realtime; /* ns since the epoch at `start` */
	uint64_t period;	 /* ns between two ticks of a CPU */
	uint64_t tsc_khz;	 /* 0: the monotonic clock was used */
	uint64_t clock_error_ns; /* largest anchor error + extrapolation error seen */
	uint32_t clock_epochs;
	uint64_t sample_count; /* over all threads */
	uint64_t stack_ends[STACK_END_COUNT];
	uint64_t frames_found[FRAME_KIND_COUNT]; /* user frames of all samples, by how */
	uint64_t lost[LOST_SOURCE_COUNT];
	uint64_t unmapped_frames; /* user frames outside every known mapping */
	bool cut_short; /* the recording has no end: its writer was killed, or is still writing */
	bool finished_symbols; /* every location went through a symbolizer or the symbols chunk */
};

static inline const char *profile__string(const struct profile *p, struct string_id id)
{
	return p->strings[id.v];
}

/* Value of a key of <sysprof/meta_keys.h>, or NULL. */
const char *profile__meta(const struct profile *p, const char *key);

const char *code_tier_text(enum code_tier tier);

/* CPU time of a thread over the whole recording, ns: the sum of its deltas and its tail. */
uint64_t profile_thread__cpu(const struct profile_thread *thread);

/* Share of samples whose stack is complete, 0..1; 1 where there is no sample. */
double profile__complete_share(const struct profile *p);

/* Share of distinct locations that got a function's name from a symbol, 0..1; 1 where there is none. */
double profile__named_share(const struct profile *p);

/* due - Σ lines over all CPUs whose due is known: ticks that nobody can explain. */
int64_t profile__unexplained_ticks(const struct profile *p);
/* How many of those mean nothing: two a CPU on the edges of the recording, and 50 ppm, by which the
 * kernel's clocks for the two figures (local_clock, CLOCK_MONOTONIC under NTP) may differ. */
int64_t profile__unexplained_allowed(const struct profile *p);

/* ---- write side ------------------------------------------------------------------------------ */

struct profile_builder;

struct profile_builder *profile_builder__new(void); /* NULL: no memory */
void profile_builder__free(struct profile_builder *b);

/*
 * All adders intern: equal input gives the same id. They return id 0 when memory ran out (for
 * strings: also for NULL or ""), and the builder remembers: profile_builder__error() is then
 * -ENOMEM and finish fails. So callers need not check each.
 */
int profile_builder__error(const struct profile_builder *b);

struct string_id profile_builder__string(struct profile_builder *b, const char *s);
struct dso_id profile_builder__dso(struct profile_builder *b, const struct profile_dso *dso);
struct location_id profile_builder__location(struct profile_builder *b, struct dso_id dso,
					     uint64_t address, struct process_id process,
					     enum profile_category category);
struct stack_id profile_builder__stack(struct profile_builder *b, struct stack_id parent,
				       struct location_id location);

/* Not interned: each call makes a new life. */
struct process_id profile_builder__process(struct profile_builder *b,
					   const struct profile_process *process);
void profile_builder__process_name(struct profile_builder *b, struct process_id id,
				   struct string_id name);
void profile_builder__process_end(struct profile_builder *b, struct process_id id, uint64_t time);

struct thread_id profile_builder__thread(struct profile_builder *b, struct process_id process,
					 uint32_t tid, bool is_main, struct string_id name,
					 uint64_t start);
void profile_builder__thread_name(struct profile_builder *b, struct thread_id id,
				  struct string_id name);
void profile_builder__thread_end(struct profile_builder *b, struct thread_id id, uint64_t time);
/* CPU time used after the last sample; set at the thread's end. */
void profile_builder__thread_cpu_tail(struct profile_builder *b, struct thread_id id, uint64_t ns);

/*
 * One sample of a thread, at a time not before its last one (an equal or earlier time is moved to
 * 1 ns after the last one: viewers divide by the difference).
 */
void profile_builder__sample(struct profile_builder *b, struct thread_id thread, uint64_t time,
			     struct stack_id stack, uint64_t cpu_delta, struct string_id comm,
			     enum stack_end end);

/*
 * The samples so far told `ns` of CPU time too much: take it out of the latest deltas. Returns how
 * much was there to take, at most `ns`.
 */
uint64_t profile_builder__take_back_cpu(struct profile_builder *b, struct thread_id thread,
					uint64_t ns);

void profile_builder__meta(struct profile_builder *b, const char *key, const char *value);
void profile_builder__books(struct profile_builder *b, const struct profile_cpu_books *books);
void profile_builder__jit(struct profile_builder *b, const struct profile_jit *jit);
void profile_builder__lost(struct profile_builder *b, enum lost_source source, uint64_t count,
			   uint64_t since, uint64_t until);

/* Session facts are plain fields: start, end, period, clock, … Tables in it stay empty until finish. */
struct profile *profile_builder__session(struct profile_builder *b);

/* ---- symbols, added after the last sample ---------------------------------------------------- */

size_t profile_builder__dso_count(const struct profile_builder *b); /* ids are 1 .. count - 1 */
const struct profile_dso *profile_builder__get_dso(const struct profile_builder *b,
						   struct dso_id id);
const char *profile_builder__get_string(const struct profile_builder *b, struct string_id id);
size_t profile_builder__location_count(const struct profile_builder *b);
size_t profile_builder__thread_count(const struct profile_builder *b); /* without id 0 */
const struct profile_location *profile_builder__get_location(const struct profile_builder *b,
							     struct location_id id);
/* The location of (dso, address) if it is in the table, else 0; for the symbols chunk. */
struct location_id profile_builder__find_location(const struct profile_builder *b,
						  struct dso_id dso, uint64_t address);
void profile_builder__dso_state(struct profile_builder *b, struct dso_id id,
				enum symbol_state state);
struct function_id profile_builder__function(struct profile_builder *b,
					     const struct profile_function *function);
/* The same address with other code: `location` is version 0, and so is the answer for it. */
struct location_id profile_builder__version(struct profile_builder *b, struct location_id location,
					    uint32_t version);
/* How code that was made as it ran came to be at a location. */
void profile_builder__code(struct profile_builder *b, struct location_id id, enum code_tier tier,
			   bool ambiguous);
const struct profile_stack *profile_builder__get_stack(const struct profile_builder *b,
						       struct stack_id id);
size_t profile_builder__stack_count(const struct profile_builder *b);
/* A thread's samples so far: their times, and their stacks, which may be exchanged for others. */
struct profile_samples {
	struct process_id process;
	size_t count;
	const uint64_t *time;
	struct stack_id *stack;
};
struct profile_samples profile_builder__samples(struct profile_builder *b, struct thread_id id);
/* Give a location its inline chain, innermost first; once. Without a call it is named after its
 * dso ("[libfoo.so]"), or by its address where it has none. */
void profile_builder__resolve(struct profile_builder *b, struct location_id id,
			      uint64_t elf_address, const struct profile_line *lines,
			      size_t line_count);

/*
 * Name what is left unnamed, check every invariant (profile_check.h) and freeze. 0 and *profile,
 * owned by the builder and valid until it is freed; -ENOMEM; -EINVAL when an invariant is broken,
 * which is a bug (the text is in `why`, if given, of why_size bytes).
 */
int profile_builder__finish(struct profile_builder *b, const struct profile **profile, char *why,
			    size_t why_size);

#endif
