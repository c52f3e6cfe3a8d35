/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The write side of the profile.
 *
 * A profile is built in three steps. world/recorder adds processes, threads and samples in time
 * order. Then symbols are added, location by location. Then profile_builder__finish() names the
 * remaining locations, checks every invariant and returns the finished const struct profile.
 */
#ifndef SYSPROF_PROFILE_BUILDER_H
#define SYSPROF_PROFILE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

struct profile_builder;

struct profile_builder *profile_builder__new(void); /* NULL: out of memory */
void profile_builder__free(struct profile_builder *b);

/*
 * All adders intern: equal input gives the same id. They return id 0 when out of memory (strings:
 * also for NULL or ""). The error is sticky: from then on profile_builder__error() is -ENOMEM and
 * finish fails, so callers need not check each call.
 */
int profile_builder__error(const struct profile_builder *b);

struct string_id profile_builder__string(struct profile_builder *b, const char *s);
struct dso_id profile_builder__dso(struct profile_builder *b, const struct profile_dso *dso);
struct location_id profile_builder__location(struct profile_builder *b, struct dso_id dso,
					     uint64_t address, struct process_id process,
					     enum profile_category category);
struct stack_id profile_builder__stack(struct profile_builder *b, struct stack_id parent,
				       struct location_id location);

/* Not interned: each call adds a new life. */
struct process_id profile_builder__process(struct profile_builder *b,
					   const struct profile_process *process);
void profile_builder__process_name(struct profile_builder *b, struct process_id id,
				   struct string_id name);
/* `execs`: it ended by an execve. Time 0: it is still running after all. */
void profile_builder__process_end(struct profile_builder *b, struct process_id id, uint64_t time,
				  bool execs);
/* To set what becomes known of it later; NULL: id 0. Valid until the next one is added. */
struct profile_process *profile_builder__get_process(struct profile_builder *b,
						     struct process_id id);
/* All facts about a process; they replace those that it had. At most PROCESS_FACTS_MAX. */
void profile_builder__process_facts(struct profile_builder *b, struct process_id id,
				    enum facts_state state, const struct profile_fact *facts,
				    size_t count);
/* A reading of a process's memory, in time order. `id` 0: the recorder, if it has no process. */
void profile_builder__memory(struct profile_builder *b, struct process_id id, uint32_t pid,
			     bool is_recorder, uint64_t time, uint64_t bytes);

struct thread_id profile_builder__thread(struct profile_builder *b, struct process_id process,
					 uint32_t tid, bool is_main, struct string_id name,
					 uint64_t start);
void profile_builder__thread_name(struct profile_builder *b, struct thread_id id,
				  struct string_id name);
/* The thread's name from `time` on. In time order; the first few hundred are kept. */
void profile_builder__thread_renamed(struct profile_builder *b, struct thread_id id, uint64_t time,
				     struct string_id name);
void profile_builder__thread_end(struct profile_builder *b, struct thread_id id, uint64_t time);
/* CPU time used after the last sample; set at the thread's end. */
void profile_builder__thread_cpu_tail(struct profile_builder *b, struct thread_id id, uint64_t ns);
void profile_builder__thread_wall(struct profile_builder *b, struct thread_id id,
				  const struct profile_wall *wall);
void profile_builder__thread_cpu_excess(struct profile_builder *b, struct thread_id id,
					uint64_t ns);

struct profile_sample {
	enum sample_kind kind;
	uint64_t time;	 /* CLOCK_MONOTONIC ns */
	uint64_t weight; /* in the unit of its kind */
	uint64_t ticks;	 /* how many the row stands for; 0 counts as 1 */
	uint64_t events; /* the same, of an event that is no clock; 0: as many as ticks */
	bool exact;	 /* ticks and events are as given, 0 too */
	struct stack_id stack;
	struct string_id comm; /* the thread's name at that time */
	enum stack_end end;    /* why the stack ends where it does */
	enum gil_state gil;
	enum sample_context context;
	uint16_t cpu;		 /* + 1; 0: unknown */
	struct thread_id holder; /* of a lock that a WALL sample waits for */
	uint8_t state;		 /* enum wall_state; with WALL_STATE_OPEN: its stack may say more */
	/* of a WALL sample; it is moved to its thread's start, and behind the wait before */
	uint64_t since, until;
};
#define WALL_STATE_OPEN	   0x80u
#define WALL_STATE_PENDING 0x40u /* … and WALL_POLL by its stack is WALL_DISK */

