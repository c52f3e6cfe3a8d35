/* SPDX-License-Identifier: BSD-2-Clause */
/* Time that is in several profiles of a merge, and whose samples are, too. */
#ifndef PROFILE_PROFILE_MERGE_OVERLAP_H
#define PROFILE_PROFILE_MERGE_OVERLAP_H

#include <stddef.h>

struct profile_merge;

/*
 * Marks the processes with a thread that has samples of one time in several profiles, and that time
 * in the sessions, which are in their first order. How many processes that are: 0 if profiles of
 * different threads overlap. Rows have the times of their clocks.
 */
size_t find_overlap(struct profile_merge *m);

#endif
