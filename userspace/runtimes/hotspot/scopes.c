/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which methods are inlined where: an nmethod has a list of places (PcDesc), each with a chain of
 * scopes from the innermost outwards. JDK 23 moved them from the code heap to a block of their own.
 */
#include "runtimes/hotspot/hotspot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/x86_code.h"

#define DESCRIPTION_SIZE 16u
#define DESCRIPTIONS_MAX (1u << 20) /* bytes */
#define DATA_MAX	 (4u << 20)
#define AHEAD_BYTES	 512u /* of code, that are looked at */
#define CALL_BYTES	 5u

_Static_assert(sizeof(struct hotspot_pc_desc) == DESCRIPTION_SIZE, "as HotSpot has them");

/* Addresses of an nmethod's debug data. */
struct debug_data {
	uint64_t places, places_size;
	uint64_t scopes, scopes_end;
	uint64_t methods; /* 1-based */
};

/* JDK 23 and later. */
static void find_moved(const struct hotspot_object *o, struct debug_data *d)
{
	uint64_t data = hotspot_number(o, HOTSPOT_IMMUTABLE_DATA, 8);

	d->places = data + hotspot_number(o, HOTSPOT_SCOPES_PCS, 4);
	d->scopes = data + hotspot_number(o, HOTSPOT_SCOPES_DATA, 4);
	d->places_size = d->scopes - d->places;
	d->scopes_end = data + hotspot_number(o, HOTSPOT_IMMUTABLE_SIZE, 4);
	d->methods = hotspot_number(o, HOTSPOT_BLOB_MUTABLE_DATA, 8) +
		     hotspot_number(o, HOTSPOT_BLOB_RELOCATION_SIZE, 4);
}

static void find_in_blob(const struct hotspot_object *o, const struct hotspot_blob *blob,
			 struct debug_data *d)
{
	uint64_t places = hotspot_number(o, HOTSPOT_SCOPES_PCS, 4);

	d->places = blob->address + places;
	d->places_size = hotspot_number(o, HOTSPOT_SCOPES_PCS_END, 4) - places;
	d->scopes = hotspot_number(o, HOTSPOT_SCOPES_DATA, 8);
	d->scopes_end = d->places > d->scopes ? d->places : blob->address + blob->size;
	d->methods = blob->address + hotspot_number(o, HOTSPOT_METADATA_OFFSET, 4);
}

static int find_debug_data(const struct hotspot_layout *l, struct target_memory *memory,
			   const struct hotspot_blob *blob, struct debug_data *d)
{
	unsigned char header[HOTSPOT_HEADER_MAX];
	const struct hotspot_object o = {l, header, l->header_size};
	int err = target_memory__read(memory, header, o.size, blob->address);

	if (err)
		return err;
	if (l->known[HOTSPOT_IMMUTABLE_DATA])
		find_moved(&o, d);
	else
		find_in_blob(&o, blob, d);
	if (d->places_size > DESCRIPTIONS_MAX || d->places_size < DESCRIPTION_SIZE ||
	    d->scopes_end < d->scopes || d->scopes_end - d->scopes > DATA_MAX)
		return -ENODATA;
	return 0;
}

static int read_debug_data(const struct hotspot_layout *l, struct target_memory *memory,
			   const struct hotspot_blob *blob, struct hotspot_debug *debug)
{
	struct debug_data d;
	int err = find_debug_data(l, memory, blob, &d);

	if (err)
		return err;
	debug->methods = d.methods;
	debug->place_count = d.places_size / DESCRIPTION_SIZE;
	debug->scopes_size = d.scopes_end - d.scopes;
	debug->places = malloc(d.places_size);
	debug->scopes = malloc(debug->scopes_size + 1);
	if (!debug->places || !debug->scopes)
		return -ENOMEM;
	return target_memory__read(memory, debug->places, debug->place_count * DESCRIPTION_SIZE,
				   d.places)
		       ?: target_memory__read(memory, debug->scopes, debug->scopes_size, d.scopes);
}

void hotspot_debug__fini(struct hotspot_debug *debug)
{
	free(debug->places);
	free(debug->scopes);
	vec_free(&debug->named);
	for (size_t i = 0; i < debug->bytecodes.count; i++)
		free(debug->bytecodes.data[i].code);
	vec_free(&debug->bytecodes);
	*debug = (struct hotspot_debug){};
}

/* ---- where compiled code goes on ------------------------------------------------------------- */

/*
 * The next place in memory need not be the next that runs: a loop goes back before it gets there,
 * and behind a jump is something else.
 */
