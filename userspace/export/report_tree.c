/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both directions are one procedure. A *strand* is a number of samples and a place in their stacks. A node
 * is a set of strands; its children are the sets of those that go on with the same code. Strands at the same
 * place of the same stack become one, so that what many stacks have in common is walked once; and what is too
 * small is cut before it is walked at all, so a tree takes no more memory than what is shown of it.
 *
 * Callers: a strand goes from the innermost frame outwards, along the parents that the profile has. A
 * call tree goes inwards, for which a stack has no links. So all stacks are put into a call_tree first,
 * and a strand is a node of that.
 *
 * Threads and processes are one more level on top (*groups*): each has its own strands.
 */
#include "export/report_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "export/call_tree.h"

struct strand {
	uint32_t stack; /* of the profile; 0: it has ended */
	uint32_t line;	/* of the stack's location: 0 is the innermost */
	uint32_t key;	/* what it goes on with: a row of code */
	uint64_t samples;
};

/* A set of strands that has been found, and waits to become a node. */
struct candidate {
	uint32_t parent;       /* node */
	uint32_t key;	       /* row of code, or group */
	uint32_t first, count; /* callers: its strands. A call tree: its node there, and 0 */
	uint64_t total;
	bool group, last;
};

/* Threads whose samples are one group. */
struct group_member {
	uint32_t group, thread;
};

struct builder {
	struct report_tree *tree;
	const struct profile *p;
	uint64_t min;
	bool callers, merge;
	VEC(struct group_member) members; /* sorted */
	uint64_t *hits;			  /* scratch, by stack */
	VEC(uint32_t) touched;		  /* stacks with hits */
	struct call_tree calls;
	uint64_t *totals; /* by node of calls */
	VEC(struct strand)
	arena; /* of candidates that wait, in their order: the next one's are at its end */
	VEC(struct strand) strands;    /* scratch: of the node at hand */
	VEC(struct candidate) waiting; /* a stack */
};

/* ---- groups ---------------------------------------------------------------------------------- */

static int compare_members(const void *a, const void *b)
{
	const struct group_member *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void describe_group(struct builder *b, enum report_by by, const struct group_member *member)
{
	const struct profile *p = b->p;
	const struct profile_thread *thread = &p->threads[member->thread];
	const struct profile_process *process = &p->processes[thread->process.v];

	b->tree->groups[member->group] = (struct report_row){
		.name = profile__string(p, by == REPORT_THREAD ? thread->name : process->name),
		.place = by == REPORT_THREAD ? profile__string(p, process->name) : NULL,
		.pid = process->pid,
		.tid = by == REPORT_THREAD ? thread->tid : 0,
	};
}

/* Which samples belong together: all, or those of a thread or process. */
static int list_members(struct builder *b, enum report_by by)
{
	const struct profile *p = b->p;
	size_t groups = by == REPORT_PROCESS ? p->process_count : p->thread_count;

	b->tree->groups = calloc(groups + 1, sizeof(*b->tree->groups));
	if (!b->tree->groups)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->thread_count; i++) {
		struct group_member member = {.thread = i};

		if (!p->threads[i].samples[SAMPLE_CPU].tick_sum)
			continue;
		if (by == REPORT_THREAD)
			member.group = i;
		else if (by == REPORT_PROCESS)
			member.group = p->threads[i].process.v;
		if (vec_push(&b->members, member))
			return -ENOMEM;
		if (member.group)
			describe_group(b, by, &member);
	}
	if (b->members.count)
		qsort(b->members.data, b->members.count, sizeof(*b->members.data), compare_members);
	return 0;
}

