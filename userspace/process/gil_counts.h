/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of the GIL in the notes of a window's samples, added up by thread. */
#ifndef PROCESS_GIL_COUNTS_H
#define PROCESS_GIL_COUNTS_H

#include <sysprof/event.h>
#include <sysprof/profile_builder.h>

#include "base/vec.h"

struct gil_counts {
	VEC(struct profile_gil) rows;
};

void gil_counts__fini(struct gil_counts *g);

/* The state in a sample. */
enum gil_state gil_state_of(const struct sample_event *e);

/*
 * A sample of a thread with this CPU time; *row is the thread's, index + 1, 0 before its first one. 0 or -ENOMEM.
 */
int gil_counts__sample(struct gil_counts *g, size_t *row, struct process_id process,
		       struct thread_id thread, enum gil_state state, uint64_t weight);
/* Into the profile. */
void gil_counts__report(const struct gil_counts *g, struct profile_builder *builder);

#endif
