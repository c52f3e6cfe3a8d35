/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/scopes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/order.h"
#include "runtimes/hotspot/between.h"
#include "runtimes/hotspot/flow.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/names.h"

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
	if (d->places_size < DESCRIPTION_SIZE || d->scopes_end < d->scopes)
		return -ENODATA;
	if (d->places_size <= DESCRIPTIONS_MAX && d->scopes_end - d->scopes <= DATA_MAX)
		return 0;
	memory->left = true;
	return -ENODATA;
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
	vec_free_with(&debug->bytecodes, method, free(method->code));
	*debug = (struct hotspot_debug){};
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The first place that is not before `distance`. */
static size_t place_at(const struct hotspot_debug *d, uint32_t distance)
{
	return partition_point(d->places, d->place_count, p, p->pc_offset < (int64_t)distance);
}

int hotspot_scope__read(const struct hotspot_layout *l, const struct hotspot_debug *d, uint32_t at,
			struct hotspot_scope_record *s)
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
		struct hotspot_scope_record record;
		int err = hotspot_scope__read(l, d, at, &record)
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

int hotspot_place__read(const struct hotspot_layout *l, struct target_memory *memory,
			const struct hotspot_blob *blob, struct hotspot_debug *d, int32_t place,
			struct hotspot_chain *chain)
{
	int32_t scope = place >= 0 && (size_t)place < d->place_count ? d->places[place].scope : 0;
	int err = 0;

	*chain = (struct hotspot_chain){};
	if (scope > 0)
		err = follow(l, memory, d, (uint32_t)scope, chain);
	if (!chain->count) {
		chain->scopes[0] = (struct hotspot_scope){blob->method, -1};
		chain->count = 1;
	}
	chain->sure = chain->count;
	return err;
}

static int read_chain(struct hotspot_code *code, struct target_memory *memory,
		      const struct hotspot_blob *blob, struct hotspot_debug *d, uint32_t distance,
		      struct hotspot_chain *chain)
{
	const struct hotspot_layout *l = code->layout;
	int err = d->places ? 0 : read_debug_data(code, memory, blob, d);
	bool is_first = distance <= blob->frame_complete;
	struct hotspot_around around;
	bool is_there, is_load;
	size_t at;

	if (err)
		return err;
	at = place_at(d, distance);
	is_there = at < d->place_count && d->places[at].pc_offset == (int64_t)distance;
	is_load = is_there && d->places[at].flags == HOTSPOT_PLACE_LOAD;
	if (l->describes_all != HOTSPOT_FLAG_ON && !is_first && (!is_there || is_load) &&
	    hotspot_flow__around(d, is_load ? distance : distance - 1, &around))
		return hotspot_between__read(code, memory, blob, d, &around, chain);
	return hotspot_place__read(l, memory, blob, d, is_first ? HOTSPOT_END_OUTSIDE : (int32_t)at,
				   chain);
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
