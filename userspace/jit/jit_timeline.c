/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries are processed once, in order of time. `live` has the current entries: disjoint, sorted by
 * start, in blocks of bounded size, so that an insertion moves little. Only entries with a
 * requested address are kept there; the others only end some of these. An entry adds a change to
 * the history of each requested address that it has, or that an entry it ends has. Entries found by
 * one reading share their two moments: they are a gap.
 */
#include "jit/jit_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"

#define BLOCK_MAX 512u
#define CROWD	  64u /* changes at one address between two readings */

struct entry {
	uint64_t start, end;
	uint32_t name;
	uint32_t used; /* the timeline's turn at the last use; 0: never */
};

/* The time between two readings. */
struct gap {
	uint64_t after, before;
	uint32_t first;		/* entry; the next gap's is the end */
	bool is_snapshot, open; /* open: has no end yet */
};

struct block {
	uint32_t count;
	uint32_t entries[BLOCK_MAX];
};

struct live {
	VEC(struct block *) blocks; /* none is empty */
};

struct jit_timeline {
	VEC(struct entry) entries;
	VEC(struct gap) gaps;
	struct live live;
	uint32_t turn; /* how often entries were forgotten */
};

/* The requested addresses. */
struct query {
	const uint64_t *addresses;
	size_t count, changes, most; /* changes: recorded, and the limit */
	struct jit_history *histories;
	bool all;	   /* all entries are of interest, and no history is recorded */
	uint32_t *present; /* by entry: gap number + 1 of the last snapshot that has it */
};

struct jit_timeline *jit_timeline__new(void)
{
	return calloc(1, sizeof(struct jit_timeline));
}

static void clear_live(struct live *live)
{
	for (size_t i = 0; i < live->blocks.count; i++)
		free(live->blocks.data[i]);
	live->blocks.count = 0;
}

void jit_timeline__free(struct jit_timeline *t)
{
	if (!t)
		return;
	clear_live(&t->live);
	vec_free(&t->live.blocks);
	vec_free(&t->entries);
	vec_free(&t->gaps);
	free(t);
}

static struct gap *last_gap(struct jit_timeline *t)
{
	return t->gaps.count ? &t->gaps.data[t->gaps.count - 1] : NULL;
}

static int begin_gap(struct jit_timeline *t, uint64_t after, uint64_t before, bool is_snapshot)
{
	return vec_push(&t->gaps, ((struct gap){.after = after,
						.before = before,
						.first = t->entries.count,
						.is_snapshot = is_snapshot,
						.open = is_snapshot}));
}

/* A reading that did not reach the end of the file is joined with the next one. */
static int need_gap(struct jit_timeline *t, uint64_t after, uint64_t before)
{
	struct gap *last = last_gap(t);

	if (!last || last->is_snapshot || last->after != after)
		return begin_gap(t, after, before, false);
	last->before = before;
	return 0;
}

int jit_timeline__add(struct jit_timeline *t, const struct code_range *range, uint64_t after,
		      uint64_t before, uint32_t name)
{
	struct entry entry = {.start = range->start, .end = range->end, .name = name};
	int err = 0;

	if (t->entries.count >= JIT_NO_ENTRY)
		return -E2BIG;
	if (!last_gap(t) || !last_gap(t)->open)
		err = need_gap(t, after, before);
	return err ? err : vec_push(&t->entries, entry);
}

int jit_timeline__begin_snapshot(struct jit_timeline *t, uint64_t after, uint64_t before)
{
	jit_timeline__end_snapshot(t);
	return begin_gap(t, after, before, true);
}

void jit_timeline__end_snapshot(struct jit_timeline *t)
{
	if (last_gap(t))
		last_gap(t)->open = false;
}

size_t jit_timeline__count(const struct jit_timeline *t)
{
	return t->entries.count;
}

size_t jit_timeline__memory(const struct jit_timeline *t)
{
	return t->entries.capacity * sizeof(*t->entries.data) +
	       t->gaps.capacity * sizeof(*t->gaps.data);
}

