/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WORLD_THREAD_ACCOUNTS_H
#define WORLD_THREAD_ACCOUNTS_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "base/vec.h"
#include "world/window_lives.h"

struct recording_facts;
struct sample_event;

/* CPU time of threads, as weights of the samples of one window. See thread_accounts.c. */

/* Of a window; none of them is owned. */
struct thread_accounts {
	struct profile_builder *builder;
	struct window_lives *lives;
	const struct recording_facts *facts;
};

/* The stack of such a frame that `caller` (0: none) has called. */
struct stack_id thread_accounts__made_up_frame(const struct thread_accounts *a,
					       const struct thread_life *thread,
					       struct stack_id caller, enum made_up_place place);

/* The weight of a sample, ns, at which the thread's clock was `cpu_time`. */
uint64_t thread_accounts__sample(const struct thread_accounts *a, struct thread_life *thread,
				 uint64_t time, uint64_t cpu_time);
/* A later reading of its clock. */
void thread_accounts__correct(const struct thread_accounts *a, struct thread_life *thread,
			      uint64_t cpu_time);
/* The thread has no more events in this window, which has got to `time`. */
void thread_accounts__settle(const struct thread_accounts *a, struct thread_life *thread,
			     uint64_t time);

/* The states of the GIL in the notes of a window's samples, added up by thread. */

struct gil_counts {
	VEC(struct profile_gil) rows;
};

/* The state in a sample. */
enum gil_state gil_state_of(const struct sample_event *e);

/* A sample with this CPU time, ns. *row: its thread's, index + 1; 0 at first. 0 or -ENOMEM. */
int gil_counts__sample(struct gil_counts *g, size_t *row, struct process_id process,
		       struct thread_id thread, enum gil_state state, uint64_t weight);
/* Into the profile. */
void gil_counts__report(const struct gil_counts *g, struct profile_builder *builder);

#endif
