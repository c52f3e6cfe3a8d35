/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree of call paths: stacks merged by the names of their frames, not by their addresses.
 *
 * The caller gives each line of profile->lines a number (a key). Frames with equal keys below one
 * parent are one node, so recursion makes one node for each call path, whatever the return
 * addresses are. Inline levels are nodes too.
 */
#ifndef FORMATS_OUT_CALL_TREE_H
#define FORMATS_OUT_CALL_TREE_H

#include <stdint.h>

#include <sysprof/profile.h>

#include "base/map.h"
#include "base/vec.h"

#define CALL_TREE_ROOT 0u

/* Links are node numbers; no node has the root as a child, so 0 ends a list. */
struct call_node {
	uint32_t parent, key;
	uint32_t first_child, last_child, next_sibling; /* children in order of first use */
	uint64_t hits;					/* counted by the owner */
};

MAP_TYPE(call_nodes, struct call_node);

struct call_tree_memo {
	uint32_t generation, node;
};

/* Key of a line of a location; 0 or negative errno. It is called once for each line. */
typedef int (*call_tree_key_fn)(void *context, const struct profile_location *location,
				uint32_t line, uint32_t *key);

struct call_tree {
	const struct profile *p;
	call_tree_key_fn key;
	void *context;
	uint32_t *key_of_line;	     /* by line of the profile, or UINT32_MAX */
	struct call_nodes nodes;     /* the root is in no index */
	struct call_tree_memo *memo; /* by stack: its node below the last `below` */
	uint32_t generation, below;
	VEC(uint32_t) path; /* scratch */
};

/* 0, -ENOMEM. Keys stay when the tree is cleared. */
int call_tree__init(struct call_tree *tree, const struct profile *p, call_tree_key_fn key,
		    void *context);
void call_tree__fini(struct call_tree *tree);
/* Forget all nodes but the root. */
void call_tree__clear(struct call_tree *tree);

/* The child of `parent` with this key; created if there is none. */
int call_tree__child(struct call_tree *tree, uint32_t parent, uint32_t key, uint32_t *node);

/*
 * The node of a whole stack below `below`. Results are cached as long as `below` stays the same, so
 * add all stacks of one `below` before those of the next.
 */
int call_tree__stack(struct call_tree *tree, uint32_t below, struct stack_id stack, uint32_t *node);

/* The next node in preorder, 0 after the last one. */
uint32_t call_tree__next(const struct call_tree *tree, uint32_t node);

#endif
