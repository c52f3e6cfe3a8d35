/* SPDX-License-Identifier: BSD-2-Clause */
/* Lives of processes and threads, by number and time. The table owns them. One thread. */
#ifndef PROCESS_PROCESS_TABLE_H
#define PROCESS_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "process/world.h"

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
