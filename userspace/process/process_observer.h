/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Observers of changes to processes, in stream order: the recorder of the open window, and the maintainer of the
 * kernel's unwind tables. Callbacks that are NULL are skipped. Callbacks must not change the world.
 */
#ifndef PROCESS_PROCESS_OBSERVER_H
#define PROCESS_PROCESS_OBSERVER_H

#include <stdint.h>

struct process_life;
struct thread_life;
struct jit_unwinding;
struct mapping;

enum life_end {
	LIFE_EXIT, /* or its pid was reused */
	LIFE_EXEC, /* continued by the next life */
};

struct process_observer {
	void *context; /* first argument of every callback */

	/* The process has other mappings now: this one, too, or (NULL) some less. 0 or -ENOMEM. */
	int (*mapped)(void *context, struct process_life *process, const struct mapping *mapping);
	/* All unwinding information of the process's jitdump so far. 0 or -ENOMEM. */
	int (*jit_frames)(void *context, struct process_life *process, uint64_t time,
			  const struct jit_unwinding *list, size_t count);

	void (*process_renamed)(void *context, struct process_life *process);
	void (*process_ended)(void *context, struct process_life *process, enum life_end how);
	/* There are no more events of it: it is about to be freed. */
	void (*process_forgotten)(void *context, struct process_life *process);
	/* It was assumed to have ended, but an event shows that it runs. */
	void (*process_revived)(void *context, struct process_life *process);

	void (*thread_renamed)(void *context, struct thread_life *thread);
	/* Before its process. */
	void (*thread_ended)(void *context, struct thread_life *thread, enum life_end how);
	/* There are no more events of it: its CPU time is final, and it is about to be freed. */
	void (*thread_forgotten)(void *context, struct thread_life *thread);
};

#endif