enum ahead {
	AHEAD_ON,      /* to the next place in memory, as far as it is known */
	AHEAD_AT,      /* it jumps to *target */
	AHEAD_LOOPS,   /* it is in a loop, which begins at *target */
	AHEAD_RETURNS, /* out of the compiled method */
};

/* Is it behind a call? Else an instruction begins one byte before. */
static bool is_behind_call(const uint8_t *end)
{
	return end[-5] == 0xe8 || (end[-2] == 0xff && (end[-1] & 0xf8) == 0xd0);
}

struct way {
	uint32_t from, to; /* of the code */
	int64_t target;	   /* of the jump that was met */
};

static bool is_inside(const struct hotspot_blob *blob, int64_t target)
{
	return target >= 0 && target < (int64_t)(blob->code_end - blob->code);
}

/* Decodes instructions up to the first that surely leads elsewhere, or closes a loop. */
static enum ahead walk(const struct hotspot_blob *blob, const uint8_t *code, struct way *w)
{
	struct x86_instruction i;

	for (uint32_t at = w->from; at < w->to; at += i.size) {
		if (!x86_decode(code + (at - w->from), w->to - at, &i))
			return AHEAD_ON;
		w->target = (int64_t)at + i.size + i.amount;
		if (i.effect == X86_RETURN)
			return AHEAD_RETURNS;
		if (i.effect == X86_JUMP)
			return is_inside(blob, w->target) ? AHEAD_AT : AHEAD_ON;
		if (i.effect == X86_JUMP_AWAY || i.effect == X86_STOP)
			return AHEAD_ON;
		if (i.effect == X86_BRANCH && w->target < (int64_t)w->from &&
		    is_inside(blob, w->target))
			return AHEAD_LOOPS;
	}
	return AHEAD_ON;
}

/*
 * `distance` from the code: of a return address, or one more than the innermost frame's place.
 * `next`: the next place in memory, in the same code. Unknown instructions lead on.
 */
