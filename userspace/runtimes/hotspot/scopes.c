/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which methods are inlined where: an nmethod has a list of places (PcDesc), each with a chain of scopes from the
 * innermost outwards. JDK 23 moved them out of the code heap, into a block of their own.
 */
#include "runtimes/hotspot/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/search.h"
#include "runtimes/hotspot/ahead.h"

#define DESCRIPTION_SIZE 16u
#define DESCRIPTIONS_MAX (1u << 20) /* bytes */
#define SCOPE_SIZE_MAX	 15u	    /* three numbers of five bytes */
#define DATA_MAX	 (16u << 20)

/* PcDesc */
struct pc_desc {
	int32_t pc_offset, scope, object, flags;
};

_Static_assert(sizeof(struct pc_desc) == DESCRIPTION_SIZE, "as HotSpot has them");

struct debug_data {
	uint64_t places, places_size;
	uint64_t scopes, scopes_end;
	uint64_t methods; /* 1-based */
};

static uint32_t u32_at(const struct hotspot_layout *l, const unsigned char *header,
		       enum hotspot_fact fact)
{
	uint32_t number;

	memcpy(&number, header + l->at[fact], sizeof(number));
	return number;
}

static uint64_t u64_at(const struct hotspot_layout *l, const unsigned char *header,
		       enum hotspot_fact fact)
{
	uint64_t number;

	memcpy(&number, header + l->at[fact], sizeof(number));
	return number;
}

static void find_moved(const struct hotspot_layout *l, const unsigned char *header,
		       struct debug_data *d)
{
	uint64_t data = u64_at(l, header, HOTSPOT_IMMUTABLE_DATA);

	d->places = data + u32_at(l, header, HOTSPOT_SCOPES_PCS);
	d->scopes = data + u32_at(l, header, HOTSPOT_SCOPES_DATA);
	d->places_size = d->scopes - d->places;
	d->scopes_end = data + u32_at(l, header, HOTSPOT_IMMUTABLE_SIZE);
	d->methods = u64_at(l, header, HOTSPOT_BLOB_MUTABLE_DATA) +
		     u32_at(l, header, HOTSPOT_BLOB_RELOCATION_SIZE);
}

static void find_in_blob(const struct hotspot_layout *l, const unsigned char *header, uint64_t blob,
			 uint32_t size, struct debug_data *d)
{
	d->places = blob + u32_at(l, header, HOTSPOT_SCOPES_PCS);
	d->places_size = (uint64_t)u32_at(l, header, HOTSPOT_SCOPES_PCS_END) -
			 u32_at(l, header, HOTSPOT_SCOPES_PCS);
	d->scopes = u64_at(l, header, HOTSPOT_SCOPES_DATA);
	d->scopes_end = blob + size;
	d->methods = blob + u32_at(l, header, HOTSPOT_METADATA_OFFSET);
}

static int find_debug_data(const struct hotspot_layout *l, struct target_memory *memory,
			   const struct hotspot_blob *blob, struct debug_data *d)
{
	unsigned char header[HOTSPOT_HEADER_MAX];
	int err = target_memory__read(memory, header, l->header_size, blob->address);

	if (err)
		return err;
	if (l->known[HOTSPOT_IMMUTABLE_DATA])
		find_moved(l, header, d);
	else
		find_in_blob(l, header, blob->address, blob->size, d);
	if (d->places_size > DESCRIPTIONS_MAX || d->places_size < DESCRIPTION_SIZE ||
	    d->scopes_end < d->scopes || d->scopes_end - d->scopes > DATA_MAX)
		return -ENODATA;
	return 0;
}

/* The scopes of the places around an address, in the order in which they are run as far as that is known; 0: none. */
struct around {
	uint32_t behind, before;
	bool is_described; /* the place behind it is its own */
	bool returns;	   /* out of the compiled method, without any other place */
};

static uint32_t scope_of(const struct pc_desc *places, size_t count, size_t at)
{
	return at < count && places[at].scope > 0 ? (uint32_t)places[at].scope : 0;
}

static size_t place_at(const struct pc_desc *places, size_t count, uint32_t distance)
{
	return partition_point(places, count, p, p->pc_offset < (int64_t)distance);
}

/* A loop that has a place of its own goes on there, and one that has none ends at the next. */
static void look_ahead(struct target_memory *memory, const struct hotspot_blob *blob,
		       const struct pc_desc *places, size_t count, size_t at, uint32_t distance,
		       struct around *around)
{
	uint64_t size = blob->code_end - blob->code;
	uint64_t next = at < count && places[at].pc_offset >= 0 ? (uint64_t)places[at].pc_offset
								: 0;
	uint32_t target = 0;
	size_t there;

	switch (hotspot_ahead(memory, blob, distance, (uint32_t)min_u64(next, size), &target)) {
	case HOTSPOT_AHEAD_ON:
		break;
	case HOTSPOT_AHEAD_AT:
		around->behind = scope_of(places, count, place_at(places, count, target));
		break;
	case HOTSPOT_AHEAD_LOOPS:
		there = place_at(places, count, target);
		if (there < at)
			around->behind = scope_of(places, count, there);
		break;
	case HOTSPOT_AHEAD_RETURNS:
		around->returns = true;
		break;
	}
}

