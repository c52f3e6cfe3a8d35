/* SPDX-License-Identifier: BSD-2-Clause */
#include "compare/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"

#define KEY_NODE(key)  ((uint32_t)(key))
#define KEY_BLOCK(key) ((uint32_t)((key) >> 32))

/* ---- the tree -------------------------------------------------------------------------------- */

static void link_children(struct series *s)
{
	for (size_t i = s->m->nodes.count; i-- > 1;) {
		uint32_t parent = s->m->nodes.data[i].parent;

		s->next_sibling[i] = s->first_child[parent];
		s->first_child[parent] = (uint32_t)i;
	}
}

/* Walks the tree and counts each function on the path. Linear, however deep the tree is. */
static int find_outermost(struct series *s)
{
	const struct merged_node *nodes = s->m->nodes.data;
	_cleanup_free_ uint32_t *above = calloc(s->name_count + 1, sizeof(*above));
	uint32_t at = s->first_child[MERGED_ROOT];

	if (!above)
		return -ENOMEM;
	while (at != MERGED_ROOT) {
		s->outermost[at] = !above[nodes[at].function]++;
		if (s->first_child[at] != MERGED_ROOT) {
			at = s->first_child[at];
			continue;
		}
		while (at != MERGED_ROOT && s->next_sibling[at] == MERGED_ROOT) {
			above[nodes[at].function]--;
			at = nodes[at].parent;
		}
		if (at == MERGED_ROOT)
			break;
		above[nodes[at].function]--;
		at = s->next_sibling[at];
	}
	return 0;
}

/* Adds to each node all nodes below; children come after their parents. */
static void sum_up(const struct merged *m, uint64_t *ticks)
{
	for (size_t i = m->nodes.count; i-- > 1;)
		ticks[m->nodes.data[i].parent] += ticks[i];
}

/* ---- which functions are tested -------------------------------------------------------------- */

struct function_sum {
	uint32_t function;
	uint64_t total[COMPARE_SIDES], self[COMPARE_SIDES];
};

DEFINE_ORDER(compare_sums, struct function_sum,
	     order_of(y->total[0] + y->total[1], x->total[0] + x->total[1]) ?: ASCENDING(function));

static void sum_functions(struct series *s, struct function_sum *sums)
{
	const struct merged *m = s->m;

	for (size_t i = 0; i < s->name_count; i++)
		sums[i].function = (uint32_t)i;
	for (size_t i = 0; i < m->files.count; i++) {
		enum compare_side side = m->files.data[i].facts.side;

		for (size_t j = 0; j < m->files.data[i].cells.count; j++) {
			const struct merged_cell *cell = &m->files.data[i].cells.data[j];
			uint32_t node = KEY_NODE(cell->key);

			s->node_ticks[side][node] += cell->ticks;
			if (node != MERGED_ROOT)
				sums[m->nodes.data[node].function].self[side] += cell->ticks;
		}
	}
	for (int side = 0; side < COMPARE_SIDES; side++) {
		sum_up(m, s->node_ticks[side]);
		for (uint32_t i = 1; i < m->nodes.count; i++)
			if (s->outermost[i])
				sums[m->nodes.data[i].function].total[side] +=
					s->node_ticks[side][i];
	}
}

