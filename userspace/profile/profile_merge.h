/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several profiles as one. A profile can be freed once it was added.
 *
 * Profiles of one clock (the same boot of a machine) share its time axis, and the processes and
 * threads that they have in common are one. Profiles of other clocks follow one after the other.
 * Windows of an agent are one process on a time axis of their own.
 *
 * All sums are those of the profiles, to the ns: ticks, events, CPU time, waits, books, losses. What
 * several profiles have of one thread at one time counts more than once; META_INPUTS has how much.
 */
#ifndef PROFILE_PROFILE_MERGE_H
#define PROFILE_PROFILE_MERGE_H

#include <sysprof/profile.h>

#include "base/log.h"

struct profile_merge;

struct profile_merge *profile_merge__new(void); /* NULL: no memory */
void profile_merge__free(struct profile_merge *m);

/* `name` is for messages. 0 or negative errno with `failure` filled. */
int profile_merge__add(struct profile_merge *m, const char *name, const struct profile *p,
		       struct failure *failure);

/*
 * A window of an agent: a profile without times, whose rows are spread over its time. Windows come
 * in the order of their starts. Either all profiles are windows, or none is.
 */
struct merge_window {
	const char *process;	/* the one that is taken, by its name … */
	bool is_alone;		/* … or all, as one of that name */
	uint64_t start, length; /* ns since the epoch; ns */
	bool is_more;		/* of the same time as the one before */
};
/* `p` NULL: the service did not run. */
int profile_merge__add_window(struct profile_merge *m, const char *name, const struct profile *p,
			      const struct merge_window *window, struct failure *failure);

/* Owned by `m`. 0 or negative errno with `failure` filled. */
int profile_merge__finish(struct profile_merge *m, const struct profile **profile,
			  struct failure *failure);

#endif