/* Adds up the samples of the group that begins at `first`; returns where the next one begins. */
static ssize_t gather_group(struct builder *b, size_t first)
{
	size_t next = first;

	b->touched.count = 0;
	for (;
	     next < b->members.count && b->members.data[next].group == b->members.data[first].group;
	     next++) {
		const struct profile_samples *samples =
			&b->p->threads[b->members.data[next].thread].samples[SAMPLE_CPU];

		for (size_t i = 0; i < samples->count; i++) {
			uint32_t stack = samples->stack[i].v;

			if (!b->hits[stack] && vec_push(&b->touched, stack))
				return -ENOMEM;
			b->hits[stack] += profile_samples__ticks(samples, i);
		}
	}
	return next;
}

/* ---- candidates ------------------------------------------------------------------------------ */

static const struct report_row *row_of(const struct builder *b, const struct candidate *candidate)
{
	return candidate->group ? &b->tree->groups[candidate->key]
				: &b->tree->code.rows.data[candidate->key];
}

/* The smallest first: they are taken from the end. */
static int compare_candidates(const void *a, const void *b, void *context)
{
	const struct candidate *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? -1 : 1;
	return report_row__compare_texts(row_of(context, y), row_of(context, x));
}

/* Those from `first` on are the children of one node, or the roots: sorts them, and drops what is too small. */
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

/* ---- a call tree: from the roots inwards ----------------------------------------------------- */

static int code_key(void *context, const struct profile_location *location, uint32_t line,
		    uint32_t *key)
{
	struct builder *b = context;

	return report_code__row(&b->tree->code, location, line, key);
}

static int add_calls(struct builder *b, uint32_t below)
{
	int err = 0;

	for (size_t i = 0; i < b->touched.count && !err; i++) {
		uint32_t stack = b->touched.data[i], node;

		err = call_tree__stack(&b->calls, b->p, below, (struct stack_id){stack}, code_key,
				       b, &node);
		if (err)
			break;
		b->calls.nodes.data[node].hits += b->hits[stack];
		b->hits[stack] = 0;
	}
	return err;
}

/* Children have higher numbers than their parents. */
static int sum_calls(struct builder *b)
{
	const struct call_node *nodes = b->calls.nodes.data;

	b->totals = calloc(b->calls.nodes.count, sizeof(*b->totals));
	if (!b->totals)
		return -ENOMEM;
	for (size_t i = b->calls.nodes.count; i-- > 0;) {
		b->totals[i] += nodes[i].hits;
		if (i)
			b->totals[nodes[i].parent] += b->totals[i];
	}
	return 0;
}

/* The children of a node of the call tree; of its root they may be groups. */
static int add_called(struct builder *b, uint32_t call, uint32_t parent, bool groups)
{
	const struct call_node *nodes = b->calls.nodes.data;

	for (uint32_t i = nodes[call].first_child; i; i = nodes[i].next_sibling) {
		const struct candidate candidate = {
			.parent = parent,
			.key = nodes[i].key,
			.first = i,
			.total = b->totals[i],
			.group = groups,
		};

		if (vec_push(&b->waiting, candidate))
			return -ENOMEM;
	}
	return 0;
}

static int start_calls(struct builder *b, bool groups)
{
	size_t first = 0;
	int err = 0;

	while (first < b->members.count && !err) {
		uint32_t below = CALL_TREE_ROOT;
		ssize_t next = gather_group(b, first);

		if (next < 0)
			return -ENOMEM;
		if (groups)
			err = call_tree__child(&b->calls, CALL_TREE_ROOT,
					       b->members.data[first].group, &below);
		if (!err)
			err = add_calls(b, below);
		first = next;
	}
	if (!err)
		err = sum_calls(b);
	return err ? err : add_called(b, CALL_TREE_ROOT, REPORT_NO_NODE, groups);
}

/* ---- callers: from the innermost frames outwards --------------------------------------------- */

/* What the strand goes on with. */
static int find_key(struct builder *b, struct strand *strand)
{
	const struct profile_location *location;

	if (!strand->stack)
		return 0;
	location = &b->p->locations[b->p->stacks[strand->stack].location.v];
	return report_code__row(&b->tree->code, location, location->first_line + strand->line,
				&strand->key);
}

