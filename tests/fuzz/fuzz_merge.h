/* SPDX-License-Identifier: BSD-2-Clause */
/* What a profile is when it is merged with itself: twice of it, with all invariants; or it is refused for its size. */
#ifndef FUZZ_MERGE_H
#define FUZZ_MERGE_H

#include "fuzz.h"
#include "profile/profile_merge.h"

static inline void fuzz_merge(const struct profile *p)
{
	struct profile_merge *m = profile_merge__new();
	struct failure failure = {};
	const struct profile *both;

	MUST(m);
	if (!profile_merge__add(m, "a", p, &failure) && !profile_merge__add(m, "b", p, &failure)) {
		if (profile_merge__finish(m, &both, &failure)) {
			fprintf(stderr, "%s\n", failure.what);
			abort();
		}
		MUST(both->sample_count == 2 * p->sample_count);
		MUST(both->event_count == 2 * p->event_count);
	} else {
		MUST(*failure.what);
	}
	profile_merge__free(m);
}

#endif