uint32_t jit_timeline__name(const struct jit_timeline *t, uint32_t entry)
{
	return t->entries.data[entry].name;
}

struct code_range jit_timeline__range(const struct jit_timeline *t, uint32_t entry)
{
	return (struct code_range){t->entries.data[entry].start, t->entries.data[entry].end};
}

uint64_t jit_timeline__after(const struct jit_timeline *t, uint32_t entry)
{
	size_t gaps = partition_point(t->gaps.data, t->gaps.count, gap, gap->first <= entry);

	return t->gaps.data[gaps - 1].after;
}

/* ---- live entries ---------------------------------------------------------------------------- */

static const struct entry *entry_at(const struct jit_timeline *t, size_t block, size_t i)
{
	return &t->entries.data[t->live.blocks.data[block]->entries[i]];
}

/* A single address counts as one byte. */
static uint64_t end_of(const struct entry *e)
{
	return e->end > e->start ? e->end : e->start + 1;
}

static uint64_t end_of_entry(const struct jit_timeline *t, uint32_t entry)
{
	return end_of(&t->entries.data[entry]);
}

static uint32_t last_of_block(const struct block *b)
{
	return b->entries[b->count - 1];
}

/* The first live entry that ends above the address. False: none does. */
static bool find_live(const struct jit_timeline *t, uint64_t address, size_t *block, size_t *at)
{
	const struct live *live = &t->live;
	size_t i = partition_point(live->blocks.data, live->blocks.count, b,
				   end_of_entry(t, last_of_block(*b)) <= address);
	const struct block *found;

	if (i == live->blocks.count)
		return false;
	found = live->blocks.data[i];
	*block = i;
	/* the block's last entry ends above the address */
	*at = partition_point(found->entries, found->count - 1, entry,
			      end_of_entry(t, *entry) <= address);
	return true;
}

static void remove_live(struct live *live, size_t block, size_t at)
{
	struct block *b = live->blocks.data[block];

	memmove(&b->entries[at], &b->entries[at + 1], (--b->count - at) * sizeof(b->entries[0]));
	if (b->count)
		return;
	free(b);
	live->blocks.count--;
	memmove(&live->blocks.data[block], &live->blocks.data[block + 1],
		(live->blocks.count - block) * sizeof(live->blocks.data[0]));
}

/* Splits a full block in two, and updates the place. */
static int split_block(struct live *live, size_t *block, size_t *at)
{
	struct block *b = live->blocks.data[*block], *upper = malloc(sizeof(*upper));

	if (!upper || vec_reserve(&live->blocks, live->blocks.count + 1)) {
		free(upper);
		return -ENOMEM;
	}
	upper->count = b->count / 2;
	b->count -= upper->count;
	memcpy(upper->entries, b->entries + b->count, upper->count * sizeof(b->entries[0]));
	memmove(&live->blocks.data[*block + 2], &live->blocks.data[*block + 1],
		(live->blocks.count - *block - 1) * sizeof(live->blocks.data[0]));
	live->blocks.data[*block + 1] = upper;
	live->blocks.count++;
	if (*at > b->count) {
		*at -= b->count;
		++*block;
	}
	return 0;
}

static int add_first(struct live *live)
{
	struct block *b = malloc(sizeof(*b));

	if (!b || vec_push(&live->blocks, b)) {
		free(b);
		return -ENOMEM;
	}
	b->count = 0;
	return 0;
}

static int insert_live(struct jit_timeline *t, uint32_t number)
{
	struct live *live = &t->live;
	size_t block = 0, at = 0;
	struct block *b;
	int err = 0;

	if (!live->blocks.count)
		err = add_first(live);
	else if (!find_live(t, t->entries.data[number].start, &block, &at)) {
		block = live->blocks.count - 1;
		at = live->blocks.data[block]->count;
	}
	if (!err && live->blocks.data[block]->count == BLOCK_MAX)
		err = split_block(live, &block, &at);
	if (err)
		return err;
	b = live->blocks.data[block];
	memmove(&b->entries[at + 1], &b->entries[at], (b->count - at) * sizeof(b->entries[0]));
	b->entries[at] = number;
	b->count++;
	return 0;
}

