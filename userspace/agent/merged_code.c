/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/merged_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"

struct merging {
	const struct profile *p;
	struct merged_code *m;
	struct hashmap map;
};

/* ---- locations ------------------------------------------------------------------------------- */

/* Code of a file without a name is named by its address, or found by it. */
static bool is_known_by_address(const struct profile *p, const struct profile_location *l)
{
	enum dso_kind kind = p->dsos[l->dso.v].kind;

	return l->unnamed && (kind == DSO_FILE || kind == DSO_VDSO);
}

/* Columns are not shown by anyone, and tell apart what nobody wants told apart. */
static bool line_equal(const struct profile_line *a, const struct profile_line *b)
{
	return a->function.v == b->function.v && a->file.v == b->file.v && a->line == b->line;
}

static uint64_t hash_location(const struct profile *p, const struct profile_location *l)
{
	uint64_t hash = hash_u64(l->dso.v);

	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *line = &p->lines[l->first_line + i];

		hash = hash_combine(hash, hash_u64((uint64_t)line->function.v << 32 | line->line));
	}
	return hash;
}

static bool location_equal(const void *owner, uint32_t index, const void *key)
{
	const struct merging *merging = owner;
	const struct profile *p = merging->p;
	const struct profile_location *l = &p->locations[index], *other = key;

	if (l->dso.v != other->dso.v || l->line_count != other->line_count)
		return false;
	for (uint32_t i = 0; i < l->line_count; i++)
		if (!line_equal(&p->lines[l->first_line + i], &p->lines[other->first_line + i]))
			return false;
	return true;
}

/* The first one like it, which may be itself. */
static int merge_location(struct merging *merging, uint32_t id)
{
	const struct profile *p = merging->p;
	const struct profile_location *l = &p->locations[id];
	uint64_t hash = hash_location(p, l);
	uint32_t found;

	merging->m->locations[id] = id;
	if (is_known_by_address(p, l) || !l->line_count)
		return 0;
	found = hashmap__find(&merging->map, hash, l);
	if (found == HASHMAP_NONE)
		return hashmap__add(&merging->map, hash, id);
	merging->m->locations[id] = found;
	return 0;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

struct stack_key {
	uint32_t parent, location; /* what they are merged to */
};

static struct stack_key key_of(const struct merging *merging, uint32_t stack)
{
	const struct profile_stack *s = &merging->p->stacks[stack];

	return (struct stack_key){merging->m->stacks[s->parent.v],
				  merging->m->locations[s->location.v]};
}

static bool stack_equal(const void *owner, uint32_t index, const void *key)
{
	struct stack_key other = key_of(owner, index);

	return !memcmp(&other, key, sizeof(other));
}

/* Parents come before: they are merged already. */
static int merge_stack(struct merging *merging, uint32_t id)
{
	struct stack_key key = key_of(merging, id);
	uint64_t hash = hash_u64((uint64_t)key.parent << 32 | key.location);
	uint32_t found = hashmap__find(&merging->map, hash, &key);

	merging->m->stacks[id] = found == HASHMAP_NONE ? id : found;
	return found == HASHMAP_NONE ? hashmap__add(&merging->map, hash, id) : 0;
}

int merged_code__init(struct merged_code *m, const struct profile *p)
{
	struct merging merging = {.p = p, .m = m};
	int err = 0;

	m->locations = calloc(p->location_count + 1, sizeof(*m->locations));
	m->stacks = calloc(p->stack_count + 1, sizeof(*m->stacks));
	if (!m->locations || !m->stacks)
		err = -ENOMEM;
	hashmap__init(&merging.map, location_equal, &merging);
	for (uint32_t i = 1; i < p->location_count && !err; i++)
		err = merge_location(&merging, i);
	hashmap__fini(&merging.map);
	hashmap__init(&merging.map, stack_equal, &merging);
	for (uint32_t i = 1; i < p->stack_count && !err; i++)
		err = merge_stack(&merging, i);
	hashmap__fini(&merging.map);
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
