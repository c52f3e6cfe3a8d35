/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is told what becomes of processes, in the order of the stream: the open window's recorder, and
 * who keeps the kernel's unwind tables. Callbacks that are NULL are skipped. They may not change the
 * world.
 */
#ifndef PROCESS_PROCESS_OBSERVER_H
#define PROCESS_PROCESS_OBSERVER_H

#include <stdint.h>

struct process_life;
struct thread_life;
struct jit_unwinding;

enum life_end {
	LIFE_EXIT, /* or its number was given out anew */
	LIFE_EXEC, /* the next life goes on */
};

struct process_observer {
	void *context; /* first argument of every callback */

	/* The process has other mappings now. 0 or -ENOMEM. */
	int (*mapped)(void *context, struct process_life *process);
	/* What the jitdump of the process says of frames, all of it. 0 or -ENOMEM. */
	int (*jit_frames)(void *context, struct process_life *process, uint64_t time,
			  const struct jit_unwinding *list, size_t count);

	void (*process_renamed)(void *context, struct process_life *process);
	void (*process_ended)(void *context, struct process_life *process, enum life_end how);
	/* It was thought to have ended, and shows a sign of life. */
	void (*process_revived)(void *context, struct process_life *process);

	void (*thread_renamed)(void *context, struct thread_life *thread);
	/* Before its process. */
	void (*thread_ended)(void *context, struct thread_life *thread, enum life_end how);
	/* Nothing is to come of it any more: its CPU time is final, and it is about to be freed. */
	void (*thread_forgotten)(void *context, struct thread_life *thread);
};

#endif
