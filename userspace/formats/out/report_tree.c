/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both directions are one procedure. A *strand* is a number of samples at a place in a stack: a
 * frame, or a function inlined into it. A node is a set of strands at the same code; its children
 * are the sets that go on with the same code. Code too small for a node is walked no further, so a
 * tree takes no more time than what is shown of it.
 *
 * Callers: a strand begins at the innermost frame and goes outwards, along the parents in the
 * profile; strands that meet at one place of a stack become one. A call tree: a strand begins at a
 * root and goes inwards; for that, stacks with samples and all their parents are linked with their
 * children first (a *forest*).
 *
 * Threads, processes or what these belong to are one more level on top (*groups*), built one after
 * the other, so the tables by stack are needed once.
 */
#include "formats/out/report_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "base/order.h"
#include "formats/out/report_rows.h"

struct strand {
	uint32_t stack; /* 0: there is no other caller */
	uint32_t line;	/* of the stack's location: 0 is the innermost */
	uint32_t key;	/* the code that it is at: a row */
	uint64_t samples;
	double square; /* of what single samples count */
};

/* A set of strands that waits to become a node. */
struct candidate {
	uint32_t parent, key;
	uint32_t first, count; /* its strands: in builder.strands, then in builder.arena */
	uint64_t total;
	double square;
	bool last;
};

/* A thread, a process, processes of one service or the like, or everything. */
struct group {
	uint32_t number;       /* as report_task_numbers() has it; 0: everything */
	uint32_t first, count; /* in builder.threads */
	uint64_t total;
	double square;
};

/* Of a stack in the forest. */
struct links {
	uint32_t first_child, next_sibling;
	uint64_t total; /* samples of it and all below it; 0: it is not in the forest */
	double square;
};

struct builder {
	struct report_tree *tree;
	const struct profile *p;
	enum report_by by;
	uint64_t min;
	bool callers;
	bool merge;	       /* a node's children are not at the code that the node is at */
	uint32_t *numbers;     /* by thread: its group; NULL: there are none */
	VEC(uint32_t) threads; /* by group */
	VEC(struct group) groups;
	uint64_t *hits;		    /* by stack: samples that end there, of the group at hand */
	double *squares;	    /* by stack: of those samples */
	VEC(uint32_t) stacks;	    /* those with hits; in the forest */
	struct links *forest;	    /* by stack */
	VEC(struct strand) strands; /* of the node at hand */
	VEC(struct strand) queue;   /* scratch */
	VEC(struct strand)
	arena; /* of candidates that wait, in their order: the next one's are at its end */
	VEC(struct candidate) waiting; /* a stack */
};

/* ---- groups ---------------------------------------------------------------------------------- */

static uint32_t group_of(const struct builder *b, uint32_t thread)
{
	return b->numbers ? b->numbers[thread] : 0;
}

static int compare_threads(const void *a, const void *b, void *context)
{
	const uint32_t *x = a, *y = b;

	return order_of(group_of(context, *x), group_of(context, *y)) ?: order_of(*x, *y);
}

/* The largest first. */
static int compare_groups(const void *a, const void *b, void *context)
{
	const struct report_row *rows = ((const struct builder *)context)->tree->groups;
	const struct group *x = a, *y = b;

	return DESCENDING(total) ?: report_row__compare_texts(&rows[x->number], &rows[y->number]);
}

static int add_to_group(struct builder *b, uint32_t i)
{
	uint32_t thread = b->threads.data[i], number = group_of(b, thread);
	struct group *last = b->groups.count ? &b->groups.data[b->groups.count - 1] : NULL;
	const struct profile_samples *rows = &b->p->threads[thread].samples[SAMPLE_CPU];
	double square = samples_square(rows);

	if (last && last->number == number) {
		last->count++;
		last->total += rows->event_sum;
		last->square += square;
		return 0;
	}
	if (number)
		b->tree->groups[number] = report_task(b->p, b->by, thread);
	return vec_push(&b->groups, (struct group){.number = number,
						   .first = i,
						   .count = 1,
						   .total = rows->event_sum,
						   .square = square});
}

/* Which samples belong together, the largest group first. */
static int list_groups(struct builder *b)
{
	const struct profile *p = b->p;
	size_t numbers = p->process_count > p->thread_count ? p->process_count : p->thread_count;
	int err = 0;

	b->tree->groups = calloc(numbers + 1, sizeof(*b->tree->groups));
	if (!b->tree->groups)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->thread_count && !err; i++)
		if (p->threads[i].samples[SAMPLE_CPU].event_sum)
			err = vec_push(&b->threads, i);
	vec_sort_r(&b->threads, compare_threads, b);
	for (uint32_t i = 0; i < b->threads.count && !err; i++)
		err = add_to_group(b, i);
	vec_sort_r(&b->groups, compare_groups, b);
	return err;
}

