/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time is gone through once. What lives at the moment is in `live`: entries that do not overlap,
 * sorted by their starts, in blocks of a bounded size, so that an insertion moves little. Entries
 * that were found by one reading share their two moments: they are a gap. A question from inside of
 * it is asked again after each of the gap's entries that changes something at its address.
 */
#include "jit/jit_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define BLOCK_MAX 512u

struct entry {
	uint64_t start, end;
	uint32_t gap, function;
};

/* The time between two readings. */
struct gap {
	uint64_t after, before;
	uint32_t first; /* entry; the next gap's is the end */
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

int jit_timeline__add(struct jit_timeline *t, const struct code_range *range, uint64_t after,
		      uint64_t before, uint32_t function)
{
	const struct gap *last = t->gaps.count ? &t->gaps.data[t->gaps.count - 1] : NULL;
	struct entry entry = {.start = range->start, .end = range->end, .function = function};
	int err = 0;

	if (t->entries.count >= JIT_NO_ENTRY)
		return -E2BIG;
	if (!last || last->after != after || last->before != before)
		err = vec_push(&t->gaps, ((struct gap){after, before, t->entries.count}));
	entry.gap = t->gaps.count - 1;
	return err ? err : vec_push(&t->entries, entry);
}

size_t jit_timeline__count(const struct jit_timeline *t)
{
	return t->entries.count;
}

/* ---- what lives ------------------------------------------------------------------------------ */

static const struct entry *entry_at(const struct jit_timeline *t, size_t block, size_t i)
{
	return &t->entries.data[t->live.blocks.data[block]->entries[i]];
}

/* Of a single address its end is behind it. */
static uint64_t end_of(const struct entry *e)
{
	return e->end > e->start ? e->end : e->start + 1;
}

/* The first live entry that ends above the address. False: none does. */
static bool find_live(const struct jit_timeline *t, uint64_t address, size_t *block, size_t *at)
{
	size_t low = 0, high = t->live.blocks.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		size_t last = t->live.blocks.data[middle]->count - 1;

		if (end_of(entry_at(t, middle, last)) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == t->live.blocks.count)
		return false;
	*block = low;
	high = t->live.blocks.data[low]->count - 1;
	for (low = 0; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (end_of(entry_at(t, *block, middle)) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	*at = low;
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

/* A full block becomes two, and the place moves along. */
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

static bool same_function(const struct jit_timeline *t, uint32_t a, uint32_t b)
{
	if (a == JIT_NO_ENTRY || b == JIT_NO_ENTRY)
		return a == b;
	return t->entries.data[a].function == t->entries.data[b].function;
}

/* The questions inside of the gap, sorted by address: those from `start` on. */
static size_t first_question(const struct jit_question *questions, size_t count, uint64_t start)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (questions[middle].address < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* At these addresses is something else now. */
static void ask_again(const struct jit_timeline *t, struct jit_question *questions, size_t count,
		      uint64_t start, uint64_t end, uint32_t entry)
{
	for (size_t i = first_question(questions, count, start);
	     i < count && questions[i].address < end; i++) {
		struct jit_question *q = &questions[i];

		q->ambiguous |= q->entry != JIT_NO_ENTRY && !same_function(t, q->entry, entry);
		q->entry = entry;
	}
}

/* A single address makes nothing else untrue, and is nothing where something is. */
static int apply_single(struct jit_timeline *t, uint32_t number, struct jit_question *questions,
			size_t count)
{
	uint64_t address = t->entries.data[number].start;

	if (live_at(t, address) != JIT_NO_ENTRY)
		return 0;
	ask_again(t, questions, count, address, address + 1, number);
	return insert_live(t, number);
}

static int apply(struct jit_timeline *t, uint32_t number, struct jit_question *questions,
		 size_t count)
{
	const struct entry *e = &t->entries.data[number];
	size_t block, at;

	if (e->start == e->end)
		return apply_single(t, number, questions, count);
	while (find_live(t, e->start, &block, &at) && entry_at(t, block, at)->start < e->end) {
		const struct entry *old = entry_at(t, block, at);

		ask_again(t, questions, count, old->start, e->start, JIT_NO_ENTRY);
		ask_again(t, questions, count, e->end, end_of(old), JIT_NO_ENTRY);
		remove_live(&t->live, block, at);
	}
	ask_again(t, questions, count, e->start, e->end, number);
	return insert_live(t, number);
}

/* ---- answers --------------------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
	const struct jit_question *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct jit_question *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* How many of the questions are not younger than `time`. */
static size_t up_to(const struct jit_question *questions, size_t count, uint64_t time)
{
	size_t n = 0;

	while (n < count && questions[n].time <= time)
		n++;
	return n;
}

static void ask(const struct jit_timeline *t, struct jit_question *questions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		questions[i].entry = live_at(t, questions[i].address);
		questions[i].ambiguous = false;
	}
}

static int go_through_gap(struct jit_timeline *t, size_t gap, struct jit_question *questions,
			  size_t count)
{
	uint32_t end = gap + 1 < t->gaps.count ? t->gaps.data[gap + 1].first : t->entries.count;
	int err = 0;

	ask(t, questions, count);
	if (count > 1)
		qsort(questions, count, sizeof(*questions), compare_addresses);
	for (uint32_t i = t->gaps.data[gap].first; i < end && !err; i++)
		err = apply(t, i, questions, count);
	if (count > 1)
		qsort(questions, count, sizeof(*questions), compare_times);
	return err;
}

int jit_timeline__answer(struct jit_timeline *t, struct jit_question *questions, size_t count)
{
	size_t done = 0, inside;
	int err = 0;

	if (!count)
		return 0;
	qsort(questions, count, sizeof(*questions), compare_times);
	for (size_t gap = 0; gap < t->gaps.count && !err; gap++) {
		const struct gap *g = &t->gaps.data[gap];
		size_t before = up_to(questions + done, count - done, g->after);

		ask(t, questions + done, before);
		done += before;
		inside = up_to(questions + done, count - done, g->before);
		err = go_through_gap(t, gap, questions + done, inside);
		done += inside;
	}
	ask(t, questions + done, count - done);
	clear_live(&t->live);
	return err;
}
