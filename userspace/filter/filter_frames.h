/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which frames: the clauses with regular expressions, and the stacks without the frames that they
 * remove. With pprof's meaning (docs/FILTERS.md), location by location:
 *
 *   focus, ignore  look at all frames;
 *   hide           then removes lines of locations;
 *   show-from      then removes lines outside of the match, from every location with one, and
 *                  the frames above the outermost match;
 *   collapse       then makes one frame of those next to each other that match.
 *
 * A stack is a tree's node, so each is decided once, by its caller's and its own location.
 */
#ifndef FILTER_FILTER_FRAMES_H
#define FILTER_FILTER_FRAMES_H

#include <sysprof/profile.h>

#include "base/vec.h"
#include "filter/filter.h"

#define FRAMES_KEPT UINT8_MAX

struct filter_frames {
	uint8_t *verdict; /* by stack: the first clause that drops it, or FRAMES_KEPT; [0]: none */
	/* By stack of the profile: the one that it becomes; NULL: itself, and the tables are empty. */
	uint32_t *stack;
	VEC(struct profile_stack) stacks;
	VEC(struct profile_location) locations;
	VEC(struct profile_line) lines;
	/* Added ones, with dsos as names: number n is that of the profile's functions and n behind. */
	VEC(struct dso_id) functions;
};

/* 0; -ENOMEM; -E2BIG with `failure`: an expression takes too long on this profile. */
int filter_frames__init(struct filter_frames *frames, const struct profile_filter *filter,
			const struct profile *p, struct failure *failure);
void filter_frames__fini(struct filter_frames *frames);

#endif