static enum ahead find_ahead(struct target_memory *memory, const struct hotspot_blob *blob,
			     uint32_t distance, uint32_t next, uint32_t *target)
{
	uint32_t size = min_u64(next - distance, AHEAD_BYTES);
	uint8_t code[CALL_BYTES + AHEAD_BYTES];
	struct way w = {.from = distance, .to = distance + size};
	const uint8_t *from = code + CALL_BYTES;
	enum ahead ahead;

	if (distance < CALL_BYTES || next <= distance ||
	    target_memory__read(memory, code, CALL_BYTES + size,
				blob->code + distance - CALL_BYTES))
		return AHEAD_ON;
	if (!is_behind_call(from)) {
		w.from--;
		from--;
	}
	ahead = walk(blob, from, &w);
	*target = (uint32_t)w.target;
	return ahead;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The scopes of the places around an address, in the order of running if known; 0: none. */
struct around {
	uint32_t behind, before;
	int32_t behind_at, before_at; /* where these places are; before_at 0: there is none */
	uint32_t size;		      /* of the code between those that are next to it in memory */
	bool loops;		      /* there is a loop around it without a place of its own */
	bool is_described;	      /* the place behind it is its own */
	bool returns;		      /* out of the compiled method, without any other place */
};

static uint32_t scope_of(const struct hotspot_pc_desc *places, size_t count, size_t at)
{
	return at < count && places[at].scope > 0 ? (uint32_t)places[at].scope : 0;
}

static size_t place_at(const struct hotspot_pc_desc *places, size_t count, uint32_t distance)
{
	return partition_point(places, count, p, p->pc_offset < (int64_t)distance);
}

/* A loop that has a place of its own goes on there, and one that has none ends at the next. */
static void look_ahead(struct target_memory *memory, const struct hotspot_blob *blob,
		       const struct hotspot_pc_desc *places, size_t count, size_t at,
		       uint32_t distance, struct around *around)
{
	uint64_t size = blob->code_end - blob->code;
	uint64_t next = at < count && places[at].pc_offset >= 0 ? (uint64_t)places[at].pc_offset
								: 0;
	uint32_t target = 0;
	size_t there;

	switch (find_ahead(memory, blob, distance, (uint32_t)min_u64(next, size), &target)) {
	case AHEAD_ON:
		break;
	case AHEAD_AT:
		there = place_at(places, count, target);
		around->behind = scope_of(places, count, there);
		around->behind_at = there < count ? places[there].pc_offset : 0;
		break;
	case AHEAD_LOOPS:
		there = place_at(places, count, target);
		if (there < at) {
			around->behind = scope_of(places, count, there);
			around->behind_at = places[there].pc_offset;
		}
		around->loops = there >= at;
		break;
	case AHEAD_RETURNS:
		around->returns = true;
		break;
	}
}

static void find_scopes(struct target_memory *memory, const struct hotspot_blob *blob,
			const struct hotspot_debug *d, uint32_t distance, struct around *around)
{
	size_t count = d->place_count, at = place_at(d->places, count, distance);
	int32_t end;

	around->behind = scope_of(d->places, count, at);
	around->before = at ? scope_of(d->places, count, at - 1) : 0;
	around->before_at = around->before ? d->places[at - 1].pc_offset : 0;
	around->behind_at = at < count ? d->places[at].pc_offset : 0;
	end = around->behind_at > around->before_at ? around->behind_at : INT32_MAX;
	around->size = (uint32_t)(min_u64((uint64_t)end, blob->code_end - blob->code) -
				  (uint64_t)around->before_at);
	around->is_described = at < count && d->places[at].pc_offset == (int64_t)distance;
	if (!around->is_described)
		look_ahead(memory, blob, d->places, count, at, distance, around);
}

struct scope_record {
	uint32_t sender, method, index;
};

static int read_scope(const struct hotspot_layout *l, const struct hotspot_debug *d, uint32_t at,
		      struct scope_record *s)
{
	unsigned int excluded = hotspot_excluded(l);
	size_t next = at;

	return hotspot_unsigned5(d->scopes, d->scopes_size, &next, excluded, &s->sender) &&
			       hotspot_unsigned5(d->scopes, d->scopes_size, &next, excluded,
						 &s->method) &&
			       hotspot_unsigned5(d->scopes, d->scopes_size, &next, excluded,
						 &s->index)
		       ? 0
		       : -ENODATA;
}

/* Methods are read one by one, because the length of their list is not published. */
static int read_method(struct target_memory *memory, struct hotspot_debug *d, uint32_t number,
		       uint64_t *method)
{
	struct hotspot_named named = {.number = number};
	int err;

	if (!number || number > UINT16_MAX)
		return -ENODATA;
	for (size_t i = 0; i < d->named.count; i++) {
		if (d->named.data[i].number == number) {
			*method = d->named.data[i].method;
			return 0;
		}
	}
	err = target_memory__word(memory, &named.method, d->methods + 8 * ((uint64_t)number - 1));
	*method = named.method;
	return err ? err : vec_push(&d->named, named);
}

/* A sender's scope is written before those of its callees, so offsets go down. */
static int follow(const struct hotspot_layout *l, struct target_memory *memory,
		  struct hotspot_debug *d, uint32_t at, struct hotspot_chain *chain)
{
	while (at && chain->count < HOTSPOT_SCOPES_MAX) {
		struct hotspot_scope *scope = &chain->scopes[chain->count];
		struct scope_record record;
		int err = read_scope(l, d, at, &record)
				  ?: read_method(memory, d, record.method, &scope->method);

		if (err)
			return err;
		scope->index = (int32_t)record.index - 1;
		chain->count++;
		if (record.sender >= at)
			return -ELOOP;
		at = record.sender;
	}
	chain->is_cut = at != 0;
	return 0;
}

/* How many outermost scopes both have; the calls that led further in have to be the same, too. */
static unsigned int in_common(const struct hotspot_chain *a, const struct hotspot_chain *b)
{
	unsigned int count = 0;

	while (count < a->count && count < b->count) {
		const struct hotspot_scope *x = &a->scopes[a->count - 1 - count];
		const struct hotspot_scope *y = &b->scopes[b->count - 1 - count];

		if (x->method != y->method)
			break;
		count++;
		if (x->index != y->index)
			break;
	}
	return count;
}

/* ---- what may be inlined between two places -------------------------------------------------- */

#define LAST_BYTECODES 2u /* of a callee: a return, and what is made of its result before */

/* What is needed to look at a gap between places. */
struct gap {
	struct hotspot_code *code;
	struct target_memory *memory;
	const struct hotspot_blob *blob;
	struct hotspot_debug *debug;
	const struct around *around;
	uint32_t distance;
};

/* NULL: they cannot be read. *err: -ENOMEM, or as reading fails for good. */
static const struct hotspot_bytecodes *bytecodes_of(const struct gap *g, uint64_t method, int *err)
{
	const struct hotspot_layout *l = g->code->layout;
	struct hotspot_bytecodes b = {.method = method};
	struct hotspot_method m;

	for (size_t i = 0; i < g->debug->bytecodes.count; i++)
		if (g->debug->bytecodes.data[i].method == method)
			return &g->debug->bytecodes.data[i];
	if (!hotspot_method__read(l, g->memory, method, &m) && m.code_size &&
	    (b.code = malloc(m.code_size)) &&
	    !target_memory__read(g->memory, b.code, m.code_size,
				 m.const_method + l->at[HOTSPOT_CONST_METHOD_SIZE]))
		b.size = m.code_size;
	*err = vec_push(&g->debug->bytecodes, b);
	if (*err) {
		free(b.code);
		return NULL;
	}
	g->debug->bytecode_bytes += b.size;
	return &g->debug->bytecodes.data[g->debug->bytecodes.count - 1];
}

enum place_kind {
	PLACE_OTHER, /* a poll */
	PLACE_CALL,  /* behind a call of a method */
	PLACE_TRAP,  /* behind a call that gives the code up, and does not return */
};

static enum place_kind kind_of(const struct gap *g, int32_t place)
{
	uint8_t bytes[CALL_BYTES];
	uint64_t target, address;
	struct hotspot_blob blob;
	int32_t distance;

	if (place < (int32_t)CALL_BYTES ||
	    target_memory__read(g->memory, bytes, sizeof(bytes),
				g->blob->code + (uint32_t)place - CALL_BYTES))
		return PLACE_OTHER;
	if (bytes[0] != 0xe8)
		return is_behind_call(bytes + CALL_BYTES) ? PLACE_CALL : PLACE_OTHER;
	memcpy(&distance, bytes + 1, sizeof(distance));
	target = g->blob->code + (uint64_t)((int64_t)place + distance);
	if (!hotspot_code__find(g->code, g->memory, target, &address) &&
	    !hotspot_code__blob(g->code, g->memory, address, &blob) &&
	    blob.kind == HOTSPOT_UNCOMMON_TRAP)
		return PLACE_TRAP;
	return PLACE_CALL;
}

/* A call of this method, in the same scope, has a place of its own: it is not inlined. */
static bool is_called(const struct gap *g, const struct scope_record *scope, uint32_t index)
{
	const struct hotspot_debug *d = g->debug;

	for (size_t i = 0; i < d->place_count; i++) {
		uint32_t at = scope_of(d->places, d->place_count, i);
		struct scope_record record;

		if (at && !read_scope(g->code->layout, d, at, &record) &&
		    record.index == index + 1 && record.method == scope->method &&
		    record.sender == scope->sender &&
		    kind_of(g, d->places[i].pc_offset) == PLACE_CALL)
			return true;
	}
	return false;
}

#define CODE_EACH 4u /* bytes of code that a bytecode is compiled to, on average at most … */
#define CODE_MORE 16u

/* Is there more code than the method's own bytecodes make? */
static bool has_more(const struct gap *g, const struct hotspot_way *way)
{
	return (g->around->loops && !way->loops) ||
	       g->around->size > way->length * CODE_EACH + CODE_MORE;
}

/* May a method run that is inlined where `method` goes on from one bytecode to another? */
static int can_call(const struct gap *g, uint64_t method, const struct scope_record *scope,
		    struct hotspot_way *way, bool *can)
{
	int err = 0;
	const struct hotspot_bytecodes *b = bytecodes_of(g, method, &err);

	*can = true;
	if (err || !b->code || hotspot_way__find(b->code, b->size, way) || !way->is_there)
		return err;
	for (unsigned int i = 0; i < way->call_count; i++)
		if (i == HOTSPOT_WAY_CALLS || !scope || !is_called(g, scope, way->calls[i])) {
			*can = has_more(g, way);
			return 0;
		}
	*can = false;
	return 0;
}

/* Callees that the place before is in, and the one behind is not: is there more than a return? */
static int may_go_on(const struct gap *g, const struct hotspot_chain *before, unsigned int callees,
		     bool is_done, bool *may)
{
	int err = 0;

	*may = false;
	for (unsigned int i = 0; i < callees && !err && !*may; i++) {
		struct hotspot_way way = {
			.from = before->scopes[i].index, .is_done = i || is_done, .to = -1};

		if (way.from < 0)
			*may = true;
		else
			err = can_call(g, before->scopes[i].method, NULL, &way, may);
		*may |= way.length > LAST_BYTECODES;
	}
	return err;
}

/*
 * The way of the innermost method that both places are in. Code before a place that gives the code
 * up goes on elsewhere if it does not come to that, and code behind one comes from elsewhere.
 */
static struct hotspot_way way_of(const struct gap *g, const struct hotspot_scope *from,
				 const struct hotspot_scope *to, enum place_kind before)
{
	struct hotspot_way way = {.from = from->index, .to = to->index, .is_done = true};

	if (!g->around->before || before == PLACE_TRAP || from->index < 0) {
		way.from = 0;
		way.is_done = false;
	}
	if (g->around->returns || kind_of(g, g->around->behind_at) == PLACE_TRAP || to->index < 0)
		way.to = -1;
	return way;
}

/*
 * Sets chain->sure. The innermost method that both places are in is not sure if it can make a call on
 * the way: nothing describes what is inlined there. Nor if the way leads out of it and in again.
 */
static int compare_with_before(const struct gap *g, const struct hotspot_chain *before,
			       struct hotspot_chain *chain)
{
	enum place_kind kind = g->around->before ? kind_of(g, g->around->before_at) : PLACE_OTHER;
	unsigned int common = in_common(chain, before), callees = before->count - common;
	struct hotspot_way way;
	struct scope_record scope;
	bool doubtful = false, has_scope;
	int err = 0;

	chain->sure = common;
	if (!common || common < chain->count)
		return 0;
	if (kind != PLACE_TRAP)
		err = may_go_on(g, before, callees, kind == PLACE_CALL, &doubtful);
	has_scope = g->around->behind && !g->around->returns &&
		    !read_scope(g->code->layout, g->debug, g->around->behind, &scope);
	way = way_of(g, &before->scopes[callees], &chain->scopes[0], kind);
	if (!err && !doubtful)
		err = can_call(g, chain->scopes[0].method, has_scope ? &scope : NULL, &way,
			       &doubtful);
	chain->sure -= doubtful;
	return err;
}

static int judge_gap(const struct gap *g, struct hotspot_chain *chain)
{
	struct hotspot_chain before = {.count = 1, .scopes[0] = {g->blob->method, -1}};
	int err = 0;

	if (!g->around->before && g->distance <= g->blob->frame_complete)
		return 0; /* before its first bytecode */
	if (g->around->before) {
		before.count = 0;
		err = follow(g->code->layout, g->memory, g->debug, g->around->before, &before);
	}
	return err ? err : compare_with_before(g, &before, chain);
}

static int read_chain(struct hotspot_code *code, struct target_memory *memory,
		      const struct hotspot_blob *blob, struct hotspot_debug *d, uint32_t distance,
		      struct hotspot_chain *chain)
{
	struct around around = {};
	const struct gap gap = {code, memory, blob, d, &around, distance};
	int err = d->places ? 0 : read_debug_data(code->layout, memory, blob, d);

	if (err)
		return err;
	find_scopes(memory, blob, d, distance, &around);
	if (!around.returns)
		err = follow(code->layout, memory, d, around.behind, chain);
	if (!err && !chain->count) {
		chain->scopes[0] = (struct hotspot_scope){.method = blob->method, .index = -1};
		chain->count = 1;
	}
	chain->sure = chain->count;
	if (err || around.is_described || code->layout->describes_all == HOTSPOT_FLAG_ON)
		return err;
	return judge_gap(&gap, chain);
}

int hotspot_chain__read(struct hotspot_code *code, struct target_memory *memory,
			const struct hotspot_blob *blob, struct hotspot_debug *debug,
			uint64_t address, struct hotspot_chain *chain)
{
	const struct hotspot_layout *l = code->layout;
	int err = 0;

	*chain = (struct hotspot_chain){};
	if (!l->can[HOTSPOT_CAN_NAME] || !blob->method ||
	    (blob->kind != HOTSPOT_NMETHOD && blob->kind != HOTSPOT_NATIVE))
		return -ENODATA;
	if (l->can[HOTSPOT_CAN_LINE] && blob->kind == HOTSPOT_NMETHOD)
		err = read_chain(code, memory, blob, debug, address - blob->code + 1, chain);
	if (err)
		hotspot_debug__fini(debug);
	if (err == -EDQUOT || err == -ESRCH || err == -EPERM || err == -ENOMEM)
		return err;
	/* scopes from before an error are kept, as callees of the nmethod's own method */
	chain->is_cut = chain->is_cut || err;
	if (chain->count)
		return 0;
	chain->scopes[0] = (struct hotspot_scope){.method = blob->method, .index = -1};
	chain->count = 1;
	chain->sure = blob->kind == HOTSPOT_NATIVE; /* nothing is inlined in a wrapper */
	return 0;
}