/* The live entry that has the address. */
static uint32_t live_at(const struct jit_timeline *t, uint64_t address)
{
	size_t block, at;

	if (!find_live(t, address, &block, &at) || entry_at(t, block, at)->start > address)
		return JIT_NO_ENTRY;
	return t->live.blocks.data[block]->entries[at];
}

/* ---- one gap --------------------------------------------------------------------------------- */

/* The index of the first address that is not below `start`. */
static size_t first_address(const struct query *a, uint64_t start)
{
	return partition_point(a->addresses, a->count, address, *address < start);
}

/* Does the entry have one of the addresses? */
static bool is_queried(const struct query *a, const struct entry *e)
{
	size_t first = first_address(a, e->start);

	if (a->all)
		return true;
	return first < a->count && a->addresses[first] < end_of(e);
}

/* Records that the addresses in [start, end) have other code from now on. */
static int record_change(struct query *a, uint64_t start, uint64_t end,
			 const struct jit_change *change)
{
	for (size_t i = first_address(a, start); i < a->count && a->addresses[i] < end; i++) {
		if (++a->changes > a->most)
			return -E2BIG;
		if (vec_push(&a->histories[i].changes, *change))
			return -ENOMEM;
	}
	return 0;
}

static struct jit_change change_of(const struct gap *gap, uint32_t entry)
{
	return (struct jit_change){.after = gap->after, .before = gap->before, .entry = entry};
}

/* A single address invalidates nothing else, and is ignored inside of another entry. */
static int apply_single(struct jit_timeline *t, const struct gap *gap, uint32_t number,
			struct query *a)
{
	struct jit_change new = change_of(gap, number);
	uint64_t address = t->entries.data[number].start;

	if (live_at(t, address) != JIT_NO_ENTRY)
		return 0;
	return record_change(a, address, address + 1, &new) ?: insert_live(t, number);
}

/* The live entry with the same range and name. */
static uint32_t find_equal(const struct jit_timeline *t, const struct entry *e)
{
	uint32_t number = live_at(t, e->start);
	const struct entry *old = number == JIT_NO_ENTRY ? NULL : &t->entries.data[number];

	return old && old->start == e->start && old->end == e->end && old->name == e->name
		       ? number
		       : JIT_NO_ENTRY;
}

/* *at: the number of the entry, or of an equal one that is already live. */
static int apply_entry(struct jit_timeline *t, const struct gap *gap, uint32_t number,
		       struct query *a, uint32_t *at)
{
	struct jit_change new = change_of(gap, number), nothing = change_of(gap, JIT_NO_ENTRY);
	const struct entry *e = &t->entries.data[number];
	bool queried = is_queried(a, e);
	size_t block, place;
	int err = 0;

	*at = queried ? find_equal(t, e) : JIT_NO_ENTRY;
	if (*at != JIT_NO_ENTRY)
		return 0;
	*at = number;
	nothing.vanished = gap->is_snapshot;
	if (e->name == JIT_NOTHING)
		new.entry = JIT_NO_ENTRY;
	if (e->start == e->end)
		return queried && e->name != JIT_NOTHING ? apply_single(t, gap, number, a) : 0;
	while (!err && find_live(t, e->start, &block, &place) &&
	       entry_at(t, block, place)->start < e->end) {
		const struct entry *old = entry_at(t, block, place);

		err = record_change(a, old->start, e->start, &nothing)
			      ?: record_change(a, e->end, end_of(old), &nothing);
		remove_live(&t->live, block, place);
	}
	if (err || !queried)
		return err;
	err = record_change(a, e->start, e->end, &new);
	return err || e->name == JIT_NOTHING ? err : insert_live(t, number);
}

static uint32_t end_of_gap(const struct jit_timeline *t, size_t gap)
{
	return gap + 1 < t->gaps.count ? t->gaps.data[gap + 1].first : t->entries.count;
}

