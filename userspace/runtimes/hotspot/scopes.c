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

#define DESCRIPTION_SIZE 16u
#define DESCRIPTIONS_MAX (1u << 20) /* bytes */
#define DATA_MAX	 (4u << 20)

_Static_assert(sizeof(struct hotspot_pc_desc) == DESCRIPTION_SIZE, "as HotSpot has them");

/* Addresses of an nmethod's debug data. */
struct debug_data {
	uint64_t places, places_size;
	uint64_t scopes, scopes_end;
	uint64_t methods; /* 1-based */
	uint64_t null_checks;
};

/* JDK 23 and later. */
static void find_moved(const struct hotspot_object *o, struct debug_data *d)
{
	uint64_t data = hotspot_number(o, HOTSPOT_IMMUTABLE_DATA, 8);

	d->places = data + hotspot_number(o, HOTSPOT_SCOPES_PCS, 4);
	d->scopes = data + hotspot_number(o, HOTSPOT_SCOPES_DATA, 4);
	d->places_size = d->scopes - d->places;
	d->scopes_end = data + hotspot_number(o, HOTSPOT_IMMUTABLE_SIZE, 4);
	d->null_checks = data + hotspot_number(o, HOTSPOT_NULL_CHECKS, 2);
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
	d->null_checks = blob->address + hotspot_number(o, HOTSPOT_NULL_CHECKS, 4);
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

static int read_debug_data(struct hotspot_code *code, struct target_memory *memory,
			   const struct hotspot_blob *blob, struct hotspot_debug *debug)
{
	struct debug_data d;
	int err = find_debug_data(code->layout, memory, blob, &d);

	if (err)
		return err;
	debug->methods = d.methods;
	debug->place_count = d.places_size / DESCRIPTION_SIZE;
	debug->scopes_size = d.scopes_end - d.scopes;
	debug->places = malloc(d.places_size);
	debug->scopes = malloc(debug->scopes_size + 1);
	if (!debug->places || !debug->scopes)
		return -ENOMEM;
	debug->null_checks = d.null_checks;
	err = target_memory__read(memory, debug->places, debug->place_count * DESCRIPTION_SIZE,
				  d.places)
		      ?: target_memory__read(memory, debug->scopes, debug->scopes_size, d.scopes);
	if (err || code->layout->describes_all == HOTSPOT_FLAG_ON)
		return err;
	return hotspot_flow__read(code, memory, blob, debug);
}

void hotspot_debug__fini(struct hotspot_debug *debug)
{
	free(debug->places);
	free(debug->scopes);
	vec_free(&debug->named);
	vec_free(&debug->blocks);
	for (size_t i = 0; i < debug->bytecodes.count; i++)
		free(debug->bytecodes.data[i].code);
	vec_free(&debug->bytecodes);
	*debug = (struct hotspot_debug){};
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint32_t scope_of(const struct hotspot_debug *d, size_t at)
{
	return at < d->place_count && d->places[at].scope > 0 ? (uint32_t)d->places[at].scope : 0;
}

/* The first place that is not before `distance`. */
static size_t place_at(const struct hotspot_debug *d, uint32_t distance)
{
	return partition_point(d->places, d->place_count, p, p->pc_offset < (int64_t)distance);
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
	const struct hotspot_around *around;
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

/* A call of this method, in the same scope, has a place of its own: it is not inlined. */
static bool is_called(const struct gap *g, const struct scope_record *scope, uint32_t index)
{
	const struct hotspot_debug *d = g->debug;

	for (size_t i = 0; i < d->place_count; i++) {
		uint32_t at = d->places[i].flags == HOTSPOT_PLACE_CALL ? scope_of(d, i) : 0;
		struct scope_record record;

		if (at && !read_scope(g->code->layout, d, at, &record) &&
		    record.index == index + 1 && record.method == scope->method &&
		    record.sender == scope->sender)
			return true;
	}
	return false;
}

#define CODE_EACH 2u /* bytes of code that a bytecode is compiled to: few need more … */
#define CODE_MORE 8u

/* Is there more code than the method's own bytecodes make? */
static bool has_more(const struct gap *g, const struct hotspot_way *way)
{
	return (g->around->loops && !way->loops) ||
	       g->around->size > way->length * CODE_EACH + CODE_MORE;
}

/*
 * May another method's code be where `method` goes on from one bytecode to another? Without a call on
 * the way too, because the compiler moves code, but a loop may have been unrolled.
 */
static int can_call(const struct gap *g, uint64_t method, const struct scope_record *scope,
		    struct hotspot_way *way, bool *can)
{
	int err = 0;
	const struct hotspot_bytecodes *b = bytecodes_of(g, method, &err);
	bool calls = false;

	*can = true;
	if (err || !b->code || hotspot_way__find(b->code, b->size, way) || !way->is_there)
		return err;
	for (unsigned int i = 0; i < way->call_count && !calls; i++)
		calls = i == HOTSPOT_WAY_CALLS || !scope || !is_called(g, scope, way->calls[i]);
	*can = (calls || !way->loops) && has_more(g, way);
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

/* The scopes of a place, or of the compiled method where it begins and returns. */
struct end {
	struct hotspot_chain chain;
	struct scope_record innermost; /* method 0: none */
	enum hotspot_place_kind kind;
};

static int read_end(const struct gap *g, int32_t place, struct end *end)
{
	const struct hotspot_layout *l = g->code->layout;
	uint32_t scope = place < 0 ? 0 : scope_of(g->debug, (size_t)place);
	int err = 0;

	*end = (struct end){};
	if (place >= 0)
		end->kind = (enum hotspot_place_kind)g->debug->places[place].flags;
	if (scope)
		err = follow(l, g->memory, g->debug, scope, &end->chain)
			      ?: read_scope(l, g->debug, scope, &end->innermost);
	if (!end->chain.count) {
		end->chain.scopes[0] = (struct hotspot_scope){g->blob->method, -1};
		end->chain.count = 1;
	}
	return err;
}

/* The way of the innermost method that both are in. A check comes before its bytecode. */
static struct hotspot_way way_of(const struct end *before, unsigned int callees,
				 const struct hotspot_scope *to)
{
	int32_t from = before->chain.scopes[callees].index;

	return (struct hotspot_way){.from = from < 0 ? 0 : from,
				    .to = to->index < 0 ? -1 : to->index,
				    .is_done = callees ||
					       (from >= 0 && before->kind != HOTSPOT_PLACE_CHECK)};
}

/* May another method run between these two than the `common`th, which is the innermost of both? */
static int look_between(const struct gap *g, const struct end *before, const struct end *behind,
			unsigned int common, bool *doubtful)
{
	unsigned int callees = before->chain.count - common;
	const struct hotspot_scope *to = &behind->chain.scopes[behind->chain.count - common];
	struct hotspot_way way = way_of(before, callees, to);
	int err;

	*doubtful = behind->chain.count > common;
	if (*doubtful)
		return 0;
	err = may_go_on(g, &before->chain, callees, before->kind == HOTSPOT_PLACE_CALL, doubtful);
	if (!err && !*doubtful)
		err = can_call(g, to->method, behind->innermost.method ? &behind->innermost : NULL,
			       &way, doubtful);
	return err;
}

/* What is known of the places around an address. */
struct ends {
	struct end before[HOTSPOT_ENDS_MAX], behind[HOTSPOT_ENDS_MAX];
	unsigned int before_count, behind_count;
};

static int read_ends(const struct gap *g, const struct hotspot_ends *places, struct end *ends,
		     unsigned int *count)
{
	int err = 0;

	for (*count = 0; *count < places->count && !err; ++*count)
		err = read_end(g, places->place[*count], &ends[*count]);
	if (!*count)
		err = read_end(g, HOTSPOT_END_OUTSIDE, &ends[(*count)++]);
	return err;
}

/*
 * Sets chain->sure. The innermost method that all places are in is not sure if it can make a call on
 * the way: nothing describes what is inlined there. Nor if the way leads out of it and in again.
 */
static int judge(const struct gap *g, const struct ends *e, struct hotspot_chain *chain)
{
	bool doubtful = g->around->before.is_open || g->around->behind.is_open;
	unsigned int count = e->before_count * e->behind_count, common = chain->count;
	int err = 0;

	for (unsigned int i = 0; i < e->behind_count; i++)
		common = min_u64(common, in_common(chain, &e->behind[i].chain));
	for (unsigned int i = 0; i < e->before_count; i++)
		common = min_u64(common, in_common(chain, &e->before[i].chain));
	chain->sure = common;
	if (!common || common < chain->count)
		return 0;
	for (unsigned int i = 0; i < count && !err && !doubtful; i++)
		err = look_between(g, &e->before[i / e->behind_count],
				   &e->behind[i % e->behind_count], common, &doubtful);
	chain->sure -= doubtful;
	return err;
}

static int read_between(const struct gap *g, struct hotspot_chain *chain)
{
	_cleanup_free_ struct ends *e = malloc(sizeof(*e));
	int err = !e ? -ENOMEM
		     : read_ends(g, &g->around->behind, e->behind, &e->behind_count)
			       ?: read_ends(g, &g->around->before, e->before, &e->before_count);

	if (e && e->behind_count)
		*chain = e->behind[0].chain;
	return err ? err : judge(g, e, chain);
}

static int read_chain(struct hotspot_code *code, struct target_memory *memory,
		      const struct hotspot_blob *blob, struct hotspot_debug *d, uint32_t distance,
		      struct hotspot_chain *chain)
{
	struct hotspot_around around = {};
	const struct gap gap = {code, memory, blob, d, &around};
	int err = d->places ? 0 : read_debug_data(code, memory, blob, d);
	bool is_there, is_first = distance <= blob->frame_complete;
	struct end end;
	size_t at;

	if (err)
		return err;
	at = place_at(d, distance);
	is_there = at < d->place_count;
	if (code->layout->describes_all != HOTSPOT_FLAG_ON && !is_first &&
	    !(is_there && d->places[at].pc_offset == (int64_t)distance) &&
	    hotspot_flow__around(d, distance - 1, &around))
		return read_between(&gap, chain);
	err = read_end(&gap, is_there && !is_first ? (int32_t)at : HOTSPOT_END_OUTSIDE, &end);
	*chain = end.chain;
	chain->sure = chain->count;
	return err;
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