/* Adds up the samples of a group by stack. */
static int gather(struct builder *b, const struct group *group)
{
	b->stacks.count = 0;
	for (uint32_t t = group->first; t < group->first + group->count; t++) {
		const struct profile_samples *samples =
			&b->p->threads[b->threads.data[t]].samples[SAMPLE_CPU];

		for (size_t i = 0; i < samples->count; i++) {
			uint32_t stack = samples->stack[i].v;
			uint64_t events = profile_samples__events(samples, i);

			if (!b->hits[stack] && events && vec_push(&b->stacks, stack))
				return -ENOMEM;
			b->hits[stack] += events;
			b->squares[stack] += profile_samples__square(samples, i);
		}
	}
	return 0;
}

/* ---- strands --------------------------------------------------------------------------------- */

static const struct profile_location *location_of(const struct builder *b, uint32_t stack)
{
	return &b->p->locations[b->p->stacks[stack].location.v];
}

/* The code of its frame. */
static int find_key(struct builder *b, struct strand *strand)
{
	const struct profile_location *location = location_of(b, strand->stack);

	return strand->stack ? report_code__row(&b->tree->code, location,
						location->first_line + strand->line, &strand->key)
			     : 0;
}

static int add_strand(struct builder *b, struct strand strand)
{
	return find_key(b, &strand) ?: vec_push(&b->strands, strand);
}

/* At the innermost frames. */
static int begin_callers(struct builder *b)
{
	int err = 0;

	for (size_t i = 0; i < b->stacks.count && !err; i++) {
		uint32_t stack = b->stacks.data[i];

		err = add_strand(b, (struct strand){.stack = stack,
						    .samples = b->hits[stack],
						    .square = b->squares[stack]});
	}
	return err;
}

static struct strand outermost(const struct builder *b, uint32_t stack)
{
	return (struct strand){
		.stack = stack,
		.line = location_of(b, stack)->line_count - 1,
		.samples = b->forest[stack].total,
		.square = b->forest[stack].square,
	};
}

DEFINE_ORDER(compare_numbers, uint32_t, order_of(*x, *y));

/* Puts all parents of b->stacks there as well. `total` marks them. */
static int add_parents(struct builder *b)
{
	for (size_t i = 0; i < b->stacks.count; i++)
		b->forest[b->stacks.data[i]] = (struct links){.total = b->hits[b->stacks.data[i]]};
	for (size_t i = 0, count = b->stacks.count; i < count; i++) {
		uint32_t at = b->p->stacks[b->stacks.data[i]].parent.v;

		for (; at && !b->forest[at].total; at = b->p->stacks[at].parent.v) {
			if (vec_push(&b->stacks, at))
				return -ENOMEM;
			b->forest[at] = (struct links){.total = 1}; /* until it is summed */
		}
	}
	for (size_t i = 0; i < b->stacks.count; i++) {
		b->forest[b->stacks.data[i]].total = b->hits[b->stacks.data[i]];
		b->forest[b->stacks.data[i]].square = b->squares[b->stacks.data[i]];
	}
	return 0;
}

/* At the roots. Children have higher numbers than their parents. */
static int begin_calls(struct builder *b)
{
	int err = add_parents(b);

	vec_sort(&b->stacks, compare_numbers);
	for (size_t i = b->stacks.count; i-- > 0 && !err;) {
		uint32_t stack = b->stacks.data[i], parent = b->p->stacks[stack].parent.v;
		struct links *links = &b->forest[stack];

		if (!parent) {
			err = add_strand(b, outermost(b, stack));
			continue;
		}
		b->forest[parent].total += links->total;
		b->forest[parent].square += links->square;
		links->next_sibling = b->forest[parent].first_child;
		b->forest[parent].first_child = stack;
	}
	return err;
}

static void forget_group(struct builder *b)
{
	for (size_t i = 0; i < b->stacks.count; i++) {
		b->hits[b->stacks.data[i]] = 0;
		b->squares[b->stacks.data[i]] = 0;
		if (!b->callers)
			b->forest[b->stacks.data[i]].total = 0;
	}
}

/* One step outwards. The strand has no stack if it was the outermost. */
static int step_out(struct builder *b, struct strand *strand, struct report_node *node)
{
	uint32_t key = strand->key;
	int err;

	do {
		if (++strand->line >= location_of(b, strand->stack)->line_count) {
			strand->line = 0;
			strand->stack = b->p->stacks[strand->stack].parent.v;
		}
		err = find_key(b, strand);
	} while (!err && b->merge && strand->stack && strand->key == key);
	if (err || strand->stack)
		return err ? err : vec_push(&b->strands, *strand);
	node->self += strand->samples;
	node->self_square += strand->square;
	return 0;
}

