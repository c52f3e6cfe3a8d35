/* SPDX-License-Identifier: BSD-2-Clause */
/* CPU time of threads, as weights of the samples of one window. See thread_accounts.c. */
#ifndef PROCESS_THREAD_ACCOUNTS_H
#define PROCESS_THREAD_ACCOUNTS_H

#include <sysprof/profile_builder.h>

#include "process/process_table.h"
#include "process/recording_facts.h"
#include "process/window_lives.h"

/* Of a window; none of them is owned. */
struct thread_accounts {
	struct profile_builder *builder;
	struct window_lives *lives;
	const struct recording_facts *facts;
};

/* The weight of a sample, ns, at which the thread's clock was `cpu_time`. */
uint64_t thread_accounts__sample(const struct thread_accounts *a, struct thread_life *thread,
				 uint64_t time, uint64_t cpu_time);
/* A later reading of its clock. */
void thread_accounts__correct(const struct thread_accounts *a, struct thread_life *thread,
			      uint64_t cpu_time);
/* There are no more events of the thread, in this window, which has got to `time`. */
void thread_accounts__settle(const struct thread_accounts *a, struct thread_life *thread,
			     uint64_t time);

#endif
