/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits (record --wall) as ticks of a microsecond. A wait is in all blocks of time through which it lasted. So the variance
 * of blocks has what counts of visits would hide: one long wait is one event.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "compare/merged_private.h"

#define TICK	   1000 /* ns */
#define NAME_SIZE  64
#define PIECES_MAX (1u << 20) /* beyond, those with the same key are joined */

/* The part of a wait that is in a block. */
struct piece {
	uint64_t key; /* as of a cell */
	double ns;
};
struct pieces {
	struct piece *data;
	size_t count, capacity;
};

DEFINE_ORDER(compare_pieces, struct piece, ASCENDING(key));

/* The node of a state below that of a stack. */
static int find_leaf(struct adding *a, uint32_t node, enum wall_state state, uint32_t *leaf)
{
	char name[NAME_SIZE];
	struct merged_function *function;
	int64_t number;

	snprintf(name, sizeof(name), "[waiting: %s]", wall_state_name(state));
	number = strtab__intern(a->m->names, name);
	if (number < 0)
		return -ENOMEM;
	function = vec_at(&a->m->functions, (uint32_t)number);
	if (!function)
		return -ENOMEM;
	function->state = state;
	return merged__child(a->m, node, (uint32_t)number, leaf);
}

/* A wait whose time is not known is where it was found. */
static int add_wait(struct adding *a, const struct profile_samples *waits, size_t i,
		    struct pieces *pieces)
{
	uint64_t since = waits->since[i], until = waits->until[i], block, last;
	double each;
	uint32_t leaf = MERGED_ROOT;
	int err = find_leaf(a, a->node_of_stack[waits->stack[i].v],
			    profile_samples__state(waits, i), &leaf);

	if (until <= since)
		since = until = waits->time[i];
	each = until > since ? (double)waits->weight[i] / (double)(until - since) : 0;
	if (until < a->range.from || since > a->range.until ||
	    (each > 0 && (until == a->range.from || since == a->range.until)))
		return err;
	since = max_u64(since, a->range.from) - a->range.from;
	until = min_u64(until, a->range.until) - a->range.from;
	last = until >> a->file->block_shift;
	for (block = since >> a->file->block_shift; block <= last && !err; block++) {
		uint64_t from = max_u64(since, block << a->file->block_shift);
		uint64_t to = min_u64(until, (block + 1) << a->file->block_shift);

		err = vec_push(pieces, (struct piece){block << 32 | leaf,
						      each > 0 ? each * (double)(to - from)
							       : (double)waits->weight[i]});
	}
	return err;
}

/* Pieces with the same key are one. */
static void join_pieces(struct pieces *pieces)
{
	size_t count = 0;

	vec_sort(pieces, compare_pieces);
	for (size_t i = 0; i < pieces->count; i++) {
		if (count && pieces->data[count - 1].key == pieces->data[i].key)
			pieces->data[count - 1].ns += pieces->data[i].ns;
		else
			pieces->data[count++] = pieces->data[i];
	}
	pieces->count = count;
}

static int add_cells(struct adding *a, struct pieces *pieces)
{
	struct compare_file *facts = &a->file->facts;
	double ns = 0;
	int err = 0;

	join_pieces(pieces);
	for (size_t i = 0; i < pieces->count && !err; i++) {
		uint64_t ticks = (uint64_t)(pieces->data[i].ns / TICK + 0.5);

		ns += pieces->data[i].ns;
		if (!ticks)
			continue;
		facts->samples += ticks;
		err = vec_push(&a->file->cells, (struct merged_cell){pieces->data[i].key, ticks});
	}
	facts->cpu_ns = (uint64_t)(ns + 0.5);
	return err;
}

int adding__add_waits(struct adding *a)
{
	struct compare_file *facts = &a->file->facts;
	struct wall_totals totals;
	struct pieces pieces = {};
	size_t limit = PIECES_MAX;
	int err = 0;

	profile__wall_totals(a->p, &totals);
	facts->lost = totals.unvisited;
	facts->due = totals.lived;
	if (a->p->visits.hz)
		a->m->sample_ticks = max_u64(a->m->sample_ticks,
					     UINT64_C(1000000000) / TICK / a->p->visits.hz);
	for (size_t i = 1; i < a->p->thread_count && !err; i++) {
		const struct profile_samples *waits = &a->p->threads[i].samples[SAMPLE_WALL];

		for (size_t k = 0; k < waits->count && !err; k++)
			err = add_wait(a, waits, k, &pieces);
		if (pieces.count <= limit)
			continue;
		join_pieces(&pieces);
		limit = max_u64(PIECES_MAX, 2 * pieces.count);
	}
	if (!err)
		err = add_cells(a, &pieces);
	vec_free(&pieces);
	return err;
}