/* Those with most samples of both sides: the choice does not depend on the difference. */
static int choose_functions(struct series *s)
{
	_cleanup_free_ struct function_sum *sums = calloc(s->name_count + 1, sizeof(*sums));
	size_t count = 0;

	if (!sums)
		return -ENOMEM;
	sum_functions(s, sums);
	qsort(sums, s->name_count, sizeof(*sums), compare_sums);
	while (count < s->name_count && count < SERIES_FUNCTIONS_MAX &&
	       sums[count].total[0] + sums[count].total[1] >= SERIES_TICKS_MIN * s->m->sample_ticks)
		count++;
	s->functions = calloc(count + 1, sizeof(*s->functions));
	s->number_of = calloc(s->name_count + 1, sizeof(*s->number_of));
	if (!s->functions || !s->number_of)
		return -ENOMEM;
	s->count = count + 1;
	s->functions[0].function = COMPARE_WHOLE;
	for (size_t i = 0; i < count; i++) {
		struct series_function *f = &s->functions[i + 1];

		f->function = sums[i].function;
		memcpy(f->total, sums[i].total, sizeof(f->total));
		memcpy(f->self, sums[i].self, sizeof(f->self));
		s->number_of[f->function] = (uint32_t)(i + 1);
	}
	return 0;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The longest block of any file: shorter ones are joined to this length. */
static uint32_t common_shift(const struct merged *m)
{
	uint32_t shift = 0;

	for (size_t i = 0; i < m->files.count; i++)
		if (m->files.data[i].block_shift > shift)
			shift = m->files.data[i].block_shift;
	return shift;
}

static size_t slots_of(const struct series *s, const struct merged_file *file, uint32_t shift)
{
	if (s->by_file || file->facts.untimed)
		return 1;
	return max_u64(file->span_ns >> shift, 1);
}

static int make_side(struct series *s, enum compare_side which, uint32_t shift)
{
	struct series_side *side = &s->side[which];
	const struct merged *m = s->m;
	size_t next = 0;

	for (size_t i = 0; i < m->files.count; i++) {
		if (m->files.data[i].facts.side != which)
			continue;
		side->files++;
		side->slots += slots_of(s, &m->files.data[i], shift);
	}
	side->file = calloc(side->slots + 1, sizeof(*side->file));
	side->ticks = calloc(side->slots + 1, sizeof(*side->ticks));
	side->unchanged = calloc(side->slots + 1, sizeof(*side->unchanged));
	if (!side->file || !side->ticks || !side->unchanged)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->files.count; i++)
		if (m->files.data[i].facts.side == which)
			for (size_t j = slots_of(s, &m->files.data[i], shift); j-- > 0;)
				side->file[next++] = i;
	return 0;
}

