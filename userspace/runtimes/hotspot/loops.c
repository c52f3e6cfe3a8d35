/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/loops.h"

#include <string.h>

#include "runtimes/hotspot/flow.h"
#include "runtimes/hotspot/hotspot.h"

#define BLOCKS_MAX 8192u /* of code whose loops are found */
#define NESTED_MAX 16u

static struct {
	/* the blocks that lead to block b are from[first[b]] to, without it, from[first[b + 1]] */
	uint32_t first[BLOCKS_MAX + 2], from[2 * BLOCKS_MAX];
	uint32_t queue[BLOCKS_MAX];
	uint8_t marks[BLOCKS_MAX];
} loops; /* a reader has one thread */

enum { ALLOWED = 1, AFTER = 2, BEFORE = 4 };

/* Counts the ways to each block, or adds them. */
static void count_ways(const struct hotspot_debug *d, bool add)
{
	for (size_t i = 0; i < d->blocks.count; i++) {
		const struct hotspot_block *k = &d->blocks.data[i];
		uint32_t to[2] = {(uint32_t)i + 1, (uint32_t)k->target};

		for (unsigned int n = 0; n < 2; n++) {
			bool leads = n ? k->target >= 0 : k->falls && i + 1 < d->blocks.count;

			if (leads && add)
				loops.from[loops.first[to[n] + 1]++] = (uint32_t)i;
			else if (leads)
				loops.first[to[n] + 2]++;
		}
	}
}

static void find_ways_back(const struct hotspot_debug *d)
{
	memset(loops.first, 0, sizeof(loops.first));
	count_ways(d, false);
	for (size_t i = 2; i < d->blocks.count + 2; i++)
		loops.first[i] += loops.first[i - 1];
	count_ways(d, true);
}

static unsigned int reach(unsigned int count, uint32_t block, uint8_t mark)
{
	if (!(loops.marks[block] & ALLOWED) || loops.marks[block] & mark)
		return count;
	loops.marks[block] |= mark;
	loops.queue[count] = block;
	return count + 1;
}

/* Marks what is reached from a block on, or leads to it, among those that are allowed. */
static void mark_all(const struct hotspot_debug *d, uint32_t block, uint8_t mark)
{
	unsigned int count = 0;

	for (int i = -1; i < (int)count; i++) {
		uint32_t at = i < 0 ? block : loops.queue[i];
		const struct hotspot_block *k = &d->blocks.data[at];

		if (mark == BEFORE) {
			for (uint32_t n = loops.first[at]; n < loops.first[at + 1]; n++)
				count = reach(count, loops.from[n], mark);
			continue;
		}
		if (k->falls && at + 1 < d->blocks.count)
			count = reach(count, at + 1, mark);
		if (k->target >= 0)
			count = reach(count, (uint32_t)k->target, mark);
	}
}

/* It runs into the next block, but nothing leads to it. */
static bool is_padding(const struct hotspot_debug *d, uint32_t block)
{
	return d->blocks.data[block].pads && loops.first[block] == loops.first[block + 1];
}

/* Keeps what is in the loop. The block that it is entered at; UINT32_MAX: not one alone. */
static uint32_t keep_loop(const struct hotspot_debug *d)
{
	uint32_t entry = UINT32_MAX, entries = 0;

	for (uint32_t i = 0; i < d->blocks.count; i++)
		loops.marks[i] = (loops.marks[i] & (AFTER | BEFORE)) == (AFTER | BEFORE) ? ALLOWED
											 : 0;
	for (uint32_t i = 0; i < d->blocks.count; i++) {
		bool is_entry = !i;

		for (uint32_t n = loops.first[i]; n < loops.first[i + 1]; n++)
			is_entry |= !loops.marks[loops.from[n]] && !is_padding(d, loops.from[n]);
		if (!loops.marks[i] || !is_entry)
			continue;
		entry = i;
		entries++;
	}
	return entries == 1 ? entry : UINT32_MAX;
}

bool hotspot_loop__has(const struct hotspot_debug *d, uint32_t at, int32_t place)
{
	const struct hotspot_pc_desc *p = &d->places[place];
	bool is_behind = p->flags != HOTSPOT_PLACE_OTHER; /* a poll is at its place */
	size_t here = hotspot_flow__block(d, at);
	size_t there = hotspot_flow__block(d, (uint32_t)p->pc_offset - is_behind);
	bool is_in = false;

	if (d->blocks.count > BLOCKS_MAX || here >= d->blocks.count || there >= d->blocks.count)
		return false;
	find_ways_back(d);
	memset(loops.marks, ALLOWED, d->blocks.count);
	for (unsigned int i = 0; i < NESTED_MAX; i++) {
		uint32_t entry;

		mark_all(d, (uint32_t)there, AFTER);
		mark_all(d, (uint32_t)there, BEFORE);
		if (!(loops.marks[there] & AFTER))
			return is_in;
		entry = keep_loop(d);
		is_in = loops.marks[here];
		if (entry == UINT32_MAX)
			return false;
		if (entry == there)
			return is_in;
		loops.marks[entry] = 0;
	}
	return false;
}
