/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disjoint mappings by address, in a tree that tables share.
 *
 * The kernel reports no munmap. Instead, a new mapping replaces what lies under it, and a reading
 * of /proc drops what it did not find: readings are numbered, and each mapping has the number of
 * the last one that found it. Mappings that a reading found are in the stream at the time when it
 * began, and its end when it ended, so one that appears during it lies in between, and has its number.
 *
 * A process can have a hundred thousand mappings, and fork and map one more as often as it likes.
 * So the tree is a treap of counted nodes: a fork shares all of it, and a change copies the nodes
 * on its path, which costs the logarithm whatever the order of addresses. A node has the range of
 * readings of its subtree, so a reading finds what it drops without visiting the rest. Priorities
 * are hashes under a secret key; the tree's shape is visible nowhere.
 *
 * Functions that change a tree take over the reference that they are given. Without memory they
 * drop what they cannot copy: the caller fails, and the table is not used again.
 */
#include "world/mapping_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hashmap.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "world/world.h"

struct node {
	struct mapping m;
	struct node *left, *right;
	unsigned int refs;
	uint32_t priority, count;	/* of the subtree */
	uint32_t first_read, last_read; /* of the subtree: least and highest number of a reading */
};

struct mapping_table {
	unsigned int refs;
	bool reading, is_listed;
	uint32_t read; /* number of the current or last reading */
	struct node *root;
	VEC(struct mapping) list; /* if it is listed: all of them */
	struct mapping_run run;	  /* the list */
};

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct node *ref_node(struct node *n)
{
	if (n)
		n->refs++;
	return n;
}

/* Trees are a few dozen levels deep. */
static void unref_node(struct node *n)
{
	if (!n || --n->refs)
		return;
	unref_node(n->left);
	unref_node(n->right);
	free(n);
}

static size_t count_of(const struct node *n)
{
	return n ? n->count : 0;
}

/* After a change of it or below it. */
static void update_node(struct node *n)
{
	n->count = 1 + count_of(n->left) + count_of(n->right);
	n->first_read = n->last_read = n->m.read;
	for (int side = 0; side < 2; side++) {
		const struct node *child = side ? n->right : n->left;

		if (!child)
			continue;
		n->first_read = min_u64(n->first_read, child->first_read);
		n->last_read = max_u64(n->last_read, child->last_read);
	}
}

static struct node *new_node(const struct mapping *m, bool *failed)
{
	struct node *n = calloc(1, sizeof(*n));

	if (!n) {
		*failed = true;
		return NULL;
	}
	n->m = *m;
	n->refs = 1;
	n->priority = hash_u64(m->start) >> 32;
	update_node(n);
	return n;
}

/* The node, or a copy if others have it too. NULL: no memory. */
static struct node *own_node(struct node *n, bool *failed)
{
	struct node *copy;

	if (n->refs == 1)
		return n;
	copy = malloc(sizeof(*copy));
	if (copy) {
		*copy = *n;
		copy->refs = 1;
		ref_node(copy->left);
		ref_node(copy->right);
	} else {
		*failed = true;
	}
	unref_node(n);
	return copy;
}

/* Into those that start below `address` and the others. */
static void split_tree(struct node *n, uint64_t address, struct node **below, struct node **others,
		       bool *failed)
{
	if (n)
		n = own_node(n, failed);
	if (!n) {
		*below = *others = NULL;
		return;
	}
	if (n->m.start < address) {
		split_tree(n->right, address, &n->right, others, failed);
		*below = n;
	} else {
		split_tree(n->left, address, below, &n->left, failed);
		*others = n;
	}
	update_node(n);
}

/* All of `a` lies below all of `b`. */
static struct node *join_trees(struct node *a, struct node *b, bool *failed)
{
	struct node *top, *other;
	bool a_is_top;

	if (!a || !b)
		return a ? a : b;
	a_is_top = a->priority > b->priority;
	other = a_is_top ? b : a;
	top = own_node(a_is_top ? a : b, failed);
	if (!top) {
		unref_node(other);
		return NULL;
	}
	if (a_is_top)
		top->right = join_trees(top->right, other, failed);
	else
		top->left = join_trees(other, top->left, failed);
	update_node(top);
	return top;
}

