/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes and threads that have a pid or tid at the current position in the stream.
 *
 * A life is one process from its fork or execve to its exit or next execve; threads likewise. An
 * ended life can be found until its pid is reused or LIFE_GRACE_NS has passed, because a task still
 * runs for a moment after its exit record.
 *
 * Lives have no pointers to profiles. Other modules keep data about lives in tables of their own,
 * indexed by `slot` (a small number, reused); `serial` (unique) detects reuse.
 *
 * The table owns the lives. One thread.
 */
#ifndef WORLD_PROCESS_TABLE_H
#define WORLD_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <sysprof/event.h>
#include <sysprof/event_handler.h>
#include <sysprof/mapping.h>
#include <sysprof/profile.h>

#include "runtimes/place/code_functions.h"

struct jit_code;
struct mapping_table;
struct process_life;
struct process_table;
struct thread_life;

/* Bytes that several lives have: counted references, so that a fork copies nothing. */
struct shared_bytes {
	unsigned int refs;
	_Alignas(8) char bytes[];
};

/* NULL stays NULL. */
#define shared_ref(shared)                                                                         \
	({                                                                                         \
		__auto_type shared_ = (shared);                                                    \
		if (shared_)                                                                       \
			shared_->refs++;                                                           \
		shared_;                                                                           \
	})
#define shared_unref(shared)                                                                       \
	do {                                                                                       \
		__auto_type shared_ = (shared);                                                    \
		if (shared_ && !--shared_->refs)                                                   \
			free(shared_);                                                             \
	} while (0)

/* NULL: no memory. */
static inline struct shared_bytes *shared_bytes__new(const void *bytes, size_t size)
{
	struct shared_bytes *b = malloc(sizeof(*b) + size);

	if (!b)
		return NULL;
	b->refs = 1;
	memcpy(b->bytes, bytes, size);
	return b;
}

static inline struct shared_bytes *shared_text__new(const char *text)
{
	return shared_bytes__new(text, strlen(text) + 1);
}

/*
 * Observers of changes to processes, in stream order: the recorder of the open window, and what
 * keeps the kernel's unwind tables up to date. Callbacks may be NULL and must not change the world.
 */

enum life_end {
	LIFE_EXIT, /* or its pid was reused */
	LIFE_EXEC, /* continued by the next life */
};

struct process_observer {
	void *context; /* first argument of every callback */

	/* The mappings changed: this one was added, or (NULL) some were removed. 0 or -ENOMEM. */
	int (*mapped)(void *context, struct process_life *process, const struct mapping *mapping);
	/* The process's `dump` has grown. 0 or -ENOMEM. */
	int (*jit_frames)(void *context, struct process_life *process, uint64_t time);

	void (*process_renamed)(void *context, struct process_life *process);
	void (*process_ended)(void *context, struct process_life *process, enum life_end how);
	/* No more events of it follow: it is about to be freed. */
	void (*process_forgotten)(void *context, struct process_life *process);
	/* It was assumed to have ended, but an event shows that it runs. */
	void (*process_revived)(void *context, struct process_life *process);

	void (*thread_renamed)(void *context, struct thread_life *thread);
	/* Before its process. */
	void (*thread_ended)(void *context, struct thread_life *thread, enum life_end how);
	/* No more events of it follow: its CPU time is final, and it is about to be freed. */
	void (*thread_forgotten)(void *context, struct thread_life *thread);
};

#define LIFE_NAME_SIZE	  64 /* kernel threads have long names in /proc */
#define LIFE_GRACE_NS	  2000000000ull
#define LIFE_UNKNOWN_NAME "[unknown]"

/* The index of a life in tables of other modules. */
struct life_number {
	uint32_t slot;
	uint64_t serial; /* from 1 on */
};

