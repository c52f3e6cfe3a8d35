/* SPDX-License-Identifier: BSD-2-Clause */
/* Interned stacks. A child is always added after its parent, so parents have smaller numbers. */
#include "profile/stack_table.h"

#include <errno.h>
#include <stdlib.h>

static bool stack_equal(const void *owner, uint32_t index, const void *key)
{
	const struct stack_table *table = owner;
	const struct profile_stack *wanted = key;
	const struct profile_stack *s = &table->stacks.data[index];

	return s->parent.v == wanted->parent.v && s->location.v == wanted->location.v;
}

int stack_table__init(struct stack_table *table)
{
	*table = (struct stack_table){};
	hashmap__init(&table->index, stack_equal, table);
	return vec_push(&table->stacks, (struct profile_stack){});
}

void stack_table__fini(struct stack_table *table)
{
	hashmap__fini(&table->index);
	vec_free(&table->stacks);
}

int stack_table__intern(struct stack_table *table, struct stack_id parent,
			struct location_id location, struct stack_id *id)
{
	struct profile_stack stack = {.parent = parent, .location = location};
	uint64_t hash = hash_u64((uint64_t)parent.v << 32 | location.v);
	uint32_t found = hashmap__find(&table->index, hash, &stack);
	uint32_t number = table->stacks.count;
	int err;

	if (found != HASHMAP_NONE) {
		id->v = found;
		return 0;
	}
	if (table->stacks.count >= HASHMAP_NONE)
		return -ENOMEM;

	stack.depth = table->stacks.data[parent.v].depth + 1;
	err = vec_push(&table->stacks, stack);
	if (err)
		return err;
	err = hashmap__add(&table->index, hash, number);
	if (err) {
		table->stacks.count--;
		return err;
	}
	id->v = number;
	return 0;
}
