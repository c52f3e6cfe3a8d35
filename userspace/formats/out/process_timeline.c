/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cell is put in order by the ranks of its nodes: their numbers in postorder, where the children
 * of a node are in the order of their times. Nodes of one cell cost as much as their number, so
 * stacks of any depth do.
 */
#include "formats/out/process_timeline.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "base/order.h"
#include "base/vec.h"

/* Nodes of all cells; beyond it samples stay in the order of time. */
#define NODES_MAX (1u << 28)

/* A node of a cell. */
struct cell_node {
	uint32_t parent, node;
	uint64_t total; /* ns, with the nodes below it */
};

struct layout {
	const struct call_tree *tree;
	uint64_t *total; /* by node, of the cell */
	uint32_t *first; /* by node: 1 + the number in `nodes` of its first child; 0: it has none */
	uint32_t *rank;	 /* by node, from 1 on; 0: it is not in the cell */
	VEC(struct cell_node) nodes;
	VEC(uint32_t) path; /* numbers in `nodes` of the nodes that are being ranked */
	uint64_t left;	    /* of NODES_MAX */
};

DEFINE_ORDER(compare_begins, struct timeline_row, ASCENDING(begin) ?: ASCENDING(sample));
DEFINE_ORDER(compare_siblings, struct cell_node,
	     ASCENDING(parent) ?: DESCENDING(total) ?: ASCENDING(node));

static int compare_rows(const void *a, const void *b, void *layout)
{
	const struct timeline_row *x = a, *y = b;
	const uint32_t *rank = ((const struct layout *)layout)->rank;

	return order_of(rank[x->node], rank[y->node]) ?: compare_begins(x, y);
}

static int layout__init(struct layout *l, const struct call_tree *tree)
{
	size_t count = tree->nodes.count;

	*l = (struct layout){.tree = tree,
			     .total = calloc(count, sizeof(*l->total)),
			     .first = calloc(count, sizeof(*l->first)),
			     .rank = calloc(count, sizeof(*l->rank)),
			     .left = NODES_MAX};
	return l->total && l->first && l->rank ? 0 : -ENOMEM;
}

static void layout__fini(struct layout *l)
{
	free(l->total);
	free(l->first);
	free(l->rank);
	vec_free(&l->nodes);
	vec_free(&l->path);
}

/* The nodes of the rows and those above them, each once. */
static int collect_nodes(struct layout *l, const struct timeline_row *rows, size_t count)
{
	int err = 0;

	l->nodes.count = 0;
	for (size_t i = 0; i < count && !err; i++) {
		uint32_t node = rows[i].node;

		l->total[node] = saturating_add_u64(l->total[node], rows[i].length);
		for (; node != CALL_TREE_ROOT && !l->rank[node] && !err;
		     node = l->tree->nodes.data[node].parent) {
			l->rank[node] = UINT32_MAX;
			err = vec_push(
				&l->nodes,
				(struct cell_node){l->tree->nodes.data[node].parent, node, 0});
		}
	}
	return err;
}

DEFINE_ORDER(compare_depths, struct cell_node, DESCENDING(node));

/* A parent has a smaller number than its children. */
static void add_totals(struct layout *l)
{
	vec_sort(&l->nodes, compare_depths);
	for (size_t i = 0; i < l->nodes.count; i++) {
		struct cell_node *node = &l->nodes.data[i];

		node->total = l->total[node->node];
		l->total[node->parent] = saturating_add_u64(l->total[node->parent], node->total);
	}
	vec_sort(&l->nodes, compare_siblings);
	for (size_t i = l->nodes.count; i-- > 0;)
		l->first[l->nodes.data[i].parent] = (uint32_t)i + 1;
}

/* Is the next node of the list a sibling of this one? */
static bool has_sibling(const struct layout *l, uint32_t at)
{
	return at + 1 < l->nodes.count && l->nodes.data[at + 1].parent == l->nodes.data[at].parent;
}

/* What a function ran itself comes behind what it called. */
static int rank_nodes(struct layout *l)
{
	uint32_t rank = 0, next = l->first[CALL_TREE_ROOT];
	int err = 0;

	l->path.count = 0;
	while (!err && (next || l->path.count)) {
		uint32_t at;

		if (next) { /* down, to its first child */
			err = vec_push(&l->path, next - 1);
			next = l->first[l->nodes.data[next - 1].node];
			continue;
		}
		at = l->path.data[--l->path.count];
		l->rank[l->nodes.data[at].node] = ++rank;
		next = has_sibling(l, at) ? at + 2 : 0;
	}
	return err;
}

static void clear_nodes(struct layout *l)
{
	for (size_t i = 0; i < l->nodes.count; i++) {
		const struct cell_node *node = &l->nodes.data[i];

		l->total[node->node] = l->first[node->node] = l->rank[node->node] = 0;
	}
	l->total[CALL_TREE_ROOT] = l->first[CALL_TREE_ROOT] = 0;
}

static int order_cell(struct layout *l, struct timeline_row *rows, size_t count)
{
	int err = collect_nodes(l, rows, count);

	if (err)
		return err;
	add_totals(l);
	err = rank_nodes(l);
	if (!err)
		qsort_r(rows, count, sizeof(*rows), compare_rows, l);
	l->left -= min_u64(l->left, l->nodes.count);
	clear_nodes(l);
	return err;
}

static bool has_several_threads(const struct timeline_row *rows, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (rows[i].thread != rows[0].thread)
			return true;
	return false;
}

/* From *time on, which becomes the end. */
static int lay_cell(struct layout *l, struct timeline_row *rows, size_t count, uint64_t *time,
		    uint64_t period)
{
	bool overlaps = has_several_threads(rows, count);
	uint64_t first = rows[0].begin;
	int err = overlaps && l->left ? order_cell(l, rows, count) : 0;

	for (size_t i = 0; i < count && !err; i++) {
		uint64_t begin = overlaps ? first : rows[i].begin;

		if (begin > *time && begin - *time >= period / 2)
			*time = begin;
		rows[i].time = *time;
		*time = saturating_add_u64(*time, rows[i].length);
	}
	return err;
}

int process_timeline__lay(struct timeline_row *rows, size_t count, const struct call_tree *tree,
			  uint64_t start, uint64_t period, uint64_t cell)
{
	struct layout l;
	uint64_t time = start;
	int err = layout__init(&l, tree);

	if (!err && count)
		qsort(rows, count, sizeof(*rows), compare_begins);
	for (size_t i = 0, next; i < count && !err; i = next) {
		for (next = i + 1; next < count; next++)
			if (cell && (rows[next].begin - rows[0].begin) / cell !=
					    (rows[i].begin - rows[0].begin) / cell)
				break;
		err = lay_cell(&l, rows + i, next - i, &time, period);
	}
	layout__fini(&l);
	return err;
}