/* To the next place. If its code is to be no node of its own, the strand goes on from there. */
static int go_in(struct builder *b, struct strand next, uint32_t key)
{
	int err = find_key(b, &next);

	if (err)
		return err;
	return b->merge && next.key == key ? vec_push(&b->queue, next)
					   : vec_push(&b->strands, next);
}

/* One step inwards: to what was inlined, or to all that the frame calls. */
static int step_in(struct builder *b, const struct strand *strand, struct report_node *node)
{
	struct strand inlined = *strand;
	int err = 0;

	if (strand->line) {
		inlined.line--;
		return go_in(b, inlined, strand->key);
	}
	node->self += b->hits[strand->stack];
	node->self_square += b->squares[strand->stack];
	for (uint32_t child = b->forest[strand->stack].first_child; child && !err;
	     child = b->forest[child].next_sibling)
		err = go_in(b, outermost(b, child), strand->key);
	return err;
}

/* Takes the strands of a candidate out of the arena, one step further. */
static int take_strands(struct builder *b, const struct candidate *candidate,
			struct report_node *node)
{
	int err = 0;

	b->strands.count = b->queue.count = 0;
	for (uint32_t i = 0; i < candidate->count && !err; i++)
		err = vec_push(&b->queue, b->arena.data[candidate->first + i]);
	b->arena.count = candidate->first;
	while (b->queue.count && !err) {
		struct strand strand = b->queue.data[--b->queue.count];

		err = b->callers ? step_out(b, &strand, node) : step_in(b, &strand, node);
	}
	return err;
}

/* ---- candidates ------------------------------------------------------------------------------ */

DEFINE_ORDER(compare_strands, struct strand, ASCENDING(key) ?: ASCENDING(stack) ?: ASCENDING(line));

/* b->strands by the code that they are at. */
static int split_strands(struct builder *b, uint32_t parent)
{
	const struct strand *list = b->strands.data;
	size_t count = b->strands.count, next;

	if (count)
		qsort(b->strands.data, count, sizeof(*list), compare_strands);
	for (size_t i = 0; i < count; i = next) {
		struct candidate candidate = {
			.parent = parent,
			.key = list[i].key,
			.first = (uint32_t)i,
		};

		for (next = i; next < count && list[next].key == list[i].key; next++) {
			candidate.total += list[next].samples;
			candidate.square += list[next].square;
		}
		candidate.count = (uint32_t)(next - i);
		if (vec_push(&b->waiting, candidate))
			return -ENOMEM;
	}
	return 0;
}

/* The smallest first: they are taken from the end. */
static int compare_candidates(const void *a, const void *b, void *context)
{
	const struct report_row *rows = ((const struct builder *)context)->tree->code.rows.data;
	const struct candidate *x = a, *y = b;

	return ASCENDING(total) ?: report_row__compare_texts(&rows[y->key], &rows[x->key]);
}

/* Sorts the candidates from `first` on (children of one node, or roots) and drops small ones. */
static void settle_candidates(struct builder *b, size_t first, uint32_t *shown, uint32_t *cut,
			      uint64_t *cut_total)
{
	struct candidate *list = b->waiting.data + first;
	size_t count = b->waiting.count - first, kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (list[i].total >= b->min && list[i].total) {
			list[kept++] = list[i];
			continue;
		}
		*cut += 1;
		*cut_total += list[i].total;
	}
	if (kept) {
		qsort_r(list, kept, sizeof(*list), compare_candidates, b);
		list[0].last = true; /* it is taken last */
	}
	b->waiting.count = first + kept;
	*shown = (uint32_t)kept;
}

static void add_samples(struct strand *to, const struct strand *more)
{
	to->samples += more->samples;
	to->square += more->square;
}

/* Moves a candidate's strands from b->strands into the arena; those at one place become one. */
static int store_candidate(struct builder *b, struct candidate *candidate)
{
	const struct strand *list = b->strands.data + candidate->first;
	size_t first = b->arena.count;

	for (uint32_t i = 0; i < candidate->count; i++) {
		struct strand *last = b->arena.count > first ? &b->arena.data[b->arena.count - 1]
							     : NULL;

		if (last && last->stack == list[i].stack && last->line == list[i].line)
			add_samples(last, &list[i]);
		else if (vec_push(&b->arena, list[i]))
			return -ENOMEM;
	}
	candidate->first = (uint32_t)first;
	candidate->count = (uint32_t)(b->arena.count - first);
	return 0;
}

