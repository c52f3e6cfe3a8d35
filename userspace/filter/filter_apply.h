/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile without what a filter drops: its own samples, threads, processes, stacks and locations,
 * and the other tables of the profile that it is made of, which has to outlive it.
 *
 * The books: each clause has what it dropped (struct profile_clause), and what is left and that
 * add up to the whole, to the sample and to the nanosecond. Time that no sample has is kept or
 * dropped with a sample: CPU time after the last CPU sample of a thread with that sample; unvisited
 * time with the last wait; running time of visits in proportion to CPU time. Of a thread that has
 * none of these, frame clauses drop it if they would drop an empty stack.
 *
 * A wait that is partly in a slice is divided. Facts about the recording as a whole stay as they
 * are: ticks of CPUs, losses, JIT code of processes, how frames were found.
 */
#ifndef FILTER_FILTER_APPLY_H
#define FILTER_FILTER_APPLY_H

#include <sysprof/profile.h>

#include "filter/filter.h"

struct filtered;

/*
 * The result satisfies profile_check(). 0 or negative errno with `failure`: -ENODATA, -EINVAL: a
 * clause does not fit this profile; -E2BIG: a regular expression takes too long on it; -ENOMEM.
 */
int profile_filter__apply(const struct profile_filter *filter, const struct profile *p,
			  struct filtered **filtered, struct failure *failure);
const struct profile *filtered__profile(const struct filtered *filtered);
void filtered__free(struct filtered *filtered);

#endif
