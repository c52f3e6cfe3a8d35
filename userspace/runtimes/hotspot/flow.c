/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How compiled code runs: its blocks, and the described places that are next on any way through them.
 *
 * The compiler describes few places, but also each call that gives the code up (uncommon traps), with
 * the bytecode that goes on in the interpreter. A check that leads to such a call belongs to that
 * bytecode: of a type, an index, a branch that was never taken, or of null, which is a load that may
 * fault. So each check is a place, too.
 */
#include "runtimes/hotspot/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "elf/x86_code.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"

#define CALL_BYTES	5u
#define TRAP_BLOCKS	4u /* from a check to its call */
#define NULL_CHECKS_MAX 16384u
#define TARGETS_KNOWN	64u

struct building {
	struct hotspot_code *heaps;
	struct target_memory *memory;
	const struct hotspot_blob *blob;
	struct hotspot_debug *debug;
	uint8_t *code;
	bool *leads; /* of each byte of code: does a block begin there? */
	uint32_t size;
	struct {
		uint64_t target;
		bool is_trap;
	} targets[TARGETS_KNOWN];
	VEC(struct hotspot_pc_desc) checks;
};

/* ---- places ---------------------------------------------------------------------------------- */

/* Is what is called here the JVM's code that gives compiled code up? */
static bool calls_trap(struct building *b, uint64_t target)
{
	unsigned int slot = (target >> 4) % TARGETS_KNOWN;
	struct hotspot_blob blob;
	uint64_t address;

	if (b->targets[slot].target != target) {
		b->targets[slot].target = target;
		b->targets[slot].is_trap =
			!hotspot_code__find(b->heaps, b->memory, target, &address) &&
			!hotspot_code__blob(b->heaps, b->memory, address, &blob) &&
			blob.kind == HOTSPOT_UNCOMMON_TRAP;
	}
	return b->targets[slot].is_trap;
}

static enum hotspot_place_kind kind_of(struct building *b, int32_t place)
{
	int32_t distance;
	const uint8_t *end;

	if (place < (int32_t)CALL_BYTES || place > (int64_t)b->size)
		return HOTSPOT_PLACE_OTHER;
	end = b->code + place;
	if (end[-5] == 0xe8) {
		memcpy(&distance, end - 4, sizeof(distance));
		return calls_trap(b, b->blob->code + (uint64_t)((int64_t)place + distance))
			       ? HOTSPOT_PLACE_TRAP
			       : HOTSPOT_PLACE_CALL;
	}
	return end[-2] == 0xff && (end[-1] & 0xf8) == 0xd0 ? HOTSPOT_PLACE_CALL
							   : HOTSPOT_PLACE_OTHER;
}

static void find_kinds(struct building *b)
{
	for (size_t i = 0; i < b->debug->place_count; i++)
		b->debug->places[i].flags = kind_of(b, b->debug->places[i].pc_offset);
}

static const struct hotspot_pc_desc *place_behind(const struct hotspot_debug *d, uint32_t at)
{
	size_t i = partition_point(d->places, d->place_count, p, p->pc_offset <= (int64_t)at);

	return i < d->place_count ? &d->places[i] : NULL;
}