/* b->strands become the candidates below `parent`. */
static int add_candidates(struct builder *b, uint32_t parent, uint32_t *shown, uint32_t *cut,
			  uint64_t *cut_total)
{
	size_t first = b->waiting.count;
	int err = split_strands(b, parent);

	if (err)
		return err;
	settle_candidates(b, first, shown, cut, cut_total);
	for (size_t i = first; i < b->waiting.count && !err; i++)
		err = store_candidate(b, &b->waiting.data[i]);
	return err;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int add_node(struct builder *b, const struct candidate *candidate)
{
	struct report_tree *tree = b->tree;
	struct report_node node = {
		.key = candidate->key,
		.parent = candidate->parent,
		.last = candidate->last,
		.total = candidate->total,
		.total_square = candidate->square,
	};
	int err = take_strands(b, candidate, &node);

	if (candidate->parent != REPORT_NO_NODE)
		node.depth = tree->nodes.data[candidate->parent].depth + 1;
	if (!err)
		err = add_candidates(b, (uint32_t)tree->nodes.count, &node.children, &node.cut,
				     &node.cut_total);
	return err ? err : vec_push(&tree->nodes, node);
}

/* All below b->strands. */
static int add_nodes(struct builder *b, uint32_t parent, uint32_t *shown, uint32_t *cut,
		     uint64_t *cut_total)
{
	int err = add_candidates(b, parent, shown, cut, cut_total);

	while (!err && b->waiting.count) {
		struct candidate candidate = b->waiting.data[--b->waiting.count];

		err = add_node(b, &candidate);
	}
	return err;
}

static int add_group(struct builder *b, const struct group *group)
{
	struct report_tree *tree = b->tree;
	struct report_node node = {
		.key = group->number,
		.parent = REPORT_NO_NODE,
		.group = true,
		.total = group->total,
		.total_square = group->square,
	};
	size_t number = tree->nodes.count;
	int err = gather(b, group);

	b->strands.count = 0;
	if (!err)
		err = b->callers ? begin_callers(b) : begin_calls(b);
	if (err)
		return err;
	if (!group->number) {
		err = add_nodes(b, REPORT_NO_NODE, &tree->roots, &tree->cut, &tree->cut_total);
	} else {
		tree->roots++;
		err = vec_push(&tree->nodes, node)
			      ?: add_nodes(b, (uint32_t)number, &node.children, &node.cut,
					   &node.cut_total);
		if (!err)
			tree->nodes.data[number] = node;
	}
	forget_group(b);
	return err;
}

/* The last group shown is the last child of the tree's missing root. */
static void mark_last_group(struct report_tree *tree)
{
	for (size_t i = tree->nodes.count; i-- > 0;) {
		if (!tree->nodes.data[i].group)
			continue;
		tree->nodes.data[i].last = true;
		return;
	}
}

static int build(struct builder *b)
{
	struct report_tree *tree = b->tree;
	int err = list_groups(b);

	for (size_t i = 0; i < b->groups.count && !err; i++) {
		const struct group *group = &b->groups.data[i];

		if (group->number && group->total < b->min) {
			tree->cut++;
			tree->cut_total += group->total;
			continue;
		}
		err = add_group(b, group);
	}
	mark_last_group(tree);
	/* rows moved while new ones came */
	for (size_t i = 0; i < tree->nodes.count; i++) {
		struct report_node *node = &tree->nodes.data[i];

		node->row = node->group ? &tree->groups[node->key]
					: &tree->code.rows.data[node->key];
	}
	return err;
}

int report_tree__init(struct report_tree *tree, const struct profile *p, enum report_by by,
		      bool callers, uint64_t min)
{
	bool groups = report_by_tasks(by);
	struct builder b = {
		.tree = tree,
		.p = p,
		.by = by,
		.min = min,
		.callers = callers,
		.merge = by == REPORT_DSO, /* a file that calls itself is one node */
		.hits = calloc(p->stack_count + 1, sizeof(*b.hits)),
		.squares = calloc(p->stack_count + 1, sizeof(*b.squares)),
		.forest = callers ? NULL : calloc(p->stack_count + 1, sizeof(*b.forest)),
	};
	int err;

	*tree = (struct report_tree){};
	err = report_code__init(&tree->code, p, groups ? REPORT_FUNCTION : by);
	if (!err && groups)
		err = report_task_numbers(p, by, &b.numbers);
	if (!err && (!b.hits || !b.squares || (!callers && !b.forest)))
		err = -ENOMEM;
	if (!err)
		err = build(&b);
	vec_free(&b.threads);
	vec_free(&b.groups);
	vec_free(&b.stacks);
	vec_free(&b.strands);
	vec_free(&b.queue);
	vec_free(&b.arena);
	vec_free(&b.waiting);
	free(b.numbers);
	free(b.hits);
	free(b.squares);
	free(b.forest);
	return err;
}

void report_tree__fini(struct report_tree *tree)
{
	vec_free(&tree->nodes);
	report_code__fini(&tree->code);
	free(tree->groups);
	tree->groups = NULL;
	vec_free_with(&tree->texts, text, free(*text));
}