static int step_outwards(struct builder *b, struct strand *strand)
{
	const struct profile_stack *stack = &b->p->stacks[strand->stack];
	uint32_t key = strand->key;
	int err;

	do {
		stack = &b->p->stacks[strand->stack];
		if (++strand->line >= b->p->locations[stack->location.v].line_count) {
			strand->line = 0;
			strand->stack = stack->parent.v;
		}
		err = find_key(b, strand);
	} while (!err && b->merge && strand->stack && strand->key == key);
	return err;
}

/* Those that have ended come last. */
static int compare_strands(const void *a, const void *b)
{
	const struct strand *x = a, *y = b;

	if (!x->stack || !y->stack)
		return !x->stack - !y->stack;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* The strands of b->strands by what they go on with: candidates. *ended: samples without another caller. */
static int split_strands(struct builder *b, uint32_t parent, uint64_t *ended)
{
	const struct strand *list = b->strands.data;
	size_t count = b->strands.count, next;

	*ended = 0;
	if (count)
		qsort(b->strands.data, count, sizeof(*list), compare_strands);
	for (size_t i = 0; i < count; i = next) {
		struct candidate candidate = {
			.parent = parent,
			.key = list[i].key,
			.first = (uint32_t)i,
		};

		for (next = i; next < count && !list[next].stack == !list[i].stack &&
			       (!list[i].stack || list[next].key == list[i].key);
		     next++)
			candidate.total += list[next].samples;
		candidate.count = (uint32_t)(next - i);
		if (!list[i].stack)
			*ended = candidate.total;
		else if (vec_push(&b->waiting, candidate))
			return -ENOMEM;
	}
	return 0;
}

/* Moves the strands of a candidate from b->strands into the arena; equal ones become one. */
static int store_candidate(struct builder *b, struct candidate *candidate)
{
	const struct strand *list = b->strands.data + candidate->first;
	size_t first = b->arena.count;

	for (uint32_t i = 0; i < candidate->count; i++) {
		struct strand *last = b->arena.count > first ? &b->arena.data[b->arena.count - 1]
							     : NULL;

		if (last && last->stack == list[i].stack && last->line == list[i].line)
			last->samples += list[i].samples;
		else if (vec_push(&b->arena, list[i]))
			return -ENOMEM;
	}
	candidate->first = (uint32_t)first;
	candidate->count = (uint32_t)(b->arena.count - first);
	return 0;
}

/* Those of all candidates from `first` on, in their order. */
static int store_strands(struct builder *b, size_t first)
{
	int err = 0;

	for (size_t i = first; i < b->waiting.count && !err; i++)
		err = store_candidate(b, &b->waiting.data[i]);
	return err;
}

/* Takes the strands of a candidate out of the arena, one step further. */
static int take_strands(struct builder *b, const struct candidate *candidate)
{
	int err = 0;

	b->strands.count = 0;
	for (uint32_t i = 0; i < candidate->count && !err; i++) {
		struct strand strand = b->arena.data[candidate->first + i];

		if (!candidate->group) /* whose strands are at the first code themselves */
			err = step_outwards(b, &strand);
		if (!err)
			err = vec_push(&b->strands, strand);
	}
	if (!candidate->group) /* those of groups are below all others, in another order */
		b->arena.count = candidate->first;
	return err;
}

/* b->touched becomes b->strands. */
static int begin_strands(struct builder *b, uint64_t *total)
{
	b->strands.count = 0;
	*total = 0;
	for (size_t i = 0; i < b->touched.count; i++) {
		uint32_t stack = b->touched.data[i];
		struct strand strand = {.stack = stack, .samples = b->hits[stack]};

		b->hits[stack] = 0;
		*total += strand.samples;
		if (find_key(b, &strand) || vec_push(&b->strands, strand))
			return -ENOMEM;
	}
	return 0;
}

static int start_callers(struct builder *b, bool groups)
{
	size_t first = 0;
	int err = 0;

	while (first < b->members.count && !err) {
		struct candidate group = {
			.parent = REPORT_NO_NODE,
			.key = b->members.data[first].group,
			.group = true,
		};
		ssize_t next = gather_group(b, first);
		uint64_t ended;

		if (next < 0)
			return -ENOMEM;
		err = begin_strands(b, &group.total);
		if (err)
			return err;
		if (!groups) /* then this is all there is */
			return split_strands(b, REPORT_NO_NODE, &ended);
		group.count = (uint32_t)b->strands.count;
		err = store_candidate(b, &group);
		if (!err)
			err = vec_push(&b->waiting, group);
		first = next;
	}
	return err;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int add_children(struct builder *b, const struct candidate *candidate, uint32_t number,
			struct report_node *node)
{
	size_t first = b->waiting.count;
	int err;

	if (b->callers) {
		err = take_strands(b, candidate);
		if (!err)
			err = split_strands(b, number, &node->self);
	} else {
		node->self = b->calls.nodes.data[candidate->first].hits;
		err = add_called(b, candidate->first, number, false);
	}
	if (err)
		return err;
	settle_candidates(b, first, &node->children, &node->cut, &node->cut_total);
	return b->callers ? store_strands(b, first) : 0;
}

static int add_node(struct builder *b, const struct candidate *candidate)
{
	struct report_tree *tree = b->tree;
	struct report_node node = {
		.key = candidate->key,
		.parent = candidate->parent,
		.last = candidate->last,
		.group = candidate->group,
		.total = candidate->total,
	};
	int err;

	if (candidate->parent != REPORT_NO_NODE)
		node.depth = tree->nodes.data[candidate->parent].depth + 1;
	err = add_children(b, candidate, (uint32_t)tree->nodes.count, &node);
	return err ? err : vec_push(&tree->nodes, node);
}

static int build(struct builder *b, bool groups)
{
	struct report_tree *tree = b->tree;
	int err = b->callers ? start_callers(b, groups) : start_calls(b, groups);

	if (err)
		return err;
	settle_candidates(b, 0, &tree->roots, &tree->cut, &tree->cut_total);
	if (b->callers && !groups)
		err = store_strands(b, 0);
	while (!err && b->waiting.count) {
		struct candidate candidate = b->waiting.data[--b->waiting.count];

		err = add_node(b, &candidate);
	}
	/* rows moved while new ones came */
	for (size_t i = 0; i < tree->nodes.count; i++)
		tree->nodes.data[i].row = tree->nodes.data[i].group
						  ? &tree->groups[tree->nodes.data[i].key]
						  : &tree->code.rows.data[tree->nodes.data[i].key];
	return err;
}

int report_tree__init(struct report_tree *tree, const struct profile *p, enum report_by by,
		      bool callers, uint64_t min)
{
	bool groups = by == REPORT_THREAD || by == REPORT_PROCESS;
	struct builder b = {
		.tree = tree,
		.p = p,
		.min = min,
		.callers = callers,
		.merge =
			by ==
			REPORT_DSO, /* from one function of a file to the next is no call of the file */
	};
	int err;

	*tree = (struct report_tree){};
	err = report_code__init(&tree->code, p, groups ? REPORT_FUNCTION : by);
	if (!err)
		err = call_tree__init(&b.calls, p);
	if (err)
		return err;
	b.calls.merge = b.merge;
	b.hits = calloc(p->stack_count + 1, sizeof(*b.hits));
	err = b.hits ? list_members(&b, by) : -ENOMEM;
	if (!err)
		err = build(&b, groups);
	call_tree__fini(&b.calls);
	vec_free(&b.members);
	vec_free(&b.touched);
	vec_free(&b.arena);
	vec_free(&b.strands);
	vec_free(&b.waiting);
	free(b.hits);
	free(b.totals);
	return err;
}

void report_tree__fini(struct report_tree *tree)
{
	vec_free(&tree->nodes);
	report_code__fini(&tree->code);
	free(tree->groups);
	tree->groups = NULL;
}
