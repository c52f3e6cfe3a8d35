/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A location that takes a few bytes of a recording can have a chain of inlined functions, and it stands in every
 * sample again for eight bytes. Formats that write a stack frame by frame would grow by the product. So chains are
 * shortened where all samples together have more frames by inlining than any program has.
 */
#include "profile/profile_builder_private.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/*
 * Frames of all samples with what is inlined into them, as a multiple of those without. A chain of INLINED_MEAN is
 * always kept, so shortening to that is enough.
 */
#define INLINED_MEAN  8u
#define INLINED_FREE  65536u /* small profiles may have so many in addition */
#define INLINED_CHAIN 64u    /* the longest chain that is not shortened */

/* How often each location is in a stack of a CPU sample. */
static uint64_t *count_uses(const struct profile_builder *b)
{
	_cleanup_free_ uint64_t *of_stack = calloc(b->stacks.count + 1, sizeof(*of_stack));
	uint64_t *uses = calloc(b->locations.count + 1, sizeof(*uses));

	if (!of_stack || !uses) {
		free(uses);
		return NULL;
	}
	for (size_t i = 1; i < b->columns.count; i++) {
		const struct sample_columns *c = &b->columns.data[i].by_kind[SAMPLE_CPU];

		for (size_t k = 0; k < c->stack.count; k++)
			of_stack[c->stack.data[k].v]++;
	}
	/* parents have smaller numbers */
	for (size_t i = b->stacks.count; i-- > 1;) {
		const struct profile_stack *stack = &b->stacks.data[i];

		of_stack[stack->parent.v] += of_stack[i];
		uses[stack->location.v] += of_stack[i];
	}
	return uses;
}

static uint32_t shortened(const struct profile_location *l, uint32_t longest)
{
	return l->line_count < longest ? l->line_count : longest;
}

/* Frames of all samples with chains of that length at most. A sample has 2^11 frames at most, each 2^16 lines. */
static uint64_t count_frames(const struct profile_builder *b, const uint64_t *uses,
			     uint32_t longest)
{
	uint64_t frames = 0;

	for (size_t i = 1; i < b->locations.count; i++)
		frames += uses[i] * shortened(&b->locations.data[i], longest);
	return frames;
}

/* Lines are innermost first: the function that was called, which is the last, stays. */
static void shorten_chains(struct profile_builder *b, uint32_t longest)
{
	for (size_t i = 1; i < b->locations.count; i++) {
		struct profile_location *l = &b->locations.data[i];
		uint32_t kept = shortened(l, longest);

		b->profile.inlined_left_out += l->line_count - kept;
		l->first_line += l->line_count - kept;
		l->line_count = kept;
	}
}

int builder_limit_inlining(struct profile_builder *b)
{
	_cleanup_free_ uint64_t *uses = count_uses(b);
	uint32_t longest = INLINED_CHAIN;
	uint64_t most;

	if (!uses)
		return -ENOMEM;
	most = INLINED_MEAN * count_frames(b, uses, 1) + INLINED_FREE;
	if (count_frames(b, uses, UINT32_MAX) <= most)
		return 0;
	while (longest > INLINED_MEAN && count_frames(b, uses, longest) > most)
		longest /= 2;
	shorten_chains(b, longest);
	return 0;
}
