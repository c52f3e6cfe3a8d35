/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who lives under which pid and tid at this moment of the stream.
 *
 * A life is one process between its birth or execve and its end or next execve; threads likewise. A
 * life gets into the profile when it is first sampled, so a storm of short processes costs nothing
 * there; its end and the CPU time after its last sample are told when it is buried.
 *
 * An ended life can be found until its number is used again or GRACE has passed, because a task
 * still runs for a moment after its exit record.
 */
#ifndef PROCESS_PROCESS_TABLE_H
#define PROCESS_PROCESS_TABLE_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/vec.h"
#include "process/mapping_table.h"

#include <sysprof/profile_builder.h>

#define LIFE_NAME_SIZE	  64 /* kernel threads have long names in /proc */
#define LIFE_GRACE_NS	  2000000000ull
#define LIFE_UNKNOWN_NAME "[unknown]"

struct thread_life;

/* Mappings that the kernel side has been told of. */
struct publication {
	uint32_t tag; /* unwind_tag(); 0: none */
	uint64_t maps_version;
	struct mapping_table *maps;
};

#define PUBLICATIONS 8 /* more often they do not change while a sample is on its way */

struct process_life {
	uint32_t pid, ppid;
	char name[LIFE_NAME_SIZE];
	uint64_t born;	/* when the pid was given out, kept across execve; 0 unknown */
	uint64_t start; /* of this life; 0 unknown */
	uint64_t end;	/* 0: lives */
	bool is_kernel, is_target;
	bool asked;    /* told by /proc as a target: it is in the profile even without samples */
	bool has_main; /* the profile has its main thread */
	struct mapping_table *maps;
	uint64_t maps_version; /* changes with maps */
	uint64_t published;    /* to the unwinder: maps_version + 1; 0: nothing yet */
	uint64_t published_at; /* CLOCK_MONOTONIC */
	bool changed;	       /* it is in the recorder's list of those to be published */
	bool wanted;	       /* it has been sampled */
	struct publication publications[PUBLICATIONS]; /* the last ones, the newest first */
	struct process_id id;			       /* 0: not in the profile yet */
	uint32_t jit_files[JIT_FILE_KIND_COUNT];       /* that tell of its code; 0: none */
	bool runs_jit_code;			       /* jit_names knows of it */

	/* process_table's own */
	bool ended, indexed;
	uint32_t living;		   /* threads that have not ended */
	TAILQ_HEAD(, thread_life) threads; /* all that can be found */
	TAILQ_ENTRY(process_life) link;	   /* in living or dead of the table */
};

/* The last sample's frames, root first, and their stacks: most samples begin like the last. */
struct stack_memo {
	VEC(uint64_t) frames;
	VEC(struct stack_id) stacks;
	uint64_t maps_version;
};

struct thread_life {
	struct process_life *process;
	uint32_t tid;
	char comm[LIFE_NAME_SIZE];
	struct string_id comm_id; /* valid once id is */
	uint64_t start, end;	  /* as of a process */
	bool told;		  /* by /proc */
	struct thread_id id;	  /* 0: not in the profile yet */

	/*
	 * cpu_last is what is accounted for: the thread's clock at its last sample, or before it at
	 * the baseline. cpu_seen is the highest value known; the difference becomes the tail.
	 */
	bool cpu_known, sampled;
	uint64_t cpu_last, cpu_seen;
	uint64_t clock_start; /* start of the thread that the clock began with, before any execve */
	struct stack_memo memo;

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

struct process_table *process_table__new(struct profile_builder *builder); /* NULL: no memory */
void process_table__free(struct process_table *table);

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
/* A process that was thought to have ended shows a sign of life. */
void process_table__revive(struct process_table *table, struct process_life *process);

/*
 * The process is asked for: it is in the profile with the threads that /proc told, even without a
 * sample. Not so once a kernel thread is asked for, which happens in recordings of the whole system
 * only: those want what ran, not everything there is.
 */
void process_table__ask(struct process_table *table, struct process_life *process);

/* Names, told to the profile where it knows the life. A main thread's is its process's too. */
void process_life__rename(struct process_table *table, struct process_life *process,
			  const char *name);
void thread_life__rename(struct process_table *table, struct thread_life *thread, const char *comm);

/*
 * Bring a life into the profile, where it is not yet, for a sample at `time`. `earlier` is how
 * long before it a life of unknown start began. After that thread->id is not 0, unless memory ran
 * out.
 */
void thread_life__show(struct process_table *table, struct thread_life *thread, uint64_t time,
		       uint64_t earlier);

/* Living processes, in the order in which they were first told; NULL ends. */
struct process_life *process_table__first(const struct process_table *table);
struct process_life *process_life__next(const struct process_life *process);

/* The stream is over: put asked lives into the profile and settle all tails. */
void process_table__settle(struct process_table *table, uint64_t time);

#endif
