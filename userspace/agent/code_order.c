/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/code_order.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/vec.h"

struct ordered_location {
	uint32_t file, use,
		location; /* file: the use of its first one; use: how many were before */
};

struct code_order {
	const struct profile *p;
	const struct merged_code *code;
	/* By stack and by location: the message that it was last seen in. */
	uint32_t *stack_seen, *location_seen;
	uint32_t *dso_seen, *dso_use; /* by dso: likewise, and the use of its first location */
	uint32_t message;	      /* counts from 1 */
	VEC(struct ordered_location) places;
};

struct code_order *code_order__new(const struct profile *p, const struct merged_code *code)
{
	struct code_order *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->p = p;
	o->code = code;
	o->message = 1;
	o->stack_seen = calloc(p->stack_count + 1, sizeof(*o->stack_seen));
	o->location_seen = calloc(p->location_count + 1, sizeof(*o->location_seen));
	o->dso_seen = calloc(p->dso_count + 1, sizeof(*o->dso_seen));
	o->dso_use = calloc(p->dso_count + 1, sizeof(*o->dso_use));
	if (o->stack_seen && o->location_seen && o->dso_seen && o->dso_use)
		return o;
	code_order__free(o);
	return NULL;
}

void code_order__free(struct code_order *o)
{
	if (!o)
		return;
	free(o->stack_seen);
	free(o->location_seen);
	free(o->dso_seen);
	free(o->dso_use);
	vec_free(&o->places);
	free(o);
}

static int add_location(struct code_order *o, struct location_id id)
{
	uint32_t location = o->code->locations[id.v], dso = o->p->locations[location].dso.v;
	uint32_t use = (uint32_t)o->places.count;

	if (o->location_seen[location] == o->message)
		return 0;
	o->location_seen[location] = o->message;
	if (o->dso_seen[dso] != o->message)
		o->dso_use[dso] = use;
	o->dso_seen[dso] = o->message;
	return vec_push(&o->places, ((struct ordered_location){o->dso_use[dso], use, location}));
}

/* The callers of a stack that was seen were seen as well, unless it was cut. */
int code_order__add_stack(struct code_order *o, struct stack_id stack, uint32_t depth_max)
{
	const struct profile_stack *stacks = o->p->stacks;
	bool is_cut = stacks[stack.v].depth > depth_max;
	uint32_t left = is_cut ? depth_max - 1 : stacks[stack.v].depth, at = stack.v;
	int err = 0;

	for (; left && at && !err; left--, at = stacks[at].parent.v) {
		if (!is_cut && o->stack_seen[at] == o->message)
			return 0;
		if (!is_cut)
			o->stack_seen[at] = o->message;
		err = add_location(o, stacks[at].location);
	}
	return err;
}

DEFINE_ORDER(compare_places, struct ordered_location, ASCENDING(file) ?: ASCENDING(use));

void code_order__number(struct code_order *o, struct code_tables *code)
{
	vec_sort(&o->places, compare_places);
	for (size_t i = 0; i < o->places.count; i++)
		code_tables__location(code, (struct location_id){o->places.data[i].location});
	o->places.count = 0;
	o->message++;
}
