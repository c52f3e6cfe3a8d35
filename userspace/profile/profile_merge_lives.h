/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes and threads of a profile are those of profiles before. */
#ifndef PROFILE_PROFILE_MERGE_LIVES_H
#define PROFILE_PROFILE_MERGE_LIVES_H

#include <sysprof/profile.h>

struct merging;
struct profile_merge;

/* A window's process, and threads and samples that are called the same, have the service's name. */
struct string_id merged_name(struct merging *a, struct process_id process, struct string_id name);

/* All of a profile; numbers of the builder are in the copy, and in `threads`. 0 or -ENOMEM. */
int merge_lives(struct merging *a);
void merged_lives__fini(struct profile_merge *m);

#endif
