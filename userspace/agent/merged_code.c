/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/merged_code.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/order.h"
#include "base/vec.h"

/* Numbers of locations or stacks that are merged to themselves. */
MAP_TYPE(kept_locations, uint32_t);
MAP_TYPE(kept_stacks, uint32_t);

struct merging {
	const struct profile *p;
	struct merged_code *m;
	struct kept_locations locations;
	struct kept_stacks stacks;
};

/* ---- locations ------------------------------------------------------------------------------- */

/* Code of a file without a name is named by its address, or found by it. */
static bool is_known_by_address(const struct profile *p, const struct profile_location *l)
{
	enum dso_kind kind = p->dsos[l->dso.v].kind;

	return l->unnamed && (kind == DSO_FILE || kind == DSO_VDSO);
}

/* Columns are not shown, and would separate lines that should be one. */
static bool line_equal(const struct profile_line *a, const struct profile_line *b)
{
	return a->function.v == b->function.v && a->file.v == b->file.v && a->line == b->line;
}

struct location_key {
	const struct profile *p;
	const struct profile_location *location;
};

static uint64_t hash_location(struct location_key key)
{
	uint64_t hash = hash_u64(key.location->dso.v);

	for (uint32_t i = 0; i < key.location->line_count; i++) {
		const struct profile_line *line = &key.p->lines[key.location->first_line + i];

		hash = hash_combine(hash, hash_u64((uint64_t)line->function.v << 32 | line->line));
	}
	return hash;
}

static bool same_location(struct location_key a, struct location_key b)
{
	const struct profile_line *one = a.p->lines + a.location->first_line,
				  *other = b.p->lines + b.location->first_line;

	if (a.location->dso.v != b.location->dso.v ||
	    a.location->line_count != b.location->line_count)
		return false;
	for (uint32_t i = 0; i < a.location->line_count; i++)
		if (!line_equal(&one[i], &other[i]))
			return false;
	return true;
}

static struct location_key location_key(const struct kept_locations *kept, const uint32_t *id)
{
	const struct profile *p = map_owner(kept, struct merging, locations)->p;

	return (struct location_key){p, &p->locations[*id]};
}

MAP_FUNCTIONS(kept_locations, uint32_t, struct location_key, location_key, hash_location,
	      same_location);

/* The first one like it, which may be itself. */
static int merge_location(struct merging *merging, uint32_t id)
{
	const struct profile *p = merging->p;
	const struct profile_location *l = &p->locations[id];
	const uint32_t *kept = &id;

	if (!is_known_by_address(p, l) && l->line_count)
		kept = kept_locations__need(&merging->locations, &id, NULL);
	if (!kept)
		return -ENOMEM;
	merging->m->locations[id] = *kept;
	return 0;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Parent and location that a stack is merged to. */
static uint64_t stack_key(const struct kept_stacks *kept, const uint32_t *id)
{
	const struct merging *merging = map_owner(kept, struct merging, stacks);
	const struct profile_stack *s = &merging->p->stacks[*id];

	return (uint64_t)merging->m->stacks[s->parent.v] << 32 |
	       merging->m->locations[s->location.v];
}

MAP_FUNCTIONS(kept_stacks, uint32_t, uint64_t, stack_key, hash_u64, map_same_number);

/* Parents come before: they are merged already. */
static int merge_stack(struct merging *merging, uint32_t id)
{
	const uint32_t *kept = kept_stacks__need(&merging->stacks, &id, NULL);

	if (!kept)
		return -ENOMEM;
	merging->m->stacks[id] = *kept;
	return 0;
}

int merged_code__init(struct merged_code *m, const struct profile *p)
{
	struct merging merging = {.p = p, .m = m};
	int err = 0;

	m->locations = calloc(p->location_count + 1, sizeof(*m->locations));
	m->stacks = calloc(p->stack_count + 1, sizeof(*m->stacks));
	if (!m->locations || !m->stacks)
		err = -ENOMEM;
	for (uint32_t i = 1; i < p->location_count && !err; i++)
		err = merge_location(&merging, i);
	for (uint32_t i = 1; i < p->stack_count && !err; i++)
		err = merge_stack(&merging, i);
	kept_locations__fini(&merging.locations);
	kept_stacks__fini(&merging.stacks);
	if (err)
		merged_code__fini(m);
	return err;
}

void merged_code__fini(struct merged_code *m)
{
	free(m->locations);
	free(m->stacks);
	*m = (struct merged_code){};
}

struct ordered_location {
	uint32_t file, use, location; /* file: use of its first one; use: how many were before */
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