struct process_life {
	struct life_number number;
	uint32_t pid, ppid;
	char name[LIFE_NAME_SIZE];
	uint64_t born;		     /* when the pid was given out, kept across execve; 0 unknown */
	uint64_t start;		     /* of this life; 0 unknown */
	uint64_t end;		     /* 0: lives */
	enum process_begin began;    /* PROCESS_WAS_THERE: not seen */
	enum life_end how;	     /* it ended, if it has */
	struct shared_bytes *cgroup; /* the path of its control group; NULL: unknown */
	/* Path of the first file mapped executable in this or its parent's life; NULL: unknown */
	struct shared_bytes *program;
	struct shared_bytes *facts; /* a struct facts_event; NULL: not read */
	bool is_kernel, is_target;
	bool is_requested; /* a target from /proc: it is in profiles even without samples */
	struct mapping_table *maps;
	uint64_t maps_version;			 /* changes with maps */
	uint32_t jit_files[JIT_FILE_KIND_COUNT]; /* that describe its code; 0: none */
	bool has_followed_file;			 /* one of them is, or was, followed, … */
	uint64_t followed_since;		 /* … from then on; CLOCK_MONOTONIC */
	struct jit_code *dump;			 /* the jitdump's CFI; NULL: not needed */
	enum code_runtime_state unread; /* a runtime that is not read, as reported; READ: none */
	enum frame_note_kind unread_kind;
	struct code_kin kin[CODE_KIN_MAX]; /* whose functions it has had since its fork */

	/* process_table's own */
	bool ended, indexed;
	uint32_t living;		     /* threads that have not ended */
	TAILQ_HEAD(, thread_life) threads;   /* all that can be found */
	TAILQ_ENTRY(process_life) link;	     /* in living or dead of the table */
	TAILQ_ENTRY(process_life) dump_link; /* in dumps of the table, if it has one */
};

/*
 * A thread's CPU clock. Time up to `last`, the clock at its last sample or before that at the
 * baseline, is accounted for. Time from there to `seen`, the highest reading, is the tail.
 */
struct thread_clock {
	bool known, sampled;
	uint64_t last, seen; /* ns */
	uint64_t excess;     /* accounted for beyond the clock, and not taken back */
	uint64_t start;	     /* of the thread, before any execve */
};

/* The wall-clock account of a visited thread: world/wall_accounts.c. */
struct thread_wall {
	bool known, ended;
	uint64_t seen; /* CLOCK_MONOTONIC ns: up to then its time is accounted for */
	uint64_t cpu, delay, switches;	     /* of the account, as far as accounted for */
	uint64_t visited_cpu, visited_delay; /* of the account at the last visit */
	uint64_t blocked_due, delay_due;     /* time that no visit has been given yet, ns */
	uint64_t not_waited;		     /* neither ran nor waited, as in interrupts */
	struct profile_wall sums;	     /* of this window */
	/* the state at the last visit, and its time so far */
	enum wall_state state; /* WALL_NONE: none, or no visit in this window */
	uint8_t open;	       /* WALL_STATE_OPEN and WALL_STATE_PENDING, or 0 */
	struct stack_id stack;
	struct string_id comm;
	struct thread_id holder;
	uint64_t found_at, weight;
	uint64_t waits_since, waits_until; /* CLOCK_MONOTONIC ns, as far as seen */
};

/* In the thread's next life, after an execve. */
static inline void thread_wall__go_on(struct thread_wall *next, const struct thread_wall *wall)
{
	*next = (struct thread_wall){
		.known = wall->known,
		.seen = wall->seen,
		.cpu = wall->cpu,
		.delay = wall->delay,
		.switches = wall->switches,
		.sums.since = wall->seen,
	};
}

struct thread_life {
	struct life_number number;
	struct process_life *process;
	uint32_t tid;
	char comm[LIFE_NAME_SIZE];
	uint64_t start, end; /* as of a process */
	uint64_t renamed;    /* when it was last given another name; 0: never */
	bool from_proc;	     /* reported by /proc */
	bool counted;	     /* it is in a profile, of this window or one before, and remains */
	struct thread_clock cpu;
	struct thread_wall wall;
	uint64_t last_sample; /* time */

	/* process_table's own */
	bool ended, indexed;
	TAILQ_ENTRY(thread_life) sibling;
	TAILQ_ENTRY(thread_life) link; /* in dead of the table */
};

