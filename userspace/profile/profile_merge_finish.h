/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a merge: all clocks on one time axis, rows in order. */
#ifndef PROFILE_PROFILE_MERGE_FINISH_H
#define PROFILE_PROFILE_MERGE_FINISH_H

struct profile_merge;

/* Afterwards the builder can be finished. 0 or -ENOMEM. */
int place_profiles(struct profile_merge *m);

#endif
