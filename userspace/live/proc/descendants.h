/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that descend from this one, and the CPU time of all of them. */
#ifndef LIVE_PROC_DESCENDANTS_H
#define LIVE_PROC_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/proc_task.h"

struct descendant {
	pid_t pid;
	const struct descendant *parent; /* NULL: it is a child of this process */
	struct proc_stat stat;
	uint64_t cpu_ns; /* its own, and of children that it has waited for */
	int tag;	 /* for the caller */
};

/* False: not those below it. */
typedef bool descendant_fn(struct descendant *d, void *context);

/*
 * A parent comes before its children. Of a descendant with several threads, only the children of
 * the first are found.
 */
void descendants__each(descendant_fn *each, void *context);

/* ns of CPU time of the children that this process has waited for, and of theirs. */
uint64_t waited_for_cpu_ns(void);
/* The same of this process and all its descendants, but for a child that lives; 0: none. */
uint64_t family_cpu_ns(pid_t except);

#endif
