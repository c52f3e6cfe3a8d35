/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/between.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "runtimes/hotspot/bytecodes.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/loops.h"
#include "runtimes/hotspot/names.h"
#include "runtimes/hotspot/scopes.h"

static uint32_t scope_of(const struct hotspot_debug *d, size_t at)
{
	return at < d->place_count && d->places[at].scope > 0 ? (uint32_t)d->places[at].scope : 0;
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

/* What is needed to look at a gap between places. */
struct gap {
	struct hotspot_code *code;
	struct target_memory *memory;
	const struct hotspot_blob *blob;
	struct hotspot_debug *debug;
	const struct hotspot_around *around;
};

/* A method that has none, or whose bytecodes cannot be read: no `code`. NULL, *err: -ENOMEM. */
static const struct hotspot_bytecodes *bytecodes_of(const struct gap *g, uint64_t method, int *err)
{
	const struct hotspot_layout *l = g->code->layout;
	struct hotspot_bytecodes b = {.method = method};
	struct hotspot_method m;
	uint16_t intrinsic = 0;

	for (size_t i = 0; i < g->debug->bytecodes.count; i++)
		if (g->debug->bytecodes.data[i].method == method)
			return &g->debug->bytecodes.data[i];
	if (!hotspot_method__read(l, g->memory, method, &m)) {
		b.pool = m.pool;
		b.is_native = !m.code_size;
		b.code = m.code_size ? malloc(m.code_size) : NULL;
		if (b.code &&
		    !target_memory__read(g->memory, b.code, m.code_size,
					 m.const_method + l->at[HOTSPOT_CONST_METHOD_SIZE]))
			b.size = m.code_size;
		if (l->known[HOTSPOT_INTRINSIC] &&
		    !target_memory__u16(g->memory, &intrinsic, method + l->at[HOTSPOT_INTRINSIC]))
			b.is_intrinsic = intrinsic != 0;
	}
	*err = vec_push(&g->debug->bytecodes, b);
	if (*err) {
		free(b.code);
		return NULL;
	}
	g->debug->bytecode_bytes += b.size;
	return &g->debug->bytecodes.data[g->debug->bytecodes.count - 1];
}

/* A call of this method, in the same scope, has a place of its own: it is not inlined. */
static bool is_called(const struct gap *g, const struct hotspot_scope_record *scope, uint32_t index)
{
	const struct hotspot_debug *d = g->debug;

	for (size_t i = 0; i < d->place_count; i++) {
		uint32_t at = d->places[i].flags == HOTSPOT_PLACE_CALL ? scope_of(d, i) : 0;
		struct hotspot_scope_record record;

		if (at && !hotspot_scope__read(g->code->layout, d, at, &record) &&
		    record.index == index + 1 && record.method == scope->method &&
		    record.sender == scope->sender)
			return true;
	}
	return false;
}

/* The method that a call leads to; 0: not known, or not always the same. */
static uint64_t find_callee(const struct gap *g, uint64_t method, uint32_t at)
{
	const struct hotspot_layout *l = g->code->layout;
	int err = 0;
	const struct hotspot_bytecodes *b = bytecodes_of(g, method, &err);
	uint64_t cache, entry, callee;
	uint16_t index;
	enum hotspot_call call;

	if (err || !l->known[HOTSPOT_POOL_CACHE])
		return 0;
	call = hotspot_call__read(b->code, b->size, at, &index);
	if (call == HOTSPOT_CALL_OTHER ||
	    target_memory__word(g->memory, &cache, b->pool + l->at[HOTSPOT_POOL_CACHE]))
		return 0;
	entry = cache + l->at[HOTSPOT_CACHE_SIZE] + index * l->at[HOTSPOT_ENTRY_SIZE] +
		l->at[call == HOTSPOT_CALL_FINAL ? HOTSPOT_ENTRY_FINAL : HOTSPOT_ENTRY_METHOD];
	if (l->known[HOTSPOT_CACHE_METHODS]) {
		if (target_memory__word(g->memory, &entry, cache + l->at[HOTSPOT_CACHE_METHODS]))
			return 0;
		entry += l->at[HOTSPOT_METHOD_ENTRIES] + index * l->at[HOTSPOT_METHOD_ENTRY_SIZE];
	}
	if (target_memory__word(g->memory, &callee, entry))
		return 0;
	return target_is_pointer(callee) ? callee : 0; /* a virtual one has an index */
}

/*
 * May a method run that this call leads to, without a place? The compiler has code of its own for
 * intrinsics, which is the caller's then; an empty method, as Object's constructor, makes none.
 */
static bool may_inline(const struct gap *g, uint64_t method, uint32_t at,
		       const struct hotspot_scope_record *scope)
{
	const struct hotspot_bytecodes *b;
	uint64_t callee;
	int err = 0;

	if (scope && is_called(g, scope, at))
		return false;
	callee = find_callee(g, method, at);
	b = callee ? bytecodes_of(g, callee, &err) : NULL;
	return !b || !(b->is_native || b->is_intrinsic || b->size == 1);
}

#define CODE_EACH 2u /* bytes of code that a bytecode is compiled to: few need more … */
#define CODE_MORE 8u

/* Is there more code than the method's own bytecodes make, none of which loop? */
static bool has_more(const struct gap *g, const struct hotspot_way *way)
{
	return g->around->loops || g->around->size > way->length * CODE_EACH + CODE_MORE;
}

/*
 * May another method's code be where `method` goes on from one bytecode to another? Without a call on
 * the way too, because the compiler moves code, but a loop may have been unrolled.
 */
static int can_call(const struct gap *g, uint64_t method, const struct hotspot_scope_record *scope,
		    struct hotspot_way *way, bool *can)
{
	int err = 0;
	const struct hotspot_bytecodes *b = bytecodes_of(g, method, &err);
	bool calls = false;

	*can = true;
	if (err || !b->code || hotspot_way__find(b->code, b->size, way) || !way->is_there)
		return err;
	for (unsigned int i = 0; i < way->call_count && !calls; i++)
		calls = i == HOTSPOT_WAY_CALLS || may_inline(g, method, way->calls[i], scope);
	way->has_inlined = calls;
	*can = calls || (!way->loops && has_more(g, way));
	return 0;
}

/* The scopes of a place, or of the compiled method where it begins and returns. */
struct end {
	struct hotspot_chain chain;
	struct hotspot_scope_record innermost; /* method 0: none */
	enum hotspot_place_kind kind;
};

static int read_end(const struct gap *g, int32_t place, struct end *end)
{
	uint32_t scope = place < 0 ? 0 : scope_of(g->debug, (size_t)place);

	end->kind = place < 0 ? HOTSPOT_PLACE_OTHER
			      : (enum hotspot_place_kind)g->debug->places[place].flags;
	end->innermost = (struct hotspot_scope_record){};
	return hotspot_place__read(g->code->layout, g->memory, g->blob, g->debug, place,
				   &end->chain)
		       ?: (scope ? hotspot_scope__read(g->code->layout, g->debug, scope,
						       &end->innermost)
				 : 0);
}

static bool is_check(enum hotspot_place_kind kind)
{
	return kind == HOTSPOT_PLACE_CHECK || kind == HOTSPOT_PLACE_LOAD;
}

/* The way of the innermost method that both are in. A check comes before its bytecode. */
static struct hotspot_way way_of(const struct end *before, unsigned int callees,
				 const struct hotspot_scope *to)
{
	int32_t from = before->chain.scopes[callees].index;

	return (struct hotspot_way){.from = from < 0 ? 0 : from,
				    .to = to->index < 0 ? -1 : to->index,
				    .is_done = callees || (from >= 0 && !is_check(before->kind))};
}

/* May another method run between these two than the `common`th, the innermost of both? */
static int look_between(const struct gap *g, const struct end *before, const struct end *behind,
			unsigned int common, bool *doubtful)
{
	const struct hotspot_scope *to = &behind->chain.scopes[0];
	struct hotspot_way way = way_of(before, 0, to);

	*doubtful = before->chain.count > common || behind->chain.count > common;
	if (*doubtful)
		return 0;
	return can_call(g, to->method, behind->innermost.method ? &behind->innermost : NULL, &way,
			doubtful);
}

/* ---- whose loop it is ------------------------------------------------------------------------ */

#define CALLEES_MAX 32u
#define DEPTH_MAX   8u

/* Loops in the bytecodes between places; the methods that have them, with their callers. */
struct owners {
	struct hotspot_chain chain; /* the last one */
	unsigned int count;	    /* different ones in a row */
	unsigned int callees;	    /* that were looked at */
	bool calls;		    /* a loop calls what may be inlined */
	bool is_unknown;	    /* there may be others */
};

static void add_owner(struct owners *o, const struct hotspot_chain *chain)
{
	bool is_same = o->count && o->chain.count == chain->count;

	for (unsigned int i = 0; is_same && i < chain->count; i++)
		is_same = o->chain.scopes[i].method == chain->scopes[i].method;
	if (is_same)
		return;
	o->chain = *chain;
	o->count++;
}

/* Calls on a way; those that have a place of their own are not inlined. */
struct calls {
	unsigned int count;
	bool is_inlined[HOTSPOT_WAY_CALLS];
};

static void find_inlined(const struct gap *g, const struct hotspot_scope_record *scope,
			 const struct hotspot_way *way, struct calls *calls)
{
	calls->count = min_u64(way->call_count, HOTSPOT_WAY_CALLS);
	for (unsigned int i = 0; i < calls->count; i++)
		calls->is_inlined[i] = !scope || !is_called(g, scope, way->calls[i]);
}

/* A loop with a place in it is not the one that is looked for. */
static void add_own_loops(const struct hotspot_way *way, const struct calls *calls,
			  struct hotspot_chain *chain, struct owners *o)
{
	for (unsigned int k = 0; k < way->loop_count && k < HOTSPOT_WAY_LOOPS; k++) {
		bool has_place = false, has_call = false;

		for (unsigned int i = 0; i < calls->count; i++) {
			bool is_in = way->calls[i] >= way->loop[k].first &&
				     way->calls[i] <= way->loop[k].last;

			has_place |= is_in && !calls->is_inlined[i];
			has_call |= is_in && calls->is_inlined[i];
		}
		if (has_place)
			continue;
		chain->scopes[0].index = (int32_t)way->loop[k].first;
		add_owner(o, chain);
		o->calls |= has_call;
	}
}

static void enter(struct hotspot_chain *chain, uint32_t call, uint64_t callee)
{
	chain->scopes[0].index = (int32_t)call;
	memmove(chain->scopes + 1, chain->scopes, chain->count * sizeof(chain->scopes[0]));
	chain->scopes[0] = (struct hotspot_scope){.method = callee};
	chain->count++;
}

static void leave(struct hotspot_chain *chain)
{
	chain->count--;
	memmove(chain->scopes, chain->scopes + 1, chain->count * sizeof(chain->scopes[0]));
}

/*
 * The loops of the chain's innermost method on a way, and of all that is inlined there. The compiler
 * has code of its own for intrinsics.
 */
static int add_loops(const struct gap *g, struct hotspot_chain *chain,
		     const struct hotspot_scope_record *scope, struct hotspot_way way,
		     unsigned int depth, struct owners *o)
{
	int err = 0;
	const struct hotspot_bytecodes *b = bytecodes_of(g, chain->scopes[0].method, &err);
	struct calls calls;

	if (err || b->is_native)
		return err;
	if ((depth && b->is_intrinsic) || !b->code || hotspot_way__find(b->code, b->size, &way)) {
		o->is_unknown = true;
		return 0;
	}
	if (!way.is_there)
		return 0;
	find_inlined(g, scope, &way, &calls);
	add_own_loops(&way, &calls, chain, o);
	o->is_unknown |= way.call_count > calls.count || way.loop_count > HOTSPOT_WAY_LOOPS;
	for (unsigned int i = 0; i < calls.count && !err && !o->is_unknown; i++) {
		struct hotspot_way inner = {.to = -1};
		uint64_t callee = calls.is_inlined[i]
					  ? find_callee(g, chain->scopes[0].method, way.calls[i])
					  : 0;

		if (!calls.is_inlined[i])
			continue;
		if (!callee || depth == DEPTH_MAX || ++o->callees > CALLEES_MAX ||
		    chain->count == HOTSPOT_SCOPES_MAX) {
			o->is_unknown = true;
			break;
		}
		enter(chain, way.calls[i], callee);
		err = add_loops(g, chain, NULL, inner, depth + 1, o);
		leave(chain);
	}
	return err;
}

/* The same for the `inner`th scope of a place. */
static int add_loops_of(const struct gap *g, const struct end *end, unsigned int inner,
			struct hotspot_way way, struct owners *o)
{
	struct hotspot_chain chain = {.count = end->chain.count - inner};
	bool has_scope = !inner && end->innermost.method;

	memcpy(chain.scopes, end->chain.scopes + inner, chain.count * sizeof(chain.scopes[0]));
	return add_loops(g, &chain, has_scope ? &end->innermost : NULL, way, 0, o);
}

static int add_loops_between(const struct gap *g, const struct end *before,
			     const struct end *behind, struct owners *o)
{
	unsigned int common = in_common(&behind->chain, &before->chain);
	unsigned int callees = before->chain.count - common, inner = behind->chain.count - common;
	int err = 0;

	if (!common) {
		o->is_unknown = true;
		return 0;
	}
	for (unsigned int i = 0; i < callees && !err; i++) {
		int32_t from = before->chain.scopes[i].index;
		struct hotspot_way way = {.from = from < 0 ? 0 : from, .to = -1};

		way.is_done = i || (from >= 0 && before->kind == HOTSPOT_PLACE_CALL);
		way.is_place = i || (from >= 0 && !is_check(before->kind));
		err = add_loops_of(g, before, i, way, o);
	}
	for (unsigned int i = 0; i < inner && !err; i++) {
		int32_t to = behind->chain.scopes[i].index;

		err = add_loops_of(g, behind, i, (struct hotspot_way){.to = to < 0 ? -1 : to}, o);
	}
	return err ? err
		   : add_loops_of(g, behind, inner,
				  way_of(before, callees, &behind->chain.scopes[inner]), o);
}

/* ---- code of one method ---------------------------------------------------------------------- */

/* Has the code no other method's: no place is in one, and no call may be inlined? */
static int find_alone(const struct gap *g, enum hotspot_flag *is_alone)
{
	struct hotspot_scope_record own = {}, record;
	struct hotspot_way way = {.to = -1};
	bool may = false;
	int err = 0;

	*is_alone = HOTSPOT_FLAG_OFF;
	for (size_t i = 0; i < g->debug->place_count; i++) {
		uint32_t scope = scope_of(g->debug, i);

		if (!scope)
			continue;
		if (hotspot_scope__read(g->code->layout, g->debug, scope, &record) || record.sender)
			return 0;
		own = record;
	}
	err = can_call(g, g->blob->method, own.method ? &own : NULL, &way, &may);
	if (!err && way.is_there && way.call_count <= HOTSPOT_WAY_CALLS && !way.has_inlined)
		*is_alone = HOTSPOT_FLAG_ON;
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
 * Code that runs in a loop without a place: if there is one method only that loops between the places
 * around, it is this one's.
 */
static int find_owner(const struct gap *g, const struct ends *e, struct hotspot_chain *chain,
		      bool *is_found)
{
	struct owners o = {};
	int err = 0;

	for (unsigned int i = 0; i < e->before_count && !err; i++)
		for (unsigned int k = 0; k < e->behind_count && !err; k++)
			err = add_loops_between(g, &e->before[i], &e->behind[k], &o);
	*is_found = !err && o.count == 1 && !o.is_unknown;
	if (*is_found) {
		*chain = o.chain;
		chain->sure = chain->count - o.calls;
	}
	return err;
}

/* Is the place of `end` next on both sides, in a loop that the address is in and that is its method's? */
static int is_own_loop(const struct gap *g, const struct end *end, int32_t place, bool *is_own,
		       bool *calls)
{
	const struct hotspot_scope *scope = &end->chain.scopes[0];
	struct hotspot_way way = {.from = scope->index, .to = scope->index, .is_done = true};
	const struct hotspot_ends *behind = &g->around->behind;
	bool is_behind = false, can;
	int err;

	*is_own = false;
	for (unsigned int i = 0; i < behind->count; i++)
		is_behind |= behind->place[i] == place;
	if (!is_behind || place < 0 || scope->index < 0 ||
	    !hotspot_loop__has(g->debug, g->around->at, place))
		return 0;
	err = can_call(g, scope->method, end->innermost.method ? &end->innermost : NULL, &way,
		       &can);
	/* a loop without a place in it may be of a callee */
	*is_own = !err && way.is_there && way.loops && !(can && g->around->loops);
	*calls = can;
	return err;
}

/* Code in the innermost loop around a place: what else is next to it lies outside of the loop. */
static int find_own_loop(const struct gap *g, const struct ends *e, struct hotspot_chain *chain,
			 bool *is_found)
{
	bool calls = false;
	int err = 0;

	for (unsigned int i = 0; i < g->around->before.count && !err && !*is_found; i++) {
		err = is_own_loop(g, &e->before[i], g->around->before.place[i], is_found, &calls);
		if (*is_found) {
			*chain = e->before[i].chain;
			chain->sure = chain->count - calls;
		}
	}
	return err;
}

/*
 * Between two places of one kind at one bytecode, with the same callers, code may have gone round a
 * loop of one of these: the innermost that loops round its call is not sure, nor is what it calls.
 */
static int look_around(const struct gap *g, const struct end *before, const struct end *behind,
		       unsigned int *sure)
{
	const struct hotspot_chain *c = &before->chain;
	int err = 0;

	if (before->kind != behind->kind || c->count != behind->chain.count ||
	    in_common(c, &behind->chain) < c->count ||
	    c->scopes[0].index != behind->chain.scopes[0].index)
		return 0;
	for (unsigned int i = 1; i < c->count && !err; i++) {
		const struct hotspot_bytecodes *b = bytecodes_of(g, c->scopes[i].method, &err);
		int32_t call = c->scopes[i].index;
		struct hotspot_way way = {.from = call, .to = call, .is_done = true};

		if (err || call < 0 || !b->code || hotspot_way__find(b->code, b->size, &way) ||
		    !way.is_there)
			continue;
		*sure = min_u64(*sure, c->count - i - 1);
		break;
	}
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
	bool is_found = false;
	int err = 0;

	if (g->around->loops && !doubtful)
		err = find_owner(g, e, chain, &is_found);
	if (!err && !is_found)
		err = find_own_loop(g, e, chain, &is_found);
	if (err || is_found)
		return err;
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
	if (doubtful && chain->count == 1 && g->debug->is_alone == HOTSPOT_FLAG_UNKNOWN)
		err = find_alone(g, &g->debug->is_alone);
	if (chain->count == 1 && g->debug->is_alone == HOTSPOT_FLAG_ON)
		return err;
	chain->sure -= doubtful;
	for (unsigned int i = 0; i < count && !err && doubtful; i++)
		err = look_around(g, &e->before[i / e->behind_count],
				  &e->behind[i % e->behind_count], &chain->sure);
	return err;
}

int hotspot_between__read(struct hotspot_code *code, struct target_memory *memory,
			  const struct hotspot_blob *blob, struct hotspot_debug *debug,
			  const struct hotspot_around *around, struct hotspot_chain *chain)
{
	const struct gap gap = {code, memory, blob, debug, around};
	_cleanup_free_ struct ends *e = malloc(sizeof(*e));
	int err = !e ? -ENOMEM
		     : read_ends(&gap, &around->behind, e->behind, &e->behind_count)
			       ?: read_ends(&gap, &around->before, e->before, &e->before_count);

	if (e && e->behind_count)
		*chain = e->behind[0].chain;
	return err ? err : judge(&gap, e, chain);
}
