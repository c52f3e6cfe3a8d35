/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WORLD_WALL_ACCOUNTS_H
#define WORLD_WALL_ACCOUNTS_H

#include <stdint.h>

#include <sysprof/profile.h>

struct process_table;
struct thread_accounts;
struct thread_life;
struct visit_event;

/* Where a thread's time went, by its visits. See wall_accounts.c. */

/* How a visit found a thread. */
struct wall_visit {
	enum wall_state state; /* WALL_NONE: its account alone */
	uint8_t open;	       /* WALL_STATE_OPEN and WALL_STATE_PENDING, or 0 */
	struct stack_id stack;
	struct string_id comm;
	struct thread_id holder; /* of the lock; 0: not known, or it is none */
	uint64_t since, until;	 /* it waited from when to when; equal: not known */
};

/* 0 or -ENOMEM. */
int wall_accounts__visit(const struct thread_accounts *a, struct thread_life *thread,
			 const struct visit_event *e, const struct wall_visit *visit);
/* The holder of the lock that a thread waits for: the kernel's, or of its process; 0: unknown. */
struct thread_id wall_accounts__holder(const struct thread_accounts *a,
				       struct process_table *processes,
				       const struct thread_life *waiting,
				       const struct visit_event *e);
/* The thread ends; the first call counts. `visited`: when the latest visit of any thread began, as far as known. */
void wall_accounts__exit(struct thread_life *thread, uint64_t time, uint64_t cpu_time,
			 uint64_t visited);
/*
 * Closes the thread's account of this window: the state seen last gets the time until then. A
 * thread without a visit is not added to the profile. 0 or -ENOMEM.
 */
int wall_accounts__settle(const struct thread_accounts *a, struct thread_life *thread);

/* The thread calls execve (wall_accounts.c). */
void wall_accounts__exec(struct thread_life *caller, uint64_t time);

#endif