static int go_through_gap(struct jit_timeline *t, size_t gap, struct query *a)
{
	const struct gap *g = &t->gaps.data[gap];
	uint32_t at;
	int err = 0;

	for (uint32_t i = g->first; i < end_of_gap(t, gap) && !err; i++)
		err = apply_entry(t, g, i, a, &at);
	return err;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* Finds the gap's entries without a later overlapping one: entries of a snapshot share one time. */
static int find_fresh_of_gap(const struct jit_timeline *t, size_t gap, bool *fresh)
{
	uint32_t first = t->gaps.data[gap].first, count = end_of_gap(t, gap) - first;
	_cleanup_free_ struct code_range *ranges = calloc((size_t)count + 1, sizeof(*ranges));

	if (!ranges)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		ranges[i] = jit_timeline__range(t, first + i);
	return find_fresh(ranges, count, fresh);
}

/* Ends live entries that are missing from the snapshot. */
static int end_the_missing(struct jit_timeline *t, size_t number, struct query *a)
{
	const struct gap *gap = &t->gaps.data[number];
	struct jit_change gone = change_of(gap, JIT_NO_ENTRY);
	struct live *live = &t->live;
	size_t kept_blocks = 0;
	int err = 0;

	gone.vanished = true;
	for (size_t i = 0; i < live->blocks.count; i++) {
		struct block *b = live->blocks.data[i];
		uint32_t kept = 0;

		for (uint32_t k = 0; k < b->count; k++) {
			const struct entry *e = &t->entries.data[b->entries[k]];

			if (a->present[b->entries[k]] == number + 1)
				b->entries[kept++] = b->entries[k];
			else if (!err)
				err = record_change(a, e->start, end_of(e), &gone);
		}
		b->count = kept;
		if (kept)
			live->blocks.data[kept_blocks++] = b;
		else
			free(b);
	}
	live->blocks.count = kept_blocks;
	return err;
}

static int go_through_snapshot(struct jit_timeline *t, size_t gap, struct query *a)
{
	const struct gap *g = &t->gaps.data[gap];
	uint32_t count = end_of_gap(t, gap) - g->first, at;
	_cleanup_free_ bool *fresh = calloc((size_t)count + 1, sizeof(*fresh));
	int err = fresh ? find_fresh_of_gap(t, gap, fresh) : -ENOMEM;

	for (uint32_t i = 0; i < count && !err; i++) {
		if (!fresh[i])
			continue;
		err = apply_entry(t, g, g->first + i, a, &at);
		a->present[at] = (uint32_t)gap + 1;
	}
	return err ? err : end_the_missing(t, gap, a);
}

static int go_through(struct jit_timeline *t, size_t gap, struct query *a)
{
	const struct gap *g = &t->gaps.data[gap];

	return g->is_snapshot && !g->open ? go_through_snapshot(t, gap, a)
					  : go_through_gap(t, gap, a);
}

/* ---- forgetting ------------------------------------------------------------------------------ */

/*
 * The number of gaps from the first on that are over before the horizon. The last one may still
 * grow: it counts only if all are requested and it is no open snapshot.
 */
static size_t gaps_before(struct jit_timeline *t, uint64_t horizon)
{
	size_t count = t->gaps.count;

	if (!count)
		return 0;
	if (horizon == UINT64_MAX)
		return count - last_gap(t)->open;
	return partition_point(t->gaps.data, count - 1, gap, gap->before < horizon);
}

/* Finds the entries of the first gaps that are alive at their end. */
static int find_living(struct jit_timeline *t, size_t gaps, bool *living)
{
	_cleanup_free_ uint32_t *present = calloc(t->entries.count + 1, sizeof(*present));
	struct query a = {.all = true, .present = present};
	int err = present ? 0 : -ENOMEM;

	for (size_t gap = 0; gap < gaps && !err; gap++)
		err = go_through(t, gap, &a);
	for (size_t i = 0; i < t->live.blocks.count; i++)
		for (uint32_t k = 0; k < t->live.blocks.data[i]->count; k++)
			living[t->live.blocks.data[i]->entries[k]] = true;
	clear_live(&t->live);
	return err;
}

/* Frees unused memory of a vector. */
static void trim(void **data, size_t *capacity, size_t wanted, size_t size)
{
	void *smaller = wanted < *capacity ? realloc(*data, wanted * size) : NULL;

	if (!smaller)
		return;
	*data = smaller;
	*capacity = wanted;
}

/* Keeps marked entries of the first gaps. These gaps end nothing: what they ended is forgotten. */
static void keep_marked(struct jit_timeline *t, size_t gaps, const bool *marked)
{
	size_t kept_gaps = 0;
	uint32_t kept = 0;

	for (size_t gap = 0; gap < t->gaps.count; gap++) {
		struct gap g = t->gaps.data[gap];
		uint32_t end = end_of_gap(t, gap), first = kept;

		for (uint32_t i = g.first; i < end; i++)
			if (gap >= gaps || marked[i])
				t->entries.data[kept++] = t->entries.data[i];
		g.first = first;
		g.is_snapshot = g.is_snapshot && gap >= gaps;
		if (gap >= gaps || kept > first)
			t->gaps.data[kept_gaps++] = g;
	}
	t->entries.count = kept;
	t->gaps.count = kept_gaps;
	/* leave some room to grow */
	trim((void **)&t->entries.data, &t->entries.capacity, kept + kept / 4 + 64,
	     sizeof(*t->entries.data));
	trim((void **)&t->gaps.data, &t->gaps.capacity, kept_gaps + 64, sizeof(*t->gaps.data));
}

int jit_timeline__forget(struct jit_timeline *t, uint64_t horizon)
{
	_cleanup_free_ bool *living = calloc(t->entries.count + 1, sizeof(*living));
	size_t gaps = gaps_before(t, horizon);
	int err = living ? find_living(t, gaps, living) : -ENOMEM;

	if (err)
		return err;
	keep_marked(t, gaps, living);
	t->turn++;
	return 0;
}

struct use {
	uint32_t used, entry;
};

DEFINE_ORDER(compare_uses, struct use, ASCENDING(used) ?: ASCENDING(entry));

int jit_timeline__shed(struct jit_timeline *t, size_t part)
{
	size_t gaps = gaps_before(t, UINT64_MAX);
	uint32_t count = gaps < t->gaps.count ? t->gaps.data[gaps].first : t->entries.count;
	_cleanup_free_ struct use *uses = calloc((size_t)count + 1, sizeof(*uses));
	_cleanup_free_ bool *marked = calloc((size_t)count + 1, sizeof(*marked));

	if (!uses || !marked)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		uses[i] = (struct use){t->entries.data[i].used, i};
	if (count)
		qsort(uses, count, sizeof(*uses), compare_uses);
	for (uint32_t i = (count + part - 1) / part; i < count; i++)
		marked[uses[i].entry] = true;
	keep_marked(t, gaps, marked);
	return 0;
}

void jit_timeline__use(struct jit_timeline *t, uint32_t entry)
{
	t->entries.data[entry].used = t->turn + 1;
}

void jit_timeline__rename(struct jit_timeline *t, jit_rename_fn rename, void *context)
{
	for (size_t i = 0; i < t->entries.count; i++)
		t->entries.data[i].name = rename(context, t->entries.data[i].name);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Makes beginnings ascending: a change that begins before the previous one moves that one back. */
static void order_beginnings(struct jit_history *h)
{
	for (size_t i = h->changes.count; i-- > 1;)
		if (h->changes.data[i - 1].after > h->changes.data[i].after)
			h->changes.data[i - 1].after = h->changes.data[i].after;
}

int jit_timeline__histories(struct jit_timeline *t, const uint64_t *addresses, size_t count,
			    struct jit_history *histories)
{
	_cleanup_free_ uint32_t *present = calloc(t->entries.count + 1, sizeof(*present));
	struct query a = {
		.addresses = addresses,
		.count = count,
		.most = min_u64(JIT_CHANGES_MAX,
				JIT_CHANGES_FREE +
					JIT_CHANGES_EACH * ((uint64_t)t->entries.count + count)),
		.histories = histories,
		.present = present,
	};
	int err = present ? 0 : -ENOMEM;

	for (size_t gap = 0; gap < t->gaps.count && count && !err; gap++)
		err = go_through(t, gap, &a);
	clear_live(&t->live);
	for (size_t i = 0; i < count; i++)
		order_beginnings(&histories[i]);
	return err;
}

void jit_history__fini(struct jit_history *h)
{
	vec_free(&h->changes);
}

static bool same_function(uint32_t a, uint32_t b, jit_same_fn same, void *context)
{
	if (a == b || a == JIT_NO_ENTRY || b == JIT_NO_ENTRY)
		return a == b;
	return same(context, a, b);
}

struct jit_answer jit_history__at(const struct jit_history *h, uint64_t time, jit_same_fn same,
				  void *context)
{
	/* changes over by `time`, and possibly over; ends and beginnings are sorted */
	size_t sure = partition_point(h->changes.data, h->changes.count, c, c->before < time);
	size_t possible = partition_point(h->changes.data, h->changes.count, c, c->after < time);
	struct jit_answer answer = {
		.entry = sure ? h->changes.data[sure - 1].entry : JIT_NO_ENTRY,
	};

	if (possible > sure + CROWD) { /* too many changes to keep them apart */
		answer.ambiguous = true;
		sure = possible - 1;
	}
	for (size_t i = sure; i < possible; i++) {
		const struct jit_change *change = &h->changes.data[i];

		answer.ambiguous = answer.ambiguous ||
				   (answer.entry != JIT_NO_ENTRY &&
				    !same_function(answer.entry, change->entry, same, context));
		if (!change->vanished)
			answer.entry = change->entry;
	}
	return answer;
}

/* ---- fresh entries --------------------------------------------------------------------------- */

/*
 * From the last entry to the first: an entry is fresh if none of its addresses is taken, and takes
 * the free ones. Addresses are cells between all starts and ends; a taken cell links towards the
 * next free one (union-find), so each is taken once.
 */

DEFINE_ORDER(compare_edges, uint64_t, order_of(*x, *y));

static size_t sort_edges(const struct code_range *ranges, size_t count, uint64_t *edges)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		edges[2 * i] = ranges[i].start;
		edges[2 * i + 1] = ranges[i].end;
	}
	qsort(edges, 2 * count, sizeof(*edges), compare_edges);
	for (size_t i = 0; i < 2 * count; i++)
		if (!kept || edges[kept - 1] != edges[i])
			edges[kept++] = edges[i];
	return kept;
}

