/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a merge that are sums, and what is said of all profiles. */
#ifndef PROFILE_PROFILE_MERGE_FACTS_H
#define PROFILE_PROFILE_MERGE_FACTS_H

struct merging;
struct profile_builder;

/* Do its samples count the same as those before? 0 or negative errno with the failure filled. */
int check_units(const struct merging *a);
/* Books, losses, figures, metadata. 0 or -ENOMEM. */
int merge_facts(struct merging *a);
/* A fact of the profiles that were added; NULL: none has it. */
const char *meta_so_far(const struct profile_builder *b, const char *key);

#endif