/* The last one that starts at the address or below it; NULL. */
static const struct node *last_up_to(const struct node *n, uint64_t address)
{
	const struct node *found = NULL;

	while (n) {
		if (n->m.start <= address)
			found = n;
		n = n->m.start <= address ? n->right : n->left;
	}
	return found;
}

static const struct node *last_below(const struct node *n, uint64_t address)
{
	return address ? last_up_to(n, address - 1) : NULL;
}

/* How many start below the address. */
static size_t count_below(const struct node *n, uint64_t address)
{
	size_t count = 0;

	while (n) {
		if (n->m.start < address)
			count += 1 + count_of(n->left);
		n = n->m.start < address ? n->right : n->left;
	}
	return count;
}

/* Change the node that starts at this address, which is there. */
static struct node *replace_node(struct node *n, const struct mapping *m, bool *failed)
{
	n = own_node(n, failed);
	if (!n)
		return NULL;
	if (m->start == n->m.start)
		n->m = *m;
	else if (m->start < n->m.start)
		n->left = replace_node(n->left, m, failed);
	else
		n->right = replace_node(n->right, m, failed);
	update_node(n);
	return n;
}

/* Without those that the reading did not report. */
static struct node *keep_reading(struct node *n, uint32_t read, bool *failed)
{
	struct node *left, *right;

	if (!n || (n->first_read == read && n->last_read == read))
		return n;
	if (read < n->first_read || read > n->last_read) {
		unref_node(n);
		return NULL;
	}
	n = own_node(n, failed);
	if (!n)
		return NULL;
	left = keep_reading(n->left, read, failed);
	right = keep_reading(n->right, read, failed);
	n->left = n->right = NULL;
	if (n->m.read != read) {
		unref_node(n);
		return join_trees(left, right, failed);
	}
	n->left = left;
	n->right = right;
	update_node(n);
	return n;
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct mapping_table *mapping_table__ref(struct mapping_table *table)
{
	if (table)
		table->refs++;
	return table;
}

void mapping_table__unref(struct mapping_table *table)
{
	if (!table || --table->refs)
		return;
	unref_node(table->root);
	vec_free(&table->list);
	free(table);
}

/* Make *table the caller's alone, to be changed. 0, -ENOMEM. */
static int own_table(struct mapping_table **table)
{
	struct mapping_table *old = *table, *copy;

	if (old && old->refs == 1) {
		old->is_listed = false;
		return 0;
	}
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	copy->refs = 1;
	if (old) {
		copy->root = ref_node(old->root);
		copy->reading = old->reading;
		copy->read = old->read;
		old->refs--;
	}
	*table = copy;
	return 0;
}

struct mapping_table *mapping_table__fork(struct mapping_table *table)
{
	struct mapping_table *child = mapping_table__ref(table);

	if (!table || !table->reading)
		return child;
	if (own_table(&child)) {
		mapping_table__unref(child);
		return NULL;
	}
	child->reading = false;
	return child;
}

size_t mapping_table__count(const struct mapping_table *table)
{
	return table ? count_of(table->root) : 0;
}

static int visit_nodes(const struct node *n, mapping_visit_fn visit, void *context)
{
	int err = n ? visit_nodes(n->left, visit, context) : 0;

	if (!n || err)
		return err;
	return visit(context, &n->m) ?: visit_nodes(n->right, visit, context);
}

int mapping_table__visit(const struct mapping_table *table, mapping_visit_fn visit, void *context)
{
	return table ? visit_nodes(table->root, visit, context) : 0;
}

static int list_mapping(void *context, const struct mapping *m)
{
	struct mapping_table *table = context;

	table->list.data[table->list.count++] = *m; /* room was made */
	return 0;
}

struct mappings mapping_table__all(struct mapping_table *table)
{
	size_t count = mapping_table__count(table);