static bool is_trap_call(const struct hotspot_debug *d, uint32_t end)
{
	const struct hotspot_pc_desc *p = end ? place_behind(d, end - 1) : NULL;

	return p && p->pc_offset == (int64_t)end && p->flags == HOTSPOT_PLACE_TRAP;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Where instructions go on behind one that is not understood. */
static uint32_t skip(const struct building *b, uint32_t at)
{
	const struct hotspot_pc_desc *p = place_behind(b->debug, at);

	return p && p->pc_offset < (int64_t)b->size ? (uint32_t)p->pc_offset : b->size;
}

static bool is_end(enum x86_effect effect)
{
	return effect == X86_RETURN || effect == X86_JUMP || effect == X86_JUMP_AWAY ||
	       effect == X86_STOP || effect == X86_BRANCH;
}

static bool is_inside(const struct building *b, int64_t target)
{
	return target >= 0 && target < (int64_t)b->size;
}

static void find_leaders(struct building *b)
{
	struct x86_instruction i;

	b->leads[0] = true;
	for (uint32_t at = 0, next; at < b->size; at = next) {
		bool is_known = x86_decode(b->code + at, b->size - at, &i);
		bool jumps = is_known && (i.effect == X86_JUMP || i.effect == X86_BRANCH);

		next = is_known ? at + i.size : skip(b, at);
		if (jumps && is_inside(b, (int64_t)next + i.amount))
			b->leads[(int64_t)next + i.amount] = true;
		if (!is_known || is_end(i.effect) ||
		    (i.effect == X86_CALL && is_trap_call(b->debug, next)))
			b->leads[next] = true;
	}
	b->leads[b->size] = true;
}

/*
 * Of its last instruction, which ends at `end`. The target is an offset until there are all blocks. A
 * jump out of the code is to the JVM's: to a poll at the return, or with an exception.
 */
static void end_block(const struct building *b, struct hotspot_block *block, uint32_t end,
		      const struct x86_instruction *last)
{
	int64_t target = (int64_t)end + last->amount;
	bool jumps = last->effect == X86_JUMP || last->effect == X86_BRANCH;

	block->last_size = last->size;
	block->target = jumps && is_inside(b, target) ? (int32_t)target : -1;
	block->traps = last->effect == X86_CALL && is_trap_call(b->debug, end);
	block->falls = !block->traps && (!is_end(last->effect) || last->effect == X86_BRANCH);
	block->returns = last->effect == X86_RETURN || (jumps && block->target < 0);
	block->is_open = last->effect == X86_JUMP_AWAY;
}

static int make_blocks(struct building *b)
{
	struct hotspot_block block = {.target = -1, .pads = true};
	struct x86_instruction i;
	int err = 0;

	for (uint32_t at = 0, next; at < b->size && !err; at = next) {
		bool is_known = x86_decode(b->code + at, b->size - at, &i);

		next = is_known ? at + i.size : skip(b, at);
		block.pads &= is_known && i.effect == X86_PADDING;
		if (is_known && !b->leads[next])
			continue;
		block.is_open = true;
		if (is_known)
			end_block(b, &block, next, &i);
		err = vec_push(&b->debug->blocks, block);
		block = (struct hotspot_block){.start = next, .target = -1, .pads = true};
	}
	return err;
}

static uint32_t end_of(const struct hotspot_debug *d, size_t block)
{
	return block + 1 < d->blocks.count ? d->blocks.data[block + 1].start : d->code_size;
}

size_t hotspot_flow__block(const struct hotspot_debug *d, uint32_t at)
{
	size_t i = partition_point(d->blocks.data, d->blocks.count, k, k->start <= at);

	return i && at < d->code_size ? i - 1 : d->blocks.count;
}

/* A jump into the middle of an instruction leads to what is not known. */
static void find_targets(struct hotspot_debug *d)
{
	for (size_t i = 0; i < d->blocks.count; i++) {
		struct hotspot_block *k = &d->blocks.data[i];
		size_t to = k->target < 0 ? d->blocks.count
					  : hotspot_flow__block(d, (uint32_t)k->target);
		bool is_there = to < d->blocks.count &&
				d->blocks.data[to].start == (uint32_t)k->target;

		k->is_open |= k->target >= 0 && !is_there;
		k->target = is_there ? (int32_t)to : -1;
	}
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* The scope of the call that surely gives the code up from this block on; 0: there is none. */
static int32_t scope_of_trap(const struct hotspot_debug *d, size_t block)
{
	for (unsigned int i = 0; i < TRAP_BLOCKS && block < d->blocks.count; i++) {
		const struct hotspot_block *k = &d->blocks.data[block];

		if (k->traps)
			return place_behind(d, end_of(d, block) - 1)->scope;
		if (k->is_open || k->returns || k->falls == (k->target >= 0))
			return 0;
		block = k->falls ? block + 1 : (size_t)k->target;
	}
	return 0;
}

static int add_check(struct building *b, uint32_t at, size_t to, enum hotspot_place_kind kind)
{
	const struct hotspot_pc_desc check = {
		.pc_offset = (int32_t)at + 1, .scope = scope_of_trap(b->debug, to), .flags = kind};

	return check.scope > 0 ? vec_push(&b->checks, check) : 0;
}

static int find_branches(struct building *b)
{
	const struct hotspot_debug *d = b->debug;
	int err = 0;

	for (size_t i = 0; i < d->blocks.count && !err; i++) {
		const struct hotspot_block *k = &d->blocks.data[i];

		if (k->falls && k->target >= 0)
			err = add_check(b, end_of(d, i) - k->last_size, (size_t)k->target,
					HOTSPOT_PLACE_CHECK);
	}
	return err;
}

/* Pairs of a load that may fault, and where it goes on then. What is no table leads nowhere. */
static int find_null_checks(struct building *b)
{
	uint64_t at = b->debug->null_checks;
	uint32_t count = 0, pair[2];
	int err = 0;

	if (!at || target_memory__u32(b->memory, &count, at) || count > NULL_CHECKS_MAX)
		return 0;
	for (uint32_t i = 0; i < count && !err; i++) {
		if (target_memory__read(b->memory, pair, sizeof(pair), at + 4 + 8ull * i) ||
		    pair[0] >= b->size || pair[1] >= b->size)
			return 0;
		err = add_check(b, pair[0], hotspot_flow__block(b->debug, pair[1]),
				HOTSPOT_PLACE_LOAD);
	}
	return err;
}

DEFINE_ORDER(compare_places, struct hotspot_pc_desc, ASCENDING(pc_offset) ?: ASCENDING(flags));

static int merge_checks(struct building *b)
{
	struct hotspot_debug *d = b->debug;
	struct hotspot_pc_desc *places;

	if (!b->checks.count)
		return 0;
	places = realloc(d->places, (d->place_count + b->checks.count) * sizeof(*places));
	if (!places)
		return -ENOMEM;
	memcpy(places + d->place_count, b->checks.data, b->checks.count * sizeof(*places));
	d->places = places;
	d->place_count += b->checks.count;
	qsort(places, d->place_count, sizeof(*places), compare_places);
	return 0;
}

static int build(struct building *b)
{
	int err;

	find_kinds(b);
	find_leaders(b);
	err = make_blocks(b);
	if (err)
		return err;
	find_targets(b->debug);
	return find_branches(b) ?: find_null_checks(b) ?: merge_checks(b);
}

int hotspot_flow__read(struct hotspot_code *code, struct target_memory *memory,
		       const struct hotspot_blob *blob, struct hotspot_debug *debug)
{
	uint32_t size = (uint32_t)min_u64(blob->code_end - blob->code, HOTSPOT_CODE_MAX);
	_cleanup_free_ uint8_t *bytes = malloc(size + 1);
	_cleanup_free_ bool *leads = calloc(size + 1, sizeof(*leads));
	struct building b = {.heaps = code,
			     .memory = memory,
			     .blob = blob,
			     .debug = debug,
			     .code = bytes,
			     .leads = leads,
			     .size = size};
	int err;

	if (!bytes || !leads)
		return -ENOMEM;
	debug->code_size = size;
	err = target_memory__read(memory, bytes, size, blob->code) ?: build(&b);
	vec_free(&b.checks);
	return err;
}

/* ---- around an address ----------------------------------------------------------------------- */

#define VISITS_MAX 64u /* blocks on the ways */

struct search {
	const struct hotspot_debug *debug;
	struct hotspot_around *around;
	struct hotspot_ends *ends; /* those that are looked for */
	size_t blocks[VISITS_MAX]; /* the first is that of the address, and may come again */
	unsigned int count;
};

static void visit(struct search *s, size_t block)
{
	for (unsigned int i = 1; i < s->count; i++)
		if (s->blocks[i] == block)
			return;
	if (block >= s->debug->blocks.count || s->count == VISITS_MAX)
		s->ends->is_open = true;
	else
		s->blocks[s->count++] = block;
}

static void add_end(struct hotspot_ends *ends, int32_t place)
{
	for (unsigned int i = 0; i < ends->count; i++)
		if (ends->place[i] == place)
			return;
	if (ends->count == HOTSPOT_ENDS_MAX)
		ends->is_open = true;
	else
		ends->place[ends->count++] = place;
}

/* Is there a place in (from, end of the block]? The first counts. */
static bool meet_forward(struct search *s, size_t block, uint32_t from)
{
	const struct hotspot_pc_desc *p = place_behind(s->debug, from);
	uint32_t end = end_of(s->debug, block);
	bool has = p && p->pc_offset <= (int64_t)end;

	s->around->size += (has ? (uint32_t)p->pc_offset : end) - from;
	if (has)
		add_end(s->ends, (int32_t)(p - s->debug->places));
	return has;
}

static void go_forward(struct search *s, uint32_t at)
{
	for (unsigned int i = 0; i < s->count; i++) {
		size_t number = s->blocks[i];
		const struct hotspot_block *k = &s->debug->blocks.data[number];

		s->around->loops |= i && number == s->blocks[0];
		if (meet_forward(s, number, i ? k->start : at))
			continue;
		if (k->returns)
			add_end(s->ends, HOTSPOT_END_OUTSIDE);
		s->ends->is_open |= k->is_open;
		if (k->falls)
			visit(s, number + 1);
		if (k->target >= 0)
			visit(s, (size_t)k->target);
	}
}

/* Is there a place in (start of the block, before]? The last counts. */
static bool meet_backward(struct search *s, size_t block, uint32_t before)
{
	const struct hotspot_debug *d = s->debug;
	size_t i = partition_point(d->places, d->place_count, p, p->pc_offset <= (int64_t)before);
	uint32_t start = d->blocks.data[block].start;
	bool has = i && d->places[i - 1].pc_offset > (int64_t)start;

	s->around->size += before - (has ? (uint32_t)d->places[i - 1].pc_offset : start);
	if (has)
		add_end(s->ends, (int32_t)i - 1);
	return has;
}

static void go_backward(struct search *s, uint32_t at)
{
	const struct hotspot_debug *d = s->debug;

	for (unsigned int i = 0; i < s->count; i++) {
		size_t number = s->blocks[i];
		bool has_any = !number || d->blocks.data[number].pads;

		if (meet_backward(s, number, i ? end_of(d, number) : at))
			continue;
		if (!number)
			add_end(s->ends, HOTSPOT_END_OUTSIDE);
		for (size_t j = 0; j < d->blocks.count; j++) {
			bool leads = d->blocks.data[j].target == (int32_t)number ||
				     (d->blocks.data[j].falls && j + 1 == number);

			if (leads)
				visit(s, j);
			has_any |= leads;
		}
		s->ends->is_open |= !has_any;
	}
}

bool hotspot_flow__around(const struct hotspot_debug *d, uint32_t at, struct hotspot_around *around)
{
	struct search s = {
		.debug = d, .around = around, .count = 1, .blocks = {hotspot_flow__block(d, at)}};

	*around = (struct hotspot_around){.at = at};
	if (s.blocks[0] >= d->blocks.count)
		return false;
	s.ends = &around->behind;
	go_forward(&s, at);
	s.count = 1;
	s.ends = &around->before;
	go_backward(&s, at);
	return true;
}
