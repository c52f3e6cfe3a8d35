/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bound for the rows of windows. A day of a busy service has more than a page can show, so equal
 * rows in a block of time become one: of two windows, then of four, and so on. All sums stay.
 */
#ifndef PROFILE_PROFILE_MERGE_BLOCKS_H
#define PROFILE_PROFILE_MERGE_BLOCKS_H

struct profile_merge;

/* After a window, if there are too many rows. 0 or -ENOMEM. */
int bound_rows(struct profile_merge *m);

#endif
