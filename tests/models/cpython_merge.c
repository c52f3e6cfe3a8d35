/* SPDX-License-Identifier: BSD-2-Clause */
#include "models/cpython_merge.h"

/*
 * From frame `from` on: the one that has the anchor; else the first that lies farther out, before which it goes. A
 * signal's own stack may lie anywhere, so the search for the loop goes to the end.
 */
static struct cpython_place place_of(const struct cpython_native *native, size_t count, size_t from,
				     uint64_t anchor)
{
	for (size_t i = from; i < count; i++)
		if (native[i].sp <= anchor && anchor < native[i].cfa)
			return (struct cpython_place){.frame = i, .is_loop = true};
	for (size_t i = from; i < count; i++)
		if (native[i].sp > anchor)
			return (struct cpython_place){.frame = i};
	return (struct cpython_place){.frame = count};
}

void cpython__merge(const struct cpython_native *native, size_t native_count,
		    const struct cpython_group *groups, size_t group_count,
		    struct cpython_place *places)
{
	size_t from = 0;

	for (size_t i = 0; i < group_count; i++) {
		/* no anchor: there are no groups behind this one, and it is the rest of the stack */
		places[i] = groups[i].anchor
				    ? place_of(native, native_count, from, groups[i].anchor)
				    : (struct cpython_place){.frame = native_count};
		from = places[i].frame + places[i].is_loop;
	}
}
