/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/call_tree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct child_key {
	uint32_t parent, key;
};

static bool child_equal(const void *owner, uint32_t index, const void *key)
{
	const struct call_tree *tree = owner;
	const struct call_node *node = &tree->nodes.data[index];
	const struct child_key *child = key;

	return node->parent == child->parent && node->key == child->key;
}

int call_tree__init(struct call_tree *tree, const struct profile *p)
{
	*tree = (struct call_tree){0};
	hashmap__init(&tree->children, child_equal, tree);
	tree->memo = calloc(p->stack_count + 1, sizeof(*tree->memo));
	if (!tree->memo || vec_push(&tree->nodes, (struct call_node){0})) {
		call_tree__fini(tree);
		return -ENOMEM;
	}
	return 0;
}

void call_tree__fini(struct call_tree *tree)
{
	hashmap__fini(&tree->children);
	free(tree->memo);
	tree->memo = NULL;
	vec_free(&tree->nodes);
	vec_free(&tree->path);
}

void call_tree__clear(struct call_tree *tree)
{
	tree->nodes.count = 1;
	tree->nodes.data[CALL_TREE_ROOT] = (struct call_node){0};
	hashmap__clear(&tree->children);
	tree->generation++; /* what the memo has is of no use any more */
}

int call_tree__child(struct call_tree *tree, uint32_t parent, uint32_t key, uint32_t *node)
{
	struct child_key wanted = {parent, key};
	uint64_t hash = hash_u64((uint64_t)parent << 32 | key);
	uint32_t found = hashmap__find(&tree->children, hash, &wanted);
	struct call_node *owner;
	int err;

	if (found != HASHMAP_NONE) {
		*node = found;
		return 0;
	}
	found = (uint32_t)tree->nodes.count;
	err = vec_push(&tree->nodes, (struct call_node){.parent = parent, .key = key});
	if (err)
		return err;
	err = hashmap__add(&tree->children, hash, found);
	if (err) {
		tree->nodes.count--;
		return err;
	}
	owner = &tree->nodes.data[parent];
	if (owner->last_child)
		tree->nodes.data[owner->last_child].next_sibling = found;
	else
		owner->first_child = found;
	owner->last_child = found;
	*node = found;
	return 0;
}

static int add_location(struct call_tree *tree, const struct profile *p,
			struct location_id location, call_tree_key_fn key, void *context,
			uint32_t *node)
{
	const struct profile_location *loc = &p->locations[location.v];

	for (uint32_t i = loc->line_count; i > 0; i--) { /* outermost first */
		uint32_t value;
		int err = key(context, loc, loc->first_line + i - 1, &value);

		if (!err)
			err = call_tree__child(tree, *node, value, node);
		if (err)
			return err;
	}
	return 0;
}

int call_tree__stack(struct call_tree *tree, const struct profile *p, uint32_t below,
		     struct stack_id stack, call_tree_key_fn key, void *context, uint32_t *node)
{
	uint32_t at = stack.v, current = below;

	if (!tree->generation || tree->below != below) {
		tree->generation++;
		tree->below = below;
	}
	tree->path.count = 0;
	for (; at; at = p->stacks[at].parent.v) {
		if (tree->memo[at].generation == tree->generation) {
			current = tree->memo[at].node;
			break;
		}
		if (vec_push(&tree->path, at))
			return -ENOMEM;
	}
	for (size_t i = tree->path.count; i > 0; i--) {
		int err;

		at = tree->path.data[i - 1];
		err = add_location(tree, p, p->stacks[at].location, key, context, &current);
		if (err)
			return err;
		tree->memo[at] = (struct call_tree_memo){tree->generation, current};
	}
	*node = current;
	return 0;
}

uint32_t call_tree__next(const struct call_tree *tree, uint32_t node)
{
	const struct call_node *nodes = tree->nodes.data;

	if (nodes[node].first_child)
		return nodes[node].first_child;
	while (node != CALL_TREE_ROOT && !nodes[node].next_sibling)
		node = nodes[node].parent;
	return node == CALL_TREE_ROOT ? 0 : nodes[node].next_sibling;
}