	if (!count)
		return (struct mappings){};
	if (!table->is_listed) {
		table->list.count = 0;
		if (vec_reserve(&table->list, count))
			return (struct mappings){};
		mapping_table__visit(table, list_mapping, table);
		table->is_listed = true;
	}
	table->run = (struct mapping_run){table->list.data, count, table->list.data[count - 1].end};
	return (struct mappings){.runs = &table->run, .run_count = 1, .count = count};
}

static const struct mapping *find_in_table(const void *table, uint64_t address)
{
	return mapping_table__find(table, address);
}

struct mappings mapping_table__view(struct mapping_table *table)
{
	if (!table || table->is_listed)
		return mapping_table__all(table);
	return (struct mappings){
		.count = mapping_table__count(table), .find = find_in_table, .table = table};
}

const struct mapping *mapping_table__find(const struct mapping_table *table, uint64_t address)
{
	const struct node *n = table ? last_up_to(table->root, address) : NULL;

	return n && address < n->m.end ? &n->m : NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Does `old` have the same for every address of `m`? */
static bool says_the_same(const struct mapping *old, const struct mapping *m)
{
	return old->start <= m->start && m->end <= old->end && old->image.v == m->image.v &&
	       old->page_offset - old->start == m->page_offset - m->start;
}

/* The parts of the mappings under `m` that lie outside of it. */
struct overlap {
	bool has_left, has_right;
	struct mapping left, right;
};

static struct overlap find_overlap(const struct node *root, const struct mapping *m)
{
	const struct node *first = last_below(root, m->start), *last = last_below(root, m->end);
	struct overlap o = {};

	if (first && first->m.end > m->start) {
		o.has_left = true;
		o.left = first->m;
		o.left.end = m->start;
	}
	if (last && last->m.end > m->end) {
		o.has_right = true;
		o.right = last->m;
		o.right.page_offset += m->end - o.right.start;
		o.right.start = m->end;
	}
	return o;
}

/* Put `m` in the place of what lies under it, keeping what sticks out. */
static int put_mapping(struct mapping_table *table, const struct mapping *m)
{
	const struct overlap o = find_overlap(table->root, m);
	size_t under = count_below(table->root, m->end) - count_below(table->root, m->start);
	struct node *below, *replaced, *above;
	bool failed = false;

	if (count_of(table->root) - under + 1 + o.has_right > MAPPING_TABLE_MAX)
		return -E2BIG;
	split_tree(table->root, m->start, &below, &replaced, &failed);
	split_tree(replaced, m->end, &replaced, &above, &failed);
	unref_node(replaced);
	if (o.has_left && !failed)
		below = replace_node(below, &o.left, &failed);
	below = join_trees(below, new_node(m, &failed), &failed);
	if (o.has_right)
		below = join_trees(below, new_node(&o.right, &failed), &failed);
	table->root = join_trees(below, above, &failed);
	return failed ? -ENOMEM : 0;
}

int mapping_table__add(struct mapping_table **table, const struct mapping *mapping, bool from_read)
{
	const struct mapping *found;
	struct mapping m = *mapping;
	bool known, failed = false;
	int err;

	if (m.start >= m.end)
		return -EINVAL;
	found = mapping_table__find(*table, m.start);
	known = found && says_the_same(found, &m);
	if (known && !from_read && !(*table)->reading)
		return MAPPING_KNOWN;

	err = own_table(table);
	if (err)
		return err;
	if (from_read && !(*table)->reading) {
		(*table)->reading = true;
		(*table)->read++;
	}
	m.read = (*table)->read;
	if (!known) {
		return put_mapping(*table, &m) ?: MAPPING_ADDED;
	}
	m = *found;
	m.read = (*table)->read;
	(*table)->root = replace_node((*table)->root, &m, &failed);
	return failed ? -ENOMEM : MAPPING_KNOWN;
}

int mapping_table__end_read(struct mapping_table **table)
{
	struct mapping_table *t;
	bool failed = false;
	size_t before;

	/* nothing was reported: the process ended meanwhile, or there is nothing to drop */
	if (!*table || !(*table)->reading)
		return 0;
	if (own_table(table))
		return -ENOMEM;
	t = *table;
	before = count_of(t->root);
	t->root = keep_reading(t->root, t->read, &failed);
	t->reading = false;
	return failed ? -ENOMEM : (int)(before - count_of(t->root));
}