/*
 * Add a sample to a thread. Samples of one kind come in time order. A sample not later than the
 * previous one is moved to 1 ns after it, because viewers divide by the difference.
 */
void profile_builder__sample(struct profile_builder *b, struct thread_id thread,
			     const struct profile_sample *sample);

/* Take up to `ns` off the weights of a thread's CPU samples, latest first. Returns how much. */
uint64_t profile_builder__take_back_cpu(struct profile_builder *b, struct thread_id thread,
					uint64_t ns);

#define PROFILE_RENAMES_MAX 256	 /* of a thread; more are ignored */
#define PROFILE_META_MAX    4096 /* keys; more are ignored */
/* Without profile.arguments, command lines are kept without the arguments of programs. */
void profile_builder__meta(struct profile_builder *b, const char *key, const char *value);
void profile_builder__books(struct profile_builder *b, const struct profile_cpu_books *books);
void profile_builder__jit(struct profile_builder *b, const struct profile_jit *jit);
void profile_builder__runtime(struct profile_builder *b, const struct profile_runtime *runtime);
void profile_builder__gil(struct profile_builder *b, const struct profile_gil *gil);
void profile_builder__lost(struct profile_builder *b, enum lost_source source, uint64_t count,
			   uint64_t since, uint64_t until);

/* Counts of one user, thing and reason add up. Users beyond a limit become OUTSIDE_USER_OTHERS. */
void profile_builder__outside(struct profile_builder *b, const struct profile_outside *row);

/* A marker with a name; those outside of the session are dropped. */
void profile_builder__marker(struct profile_builder *b, const struct profile_marker *marker);

/* A clock epoch after the first one began, in time order. */
void profile_builder__epoch(struct profile_builder *b, uint64_t time);

/* What was added so far, as a profile: not finished, and valid until something is added. */
const struct profile *profile_builder__view(struct profile_builder *b);

/* To set the plain fields: start, end, period, clock, … The tables are empty until finish. */
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
/* The location of (dso, address), or 0 if there is none. For the symbols chunk. */
struct location_id profile_builder__find_location(const struct profile_builder *b,
						  struct dso_id dso, uint64_t address);
void profile_builder__dso_state(struct profile_builder *b, struct dso_id id,
				enum symbol_state state);
struct function_id profile_builder__function(struct profile_builder *b,
					     const struct profile_function *function);
/* Make full names the names of functions. Later only profile_builder__finish() adds functions. */
void profile_builder__show_full_names(struct profile_builder *b);
/* The place of `first` at a time when it had other code; as a location itself that is version 0. */
struct location_id profile_builder__version(struct profile_builder *b,
					    const struct profile_location *first, uint32_t version);
/* Facts about the JIT code at a location. */
void profile_builder__code(struct profile_builder *b, struct location_id id, enum code_tier tier,
			   bool ambiguous);
/* The function of JIT code that nothing else will name. */
void profile_builder__fallback(struct profile_builder *b, struct location_id id,
			       struct function_id function);
/* The number of outermost lines of an ambiguous location that are certain. */
void profile_builder__sure_lines(struct profile_builder *b, struct location_id id, uint32_t count);
/* The name of the innermost function at a location; NULL: it has none yet. */
const char *profile_builder__function_name(const struct profile_builder *b, struct location_id id);
const struct profile_stack *profile_builder__get_stack(const struct profile_builder *b,
						       struct stack_id id);
size_t profile_builder__stack_count(const struct profile_builder *b);

/* The samples of a thread so far: their times, and their stacks, which the caller may replace. */
struct builder_samples {
	struct process_id process;
	size_t count;
	const uint64_t *time;
	struct stack_id *stack;
	uint8_t *state; /* NULL: of other kinds than WALL; the caller may replace them */
};
struct builder_samples profile_builder__samples(struct profile_builder *b, struct thread_id id,
						enum sample_kind kind);

/*
 * Set the inline chain of a location, innermost first; at most once. Without one, it is named after
 * its dso ("[libfoo.so]"), or after its address if it has no dso.
 */
void profile_builder__resolve(struct profile_builder *b, struct location_id id,
			      uint64_t elf_address, const struct profile_line *lines,
			      size_t line_count);

/*
 * Name the locations without a name, freeze the profile, and check every invariant
 * (profile_check.h). Returns 0 and *profile, owned by the builder and valid until it is freed;
 * -ENOMEM; or -EINVAL: a broken invariant, a bug. `why` (why_size bytes, may be NULL) says which.
 */
int profile_builder__finish(struct profile_builder *b, const struct profile **profile, char *why,
			    size_t why_size);

#endif
