/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of whatever profile was read: they are valid, and kept and dropped are the whole. */
#ifndef FUZZ_PARTS_H
#define FUZZ_PARTS_H

#include "filter/filter_apply.h"
#include "fuzz.h"
#include "profile/figures.h"
#include "profile/profile_check.h"

static inline void fuzz_part(const struct profile *p, const char *text)
{
	static const enum figure_id pairs[][2] = {{FIGURE_SAMPLES, FIGURE_DROPPED_SAMPLES},
						  {FIGURE_EVENTS, FIGURE_DROPPED_EVENTS},
						  {FIGURE_CPU, FIGURE_DROPPED_CPU},
						  {FIGURE_LIVED, FIGURE_DROPPED_WALL}};
	struct profile_filter filter = {};
	struct filtered *filtered;
	struct figures all, part;
	char why[256] = "";

	MUST(!profile_filter__parse(&filter, text, NULL));
	if (!profile_filter__apply(&filter, p, &filtered, NULL)) {
		if (profile_check(filtered__profile(filtered), why, sizeof(why)))
			fprintf(stderr, "%s: %s\n", text, why);
		MUST(!*why);
		figures__init(&all, p);
		figures__init(&part, filtered__profile(filtered));
		for (size_t i = 0; i < COUNT(pairs); i++)
			MUST(part.value[pairs[i][0]] + part.value[pairs[i][1]] ==
			     all.value[pairs[i][0]]);
		filtered__free(filtered);
	}
	profile_filter__fini(&filter);
}

static inline void fuzz_parts(const struct profile *p)
{
	static const char *const filters[] = {
		"--focus=a --hide=b",
		"--process=1 --ignore=.",
		"--show-from=[a-m] --collapse=^. --collapse=dso --thread=?*",
		"@0.001s-0.01s --state=running,lock,sleep,disk",
		"@0.001s- --cpu=0-3",
		"@-1ms --unit=* --hide=.",
	};

	for (size_t i = 0; i < COUNT(filters); i++)
		fuzz_part(p, filters[i]);
}

#endif
