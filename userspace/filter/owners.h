/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose samples: the clauses about processes and threads. */
#ifndef FILTER_OWNERS_H
#define FILTER_OWNERS_H

#include <stdbool.h>

#include <sysprof/profile.h>

#include "filter/filter.h"

/* Is it a clause about whole threads? They come first in a filter. */
static inline bool filter_kind_is_of_threads(enum filter_kind kind)
{
	return kind < FILTER_SLICE;
}

/* Is it this name, or one that fits the pattern with *, ? and []? */
bool is_name(const char *pattern, const char *text);

/*
 * Does its value match this thread? It is a number (of a process, a thread, a user), a name, or a
 * pattern with *, ? and []. What the profile does not know of a process matches nothing.
 */
bool owner_matches(const struct filter_clause *clause, const struct profile *p,
		   const struct profile_thread *thread);

#endif
