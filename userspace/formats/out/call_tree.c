/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/call_tree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NO_KEY UINT32_MAX

MAP_FUNCTIONS_BY_NUMBER(call_nodes, struct call_node, (uint64_t)entry->parent << 32 | entry->key);

int call_tree__init(struct call_tree *tree, const struct profile *p, call_tree_key_fn key,
		    void *context)
{
	size_t lines = (p->line_count + 1) * sizeof(*tree->key_of_line);

	*tree = (struct call_tree){.p = p, .key = key, .context = context};
	tree->memo = calloc(p->stack_count + 1, sizeof(*tree->memo));
	tree->key_of_line = malloc(lines);
	if (!tree->memo || !tree->key_of_line || vec_push(&tree->nodes, (struct call_node){0})) {
		call_tree__fini(tree);
		return -ENOMEM;
	}
	memset(tree->key_of_line, 0xff, lines);
	return 0;
}

void call_tree__fini(struct call_tree *tree)
{
	free(tree->memo);
	free(tree->key_of_line);
	tree->memo = NULL;
	tree->key_of_line = NULL;
	call_nodes__fini(&tree->nodes);
	vec_free(&tree->path);
}

void call_tree__clear(struct call_tree *tree)
{
	call_nodes__clear(&tree->nodes);
	tree->nodes.data[tree->nodes.count++] = (struct call_node){0};
	tree->generation++; /* invalidates the memo */
}

int call_tree__child(struct call_tree *tree, uint32_t parent, uint32_t key, uint32_t *node)
{
	const struct call_node wanted = {.parent = parent, .key = key};
	struct call_node *owner, *child;
	bool is_new;

	child = call_nodes__need(&tree->nodes, &wanted, &is_new);
	if (!child)
		return -ENOMEM;
	*node = (uint32_t)(child - tree->nodes.data);
	if (!is_new)
		return 0;
	owner = &tree->nodes.data[parent];
	if (owner->last_child)
		tree->nodes.data[owner->last_child].next_sibling = *node;
	else
		owner->first_child = *node;
	owner->last_child = *node;
	return 0;
}

static int add_location(struct call_tree *tree, const struct profile_location *location,
			uint32_t *node)
{
	for (uint32_t i = location->line_count; i > 0; i--) { /* outermost first */
		uint32_t line = location->first_line + i - 1, *key = &tree->key_of_line[line];
		int err = *key == NO_KEY ? tree->key(tree->context, location, line, key) : 0;

		err = err ?: call_tree__child(tree, *node, *key, node);
		if (err)
			return err;
	}
	return 0;
}

int call_tree__stack(struct call_tree *tree, uint32_t below, struct stack_id stack, uint32_t *node)
{
	const struct profile *p = tree->p;
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
		err = add_location(tree, &p->locations[p->stacks[at].location.v], &current);
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