/* The entry of a life in a VEC by slot, whose elements have the `serial`; NULL: there is none. */
#define life_entry(v, life)                                                                        \
	({                                                                                         \
		const struct life_number *number_ = &(life)->number;                               \
		__auto_type entry_ = number_->slot < (v)->count ? &(v)->data[number_->slot]        \
								: NULL;                            \
		entry_ && entry_->serial == number_->serial ? entry_ : NULL;                       \
	})

static inline bool thread_life__is_main(const struct thread_life *t)
{
	return t->tid == t->process->pid;
}

/*
 * A process has the name of its program: a main thread may rename itself, and does (all of Node.js
 * are "MainThread"). Only kernel threads, and what was never named, are called as their leader.
 */
static inline bool process_life__is_named(const struct process_life *process)
{
	return !process->is_kernel && strcmp(process->name, LIFE_UNKNOWN_NAME);
}

struct process_table_counts {
	size_t processes, threads; /* that can be found, the dead within their grace included */
};

struct process_table *process_table__new(void); /* NULL: no memory */
void process_table__free(struct process_table *table);

/* Observers are called in the order in which they were added. 0 or -ENOMEM. */
int process_table__observe(struct process_table *table, const struct process_observer *observer);
/* Removes the observer with this context. */
void process_table__unobserve(struct process_table *table, const void *context);
int process_table__announce_mapped(struct process_table *table, struct process_life *process,
				   const struct mapping *mapping);
int process_table__announce_jit_frames(struct process_table *table, struct process_life *process,
				       uint64_t time);
/* Does any observer need them? */
bool process_table__wants_jit_frames(const struct process_table *table);
/* A new `dump`, in place of the last one. 0 or -ENOMEM. */
int process_table__follow_dump(struct process_table *table, struct process_life *process);
/* The life whose dump this file is; NULL: none. */
struct process_life *process_table__find_dump(const struct process_table *table, uint32_t file);

/* Frees ended lives whose grace period is over. */
void process_table__advance(struct process_table *table, uint64_t now);

/* Living or within grace; NULL. */
struct process_life *process_table__find(const struct process_table *table, uint32_t pid);
struct thread_life *process_table__find_thread(const struct process_table *table, uint32_t tid);

/* Start a life; an earlier one of its number ends at `time`. start 0: unknown. NULL: no memory. */
struct process_life *process_table__add(struct process_table *table, uint32_t pid, const char *name,
					uint64_t start, uint64_t time);
struct thread_life *process_table__add_thread(struct process_table *table,
					      struct process_life *process, uint32_t tid,
					      const char *comm, uint64_t start, uint64_t time);

/* An execve: the process's next life, without threads and mappings. NULL: no memory. */
struct process_life *process_table__exec(struct process_table *table, struct process_life *old,
					 const char *name, uint64_t time);

/* The thread ended; its process too if no other thread of it lives. */
void process_table__exit_thread(struct process_table *table, struct thread_life *thread,
				uint64_t time);
void process_table__exit(struct process_table *table, struct process_life *process, uint64_t time);

/*
 * Mark a process as a requested target: it is in profiles with its threads found in /proc, even
 * without a sample. It has no effect once a kernel thread was marked, which happens only in
 * recordings of the whole system: their profiles contain what ran, not everything that exists.
 */
void process_table__set_target(struct process_table *table, struct process_life *process);
/* Is this thread in every profile of its lifetime, sampled or not? */
bool process_table__is_target(const struct process_table *table, const struct thread_life *thread);

void process_table__rename(struct process_table *table, struct process_life *process,
			   const char *name);

/* To the name that the kernel gives a process that executes this file. */
void process_table__rename_to_file(struct process_table *table, struct process_life *process,
				   const char *path);

void process_table__rename_thread(struct process_table *table, struct thread_life *thread,
				  const char *comm, uint64_t time);

/* Processes in the order in which they were first reported, including ended ones; NULL ends. */
struct process_life *process_table__first_living(const struct process_table *table);
struct process_life *process_table__first_dead(const struct process_table *table);
struct process_life *process_life__next(const struct process_life *process);
/* The living and then the ended ones; `process` NULL: the first one. NULL ends. */
struct process_life *process_table__next(const struct process_table *table,
					 const struct process_life *process);

struct process_table_counts process_table__counts(const struct process_table *table);

#endif