static int make_room(struct series *s)
{
	size_t slots = s->side[COMPARE_OLD].slots + s->side[COMPARE_NEW].slots;
	double *room = s->room = calloc(2 * slots * s->count + 1, sizeof(*room));

	if (!room)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		for (int side = 0; side < COMPARE_SIDES; side++) {
			s->functions[i].total_slots[side] = room;
			s->functions[i].self_slots[side] = room + s->side[side].slots;
			room += 2 * s->side[side].slots;
		}
	return 0;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* The state of counting a file. */
struct counting {
	struct series *s;
	const struct merged_file *file;
	enum compare_side side;
	size_t first_slot, slots;
	uint32_t shift;	 /* from a block of the file to a slot */
	uint32_t *order; /* the cells by slot */
	size_t *starts;	 /* by slot, and one more */
	uint64_t *ticks; /* by node */
	uint32_t *
		number; /* by node: tested function; 0: none, or also function of a node above it */
	double *sums;	/* by function */
};

static size_t slot_of(const struct counting *c, const struct merged_cell *cell)
{
	return min_u64(KEY_BLOCK(cell->key) >> c->shift, c->slots - 1);
}

static void order_cells(struct counting *c)
{
	const struct merged_cell *cells = c->file->cells.data;
	size_t count = c->file->cells.count;

	for (size_t i = 0; i < count; i++)
		c->starts[slot_of(c, &cells[i]) + 1]++;
	for (size_t i = 0; i < c->slots; i++)
		c->starts[i + 1] += c->starts[i];
	for (size_t i = count; i-- > 0;) /* fills each slot from its end, so the ends move */
		c->order[--c->starts[slot_of(c, &cells[i]) + 1]] = (uint32_t)i;
	memmove(c->starts, c->starts + 1, c->slots * sizeof(*c->starts));
	c->starts[c->slots] = count;
}

static void count_slot(struct counting *c, size_t slot)
{
	struct series *s = c->s;
	const struct merged_node *nodes = s->m->nodes.data;
	size_t at = c->first_slot + slot;

	memset(c->ticks, 0, s->m->nodes.count * sizeof(*c->ticks));
	memset(c->sums, 0, s->count * sizeof(*c->sums));
	for (size_t i = c->starts[slot]; i < c->starts[slot + 1]; i++) {
		const struct merged_cell *cell = &c->file->cells.data[c->order[i]];
		uint32_t node = KEY_NODE(cell->key);

		c->ticks[node] += cell->ticks;
		if (node != MERGED_ROOT && s->number_of[nodes[node].function])
			s->functions[s->number_of[nodes[node].function]].self_slots[c->side][at] +=
				(double)cell->ticks;
	}
	for (size_t i = s->m->nodes.count; i-- > 1;) {
		if (!c->ticks[i])
			continue;
		c->ticks[nodes[i].parent] += c->ticks[i];
		c->sums[c->number[i]] += (double)c->ticks[i];
	}
	for (size_t i = 1; i < s->count; i++)
		s->functions[i].total_slots[c->side][at] = c->sums[i];
	s->functions[0].total_slots[c->side][at] = (double)c->ticks[MERGED_ROOT];
	s->side[c->side].ticks[at] = (double)c->ticks[MERGED_ROOT];
}

static int count_file(struct series *s, const struct merged_file *file, size_t first_slot,
		      uint32_t shift, uint32_t *number)
{
	struct counting c = {.s = s, .file = file, .side = file->facts.side, .number = number};
	_cleanup_free_ uint32_t *order = NULL;
	_cleanup_free_ size_t *starts = NULL;
	_cleanup_free_ uint64_t *ticks = NULL;
	_cleanup_free_ double *sums = NULL;

	c.first_slot = first_slot;
	c.slots = slots_of(s, file, shift);
	c.shift = c.slots > 1 ? shift - file->block_shift : 31;
	c.order = order = malloc((file->cells.count + 1) * sizeof(*order));
	c.starts = starts = calloc(c.slots + 2, sizeof(*starts));
	c.ticks = ticks = malloc(s->m->nodes.count * sizeof(*ticks));
	c.sums = sums = malloc(s->count * sizeof(*sums));
	if (!order || !starts || !ticks || !sums)
		return -ENOMEM;
	order_cells(&c);
	for (size_t i = 0; i < c.slots; i++)
		count_slot(&c, i);
	return 0;
}

static int count_files(struct series *s, uint32_t shift)
{
	_cleanup_free_ uint32_t *number = calloc(s->m->nodes.count, sizeof(*number));
	size_t next[COMPARE_SIDES] = {0};
	int err = number ? 0 : -ENOMEM;

	for (size_t i = 1; i < s->m->nodes.count && !err; i++)
		if (s->outermost[i])
			number[i] = s->number_of[s->m->nodes.data[i].function];
	for (size_t i = 0; i < s->m->files.count && !err; i++) {
		const struct merged_file *file = &s->m->files.data[i];

		err = count_file(s, file, next[file->facts.side], shift, number);
		next[file->facts.side] += slots_of(s, file, shift);
	}
	return err;
}

/* ---- unchanged code -------------------------------------------------------------------------- */

static void sum_sides(struct series *s)
{
	for (int i = 0; i < COMPARE_SIDES; i++) {
		struct series_side *side = &s->side[i];

		side->tick_sum = s->node_ticks[i][MERGED_ROOT];
		s->functions[0].total[i] = side->tick_sum;
	}
}

void series__exclude_none(struct series *s)
{
	for (int i = 0; i < COMPARE_SIDES; i++) {
		struct series_side *side = &s->side[i];

		memcpy(side->unchanged, side->ticks, side->slots * sizeof(*side->ticks));
		side->unchanged_sum = side->tick_sum;
	}
	for (size_t i = 0; i < s->count; i++) {
		s->functions[i].changed = false;
		memcpy(s->functions[i].unchanged, s->functions[i].total,
		       sizeof(s->functions[i].total));
	}
}

void series__exclude(struct series *s, size_t number)
{
	struct series_function *f = &s->functions[number];

	f->changed = true;
	for (int i = 0; i < COMPARE_SIDES; i++) {
		struct series_side *side = &s->side[i];

		for (size_t j = 0; j < side->slots; j++)
			side->unchanged[j] -= f->self_slots[i][j];
		side->unchanged_sum -= f->self[i];
	}
}

int series__count_unchanged(struct series *s)
{
	const struct merged_node *nodes = s->m->nodes.data;
	_cleanup_free_ uint64_t *ticks = malloc(s->m->nodes.count * sizeof(*ticks));

	if (!ticks)
		return -ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		memset(s->functions[i].unchanged, 0, sizeof(s->functions[i].unchanged));
	for (int side = 0; side < COMPARE_SIDES; side++) {
		memset(ticks, 0, s->m->nodes.count * sizeof(*ticks));
		for (size_t i = 0; i < s->m->files.count; i++) {
			const struct merged_file *file = &s->m->files.data[i];

			for (size_t j = 0; (int)file->facts.side == side && j < file->cells.count;
			     j++) {
				uint32_t node = KEY_NODE(file->cells.data[j].key);
				uint32_t number = node ? s->number_of[nodes[node].function] : 0;

				if (!number || !s->functions[number].changed)
					ticks[node] += file->cells.data[j].ticks;
			}
		}
		sum_up(s->m, ticks);
		for (uint32_t i = 1; i < s->m->nodes.count; i++)
			if (s->outermost[i])
				s->functions[s->number_of[nodes[i].function]].unchanged[side] +=
					ticks[i];
		s->functions[0].unchanged[side] = ticks[MERGED_ROOT];
	}
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

int series__init(struct series *s, const struct merged *m)
{
	uint32_t shift = common_shift(m);
	size_t files[COMPARE_SIDES] = {0}, nodes = m->nodes.count;
	int err = 0;

	*s = (struct series){.m = m, .name_count = strtab__count(m->names)};
	for (size_t i = 0; i < m->files.count; i++)
		files[m->files.data[i].facts.side]++;
	s->by_file = files[COMPARE_OLD] >= COMPARE_RUNS_MIN &&
		     files[COMPARE_NEW] >= COMPARE_RUNS_MIN;
	s->outermost = calloc(nodes, sizeof(*s->outermost));
	s->first_child = calloc(nodes, sizeof(*s->first_child));
	s->next_sibling = calloc(nodes, sizeof(*s->next_sibling));
	for (int i = 0; i < COMPARE_SIDES; i++)
		s->node_ticks[i] = calloc(nodes, sizeof(**s->node_ticks));
	if (!s->outermost || !s->first_child || !s->next_sibling || !s->node_ticks[COMPARE_OLD] ||
	    !s->node_ticks[COMPARE_NEW])
		return -ENOMEM;
	link_children(s);
	err = find_outermost(s) ?: choose_functions(s);
	for (int i = 0; i < COMPARE_SIDES && !err; i++)
		err = make_side(s, (enum compare_side)i, shift);
	if (!err)
		err = make_room(s) ?: count_files(s, shift);
	if (err)
		return err;
	sum_sides(s);
	series__exclude_none(s);
	return 0;
}

void series__fini(struct series *s)
{
	for (int i = 0; i < COMPARE_SIDES; i++) {
		free(s->node_ticks[i]);
		free(s->side[i].file);
		free(s->side[i].ticks);
		free(s->side[i].unchanged);
	}
	free(s->outermost);
	free(s->first_child);
	free(s->next_sibling);
	free(s->functions);
	free(s->number_of);
	free(s->room);
}
