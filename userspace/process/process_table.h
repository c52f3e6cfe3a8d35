/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who lives under which pid and tid at this moment of the stream.
 *
 * A life is one process between its birth or execve and its end or next execve; threads likewise. An
 * ended life can be found until its number is used again or LIFE_GRACE_NS has passed, because a task
 * still runs for a moment after its exit record.
 *
 * Lives know nothing of profiles. Who keeps something about them does so in a table of its own, by
 * `slot` (small numbers, which are given out again) with `serial` (unique) beside it.
 */
#ifndef PROCESS_PROCESS_TABLE_H
#define PROCESS_PROCESS_TABLE_H

#include <stdbool.h>
#include <sys/queue.h>

#include <sysprof/event.h>

#include "process/mapping_table.h"
#include "process/process_observer.h"

#define LIFE_NAME_SIZE	  64 /* kernel threads have long names in /proc */
#define LIFE_GRACE_NS	  2000000000ull
#define LIFE_UNKNOWN_NAME "[unknown]"

/* The place of a life in tables of others. */
struct life_number {
	uint32_t slot;
	uint64_t serial; /* from 1 on */
};

struct process_life {
	struct life_number number;
	uint32_t pid, ppid;
	char name[LIFE_NAME_SIZE];
	uint64_t born;	/* when the pid was given out, kept across execve; 0 unknown */
	uint64_t start; /* of this life; 0 unknown */
	uint64_t end;	/* 0: lives */
	bool is_kernel, is_target;
	bool asked; /* told by /proc as a target: it is in profiles even without samples */
	struct mapping_table *maps;
	uint64_t maps_version;			 /* changes with maps */
	uint32_t jit_files[JIT_FILE_KIND_COUNT]; /* that tell of its code; 0: none */

	/* process_table's own */
	bool ended, indexed;
	uint32_t living;		   /* threads that have not ended */
	TAILQ_HEAD(, thread_life) threads; /* all that can be found */
	TAILQ_ENTRY(process_life) link;	   /* in living or dead of the table */
};

/*
 * A thread's CPU clock, as far as it is known. `last` is what is to be accounted for: the clock at its last
 * sample, or before it at the baseline. `seen` is the highest value known; what lies between is for
 * the tail.
 */
struct thread_clock {
	bool known, sampled;
	uint64_t last, seen; /* ns */
	uint64_t excess; /* that has been accounted for beyond it, and could not be taken back */
	uint64_t start;	 /* of the thread that the clock began with, before any execve */
};

struct thread_life {
	struct life_number number;
	struct process_life *process;
	uint32_t tid;
	char comm[LIFE_NAME_SIZE];
	uint64_t start, end; /* as of a process */
	bool told;	     /* by /proc */
	bool counted;	     /* it is in a profile, of this window or one before, and remains */
	struct thread_clock cpu;
	uint64_t last_sample; /* time */

	/* process_table's own */
	bool ended, indexed;
	TAILQ_ENTRY(thread_life) sibling;
	TAILQ_ENTRY(thread_life) link; /* in dead of the table */
};

static inline bool thread_life__is_main(const struct thread_life *t)
{
	return t->tid == t->process->pid;
}

struct process_table;

struct process_table *process_table__new(void); /* NULL: no memory */
void process_table__free(struct process_table *table);

/* Observers are told in the order in which they were added. 0 or -ENOMEM. */
int process_table__observe(struct process_table *table, const struct process_observer *observer);
/* The one with this context is told nothing more. */
void process_table__unobserve(struct process_table *table, const void *context);
int process_table__tell_mapped(struct process_table *table, struct process_life *process);
int process_table__tell_jit_frames(struct process_table *table, struct process_life *process,
				   uint64_t time, const struct jit_unwinding *list, size_t count);
/* Does anybody listen to those? */
bool process_table__wants_jit_frames(const struct process_table *table);

/* Time goes on: bury those whose grace is over. */
void process_table__advance(struct process_table *table, uint64_t now);

/* Living or within grace; NULL. */
struct process_life *process_table__find(const struct process_table *table, uint32_t pid);
struct thread_life *process_table__find_thread(const struct process_table *table, uint32_t tid);

/*
 * Start a life; whoever had the number before ends at `time`. `start` 0 is unknown. NULL: no
 * memory.
 */
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
 * The process is asked for: it is in profiles with the threads that /proc told, even without a
 * sample. Not so once a kernel thread is asked for, which happens in recordings of the whole system
 * only: those want what ran, not everything there is.
 */
void process_table__ask(struct process_table *table, struct process_life *process);
/* Is this thread in every profile of its time, sampled or not? */
bool process_table__is_asked_for(const struct process_table *table,
				 const struct thread_life *thread);

/* A main thread's name is its process's too. */
void process_table__rename(struct process_table *table, struct process_life *process,
			   const char *name);
void process_table__rename_thread(struct process_table *table, struct thread_life *thread,
				  const char *comm);

/* Processes in the order in which they were first told, those that have ended too; NULL ends. */
struct process_life *process_table__first_living(const struct process_table *table);
struct process_life *process_table__first_dead(const struct process_table *table);
struct process_life *process_life__next(const struct process_life *process);

struct process_table_counts {
	size_t processes, threads; /* that can be found, the dead within their grace included */
};
struct process_table_counts process_table__counts(const struct process_table *table);

#endif
