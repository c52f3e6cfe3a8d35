/* SPDX-License-Identifier: BSD-2-Clause */
/* Interned stacks: a tree of (parent, location), so that equal stacks have one number. */
#ifndef PROFILE_STACK_TABLE_H
#define PROFILE_STACK_TABLE_H

#include "base/hashmap.h"
#include "base/vec.h"

#include <sysprof/profile.h>

/* Must not move once it is initialised: the index points back at it. */
struct stack_table {
	VEC(struct profile_stack) stacks; /* number 0 is the placeholder */
	struct hashmap index;
};

int stack_table__init(struct stack_table *table); /* 0, -ENOMEM */
void stack_table__fini(struct stack_table *table);

/* The stack of `location` called from `parent` (0: a root). 0, -ENOMEM. */
int stack_table__intern(struct stack_table *table, struct stack_id parent,
			struct location_id location, struct stack_id *id);

#endif