static int find_scopes(struct target_memory *memory, const struct hotspot_blob *blob,
		       const struct debug_data *d, uint32_t distance, struct around *around)
{
	size_t count = d->places_size / DESCRIPTION_SIZE, at;
	_cleanup_free_ struct pc_desc *places = malloc(d->places_size);
	int err;

	if (!places)
		return -ENOMEM;
	err = target_memory__read(memory, places, count * DESCRIPTION_SIZE, d->places);
	if (err)
		return err;
	at = place_at(places, count, distance);
	around->behind = scope_of(places, count, at);
	around->before = at ? scope_of(places, count, at - 1) : 0;
	around->is_described = at < count && places[at].pc_offset == (int64_t)distance;
	if (!around->is_described)
		look_ahead(memory, blob, places, count, at, distance, around);
	return 0;
}

struct scope_record {
	uint32_t sender, method, index;
};

static int read_scope(const struct hotspot_layout *l, struct target_memory *memory,
		      const struct debug_data *d, uint32_t at, struct scope_record *s)
{
	unsigned char bytes[SCOPE_SIZE_MAX];
	uint64_t left = d->scopes_end - d->scopes;
	unsigned int excluded = l->major >= 20;
	size_t size, next = 0;
	int err;

	if (at >= left)
		return -ENODATA;
	size = left - at < sizeof(bytes) ? left - at : sizeof(bytes);
	err = target_memory__read(memory, bytes, size, d->scopes + at);
	if (err)
		return err;
	return hotspot_unsigned5(bytes, size, &next, excluded, &s->sender) &&
			       hotspot_unsigned5(bytes, size, &next, excluded, &s->method) &&
			       hotspot_unsigned5(bytes, size, &next, excluded, &s->index)
		       ? 0
		       : -ENODATA;
}

/* A sender's scope has been written before those of what it calls, so that the offsets go down. */
static int follow(const struct hotspot_layout *l, struct target_memory *memory,
		  const struct debug_data *d, uint32_t at, struct hotspot_chain *chain)
{
	while (at && chain->count < HOTSPOT_SCOPES_MAX) {
		struct hotspot_scope *scope = &chain->scopes[chain->count];
		struct scope_record record;
		int err = read_scope(l, memory, d, at, &record);

		if (!err && (!record.method || record.method > UINT16_MAX))
			err = -ENODATA;
		if (!err)
			err = target_memory__word(memory, &scope->method,
						  d->methods + 8 * ((uint64_t)record.method - 1));
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

/* How many of the outermost scopes both have; the calls that led further in have to be the same, too. */
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

/* Where it stands between two places: before the first one it is in the compiled method itself, which is the outermost. */
static int compare_with_before(const struct hotspot_layout *l, struct target_memory *memory,
			       const struct debug_data *d, const struct around *around,
			       struct hotspot_chain *chain)
{
	struct hotspot_chain before = {};
	int err = 0;

	if (around->before == around->behind)
		return 0;
	if (around->before)
		err = follow(l, memory, d, around->before, &before);
	if (err)
		return err;
	chain->sure = around->before ? in_common(chain, &before) : 1;
	return 0;
}

static int read_chain(const struct hotspot_layout *l, struct target_memory *memory,
		      const struct hotspot_blob *blob, uint32_t distance,
		      struct hotspot_chain *chain)
{
	struct around around = {};
	struct debug_data d;
	int err = find_debug_data(l, memory, blob, &d);

	if (!err)
		err = find_scopes(memory, blob, &d, distance, &around);
	if (!err && !around.returns)
		err = follow(l, memory, &d, around.behind, chain);
	chain->sure = chain->count;
	if (err || !chain->count || around.is_described)
		return err;
	return compare_with_before(l, memory, &d, &around, chain);
}

int hotspot_chain__read(const struct hotspot_code *code, struct target_memory *memory,
			const struct hotspot_blob *blob, uint64_t pc, bool is_innermost,
			struct hotspot_chain *chain)
{
	const struct hotspot_layout *l = code->layout;
	int err = 0;

	*chain = (struct hotspot_chain){};
	if (!l->can[HOTSPOT_CAN_NAME] || !blob->method ||
	    (blob->kind != HOTSPOT_NMETHOD && blob->kind != HOTSPOT_NATIVE))
		return -ENODATA;
	if (l->can[HOTSPOT_CAN_LINE] && blob->kind == HOTSPOT_NMETHOD)
		err = read_chain(l, memory, blob, pc - blob->code + is_innermost, chain);
	if (err == -EDQUOT || err == -ESRCH || err == -EPERM || err == -ENOMEM)
		return err;
	/* of what was found before it could not go on, the caller is the nmethod's own method */
	chain->is_cut = chain->is_cut || err;
	if (chain->count)
		return 0;
	chain->scopes[0] = (struct hotspot_scope){.method = blob->method, .index = -1};
	chain->count = chain->sure = 1;
	return 0;
}