static size_t index_of(const uint64_t *edges, size_t count, uint64_t edge)
{
	return partition_point(edges, count, e, *e < edge);
}

static size_t next_free(uint32_t *links, size_t cell)
{
	while (links[cell] != cell) {
		links[cell] = links[links[cell]];
		cell = links[cell];
	}
	return cell;
}

int find_fresh(const struct code_range *ranges, size_t count, bool *fresh)
{
	_cleanup_free_ uint64_t *edges = calloc(2 * count + 1, sizeof(*edges));
	_cleanup_free_ uint32_t *links = calloc(2 * count + 1, sizeof(*links));
	size_t edge_count;

	if (!edges || !links || count > UINT32_MAX / 2)
		return -ENOMEM;
	edge_count = sort_edges(ranges, count, edges);
	for (size_t i = 0; i <= edge_count; i++)
		links[i] = i;
	for (size_t i = count; i-- > 0;) {
		size_t cell = index_of(edges, edge_count, ranges[i].start);
		size_t end = index_of(edges, edge_count, ranges[i].end);

		if (cell == end) { /* a single address: in the cell that begins there */
			fresh[i] = next_free(links, cell) == cell;
			continue;
		}
		fresh[i] = true;
		for (size_t at = cell; at < end; at++) {
			size_t next = next_free(links, at);

			fresh[i] = fresh[i] && next == at;
			at = next;
			if (at < end)
				links[at] = at + 1;
		}
	}
	return 0;
}
