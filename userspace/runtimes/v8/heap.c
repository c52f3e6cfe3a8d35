/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/v8.h"

#include <errno.h>
#include <string.h>

#define PAGE	     4096u
#define ARRAY_LENGTH 8 /* of both kinds, a Smi */
#define ARRAY_DATA   16

/* Types of objects that are followed. The maps of others may be freed, and something else come in their place. */
static bool is_lasting(const struct v8_layout *l, int32_t type)
{
	const int32_t lasting[] = {l->type_sfi,	       l->type_scope_info,
				   l->type_script,     l->type_bytecode_array,
				   l->type_code,       l->type_instruction_stream,
				   l->type_fixed_array};

	if (type < l->first_nonstring)
		return true;
	for (size_t i = 0; i < sizeof(lasting) / sizeof(*lasting); i++) {
		if (lasting[i] == type)
			return true;
	}
	return false;
}

int v8_reader__type(struct v8_reader *r, uint64_t map, int32_t *type)
{
	unsigned int slot = (map >> 3 ^ map >> 9) % V8_MAPS_KNOWN;
	uint16_t read;
	int err;

	if (!v8_is_object(map))
		return -EINVAL;
	if (r->maps[slot].map == map) {
		*type = r->maps[slot].type;
		return 0;
	}
	err = target_memory__u16(r->memory, &read, map - 1 + r->layout->map_type);
	if (err)
		return err;
	if (is_lasting(r->layout, read)) {
		r->maps[slot].map = map;
		r->maps[slot].type = read;
	}
	*type = read;
	return 0;
}

/* As much of an object as there is: the last one of a mapping may end before that. */
static int read_beginning(struct v8_reader *r, struct v8_object *o)
{
	uint64_t address = o->tagged - 1;
	size_t in_page = PAGE - (address & (PAGE - 1));
	int err = target_memory__read(r->memory, o->bytes, sizeof(o->bytes), address);

	o->got = sizeof(o->bytes);
	if (err != -ENODATA || in_page >= sizeof(o->bytes))
		return err;
	o->got = in_page;
	return target_memory__read(r->memory, o->bytes, in_page, address);
}

int v8_object__read(struct v8_reader *r, uint64_t tagged, struct v8_object *o)
{
	int err;

	*o = (struct v8_object){.tagged = tagged, .type = -1};
	if (!v8_is_object(tagged))
		return -EINVAL;
	err = read_beginning(r, o);
	if (err)
		return err;
	err = v8_reader__type(r, v8_object__word(o, 0), &o->type);
	/* a map that is none, or is not there, leaves an object without a type */
	return err == -EINVAL || err == -ENODATA ? 0 : err;
}

uint64_t v8_object__moved_to(const struct v8_object *o)
{
	uint64_t first = v8_object__word(o, 0);

	return first && (first & 3) == 0 ? first + 1 : 0;
}

int v8_array__find(struct v8_reader *r, uint64_t tagged, uint32_t limit, uint64_t *address,
		   uint32_t *count)
{
	uint64_t header[2];
	int err;

	if (!v8_is_object(tagged))
		return -EAGAIN;
	err = target_memory__read(r->memory, header, sizeof(header), tagged - 1);
	if (err)
		return err;
	_Static_assert(ARRAY_LENGTH == sizeof(header[0]) && ARRAY_DATA == sizeof(header), "V8's");
	if (!v8_is_object(header[0]) || !v8_is_smi(header[1]) || v8_smi(header[1]) < 0 ||
	    (uint32_t)v8_smi(header[1]) > limit)
		return -EAGAIN;
	*address = tagged - 1 + ARRAY_DATA;
	*count = v8_smi(header[1]);
	return 0;
}
