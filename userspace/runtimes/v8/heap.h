/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of V8's heap, read as they are there. Words are as V8 has them: a Smi has a number in its upper half and 0 in its
 * lower one, a pointer to an object is 1 more than its address.
 *
 * Nothing in it is to be trusted: an object may be none, may have been moved (its first word then is an address), and
 * may be changed while it is read. Each link that is followed is checked by the object's type.
 */
#ifndef RUNTIMES_V8_HEAP_H
#define RUNTIMES_V8_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/target_memory.h"
#include "runtimes/v8/layout.h"

#define V8_MAPS_KNOWN 64

struct v8_scripts;

#define V8_CHUNKS_KNOWN 512u /* 1 MB each: a power of two */

/*
 * A reader of the heaps of one process. The layout and the scripts (see script.h) are the caller's; `memory` is
 * the limit of one request, and may be another for each. Maps of the kinds that are followed lie in memory that V8
 * never changes: which types they have is remembered. One thread.
 */
struct v8_reader {
	const struct v8_layout *layout;
	struct target_memory *memory;
	struct v8_scripts *scripts;
	struct {
		uint64_t map;
		uint16_t type;
	} maps[V8_MAPS_KNOWN];
	uint64_t stream_map; /* of InstructionStreams; 0: none was seen */
	/* Parts of the address space that had code of the heap, one more than their number, by its end (code.c) */
	uint64_t code_chunks[V8_CHUNKS_KNOWN];
};

void v8_reader__init(struct v8_reader *r, const struct v8_layout *layout,
		     struct v8_scripts *scripts);

static inline bool v8_is_object(uint64_t word)
{
	return (word & 3) == 1;
}

static inline bool v8_is_smi(uint64_t word)
{
	return (uint32_t)word == 0;
}

static inline int32_t v8_smi(uint64_t word)
{
	return (int32_t)(word >> 32);
}

#define V8_OBJECT_BYTES 128

/* The beginning of an object. */
struct v8_object {
	uint64_t tagged; /* the word by which it was read */
	int32_t type;	 /* of its map; -1: its first word is no map */
	uint16_t got;	 /* bytes; what is behind them reads as 0 */
	unsigned char bytes[V8_OBJECT_BYTES];
};

/*
 * 0; -EINVAL: the word is no pointer to an object; or as target_memory__read(). An object without a map is no error: its
 * type is -1.
 */
int v8_object__read(struct v8_reader *r, uint64_t tagged, struct v8_object *o);
uint64_t v8_object__word(const struct v8_object *o, int32_t offset);
uint32_t v8_object__u32(const struct v8_object *o, int32_t offset);
/* Where the collector has moved it; 0: nowhere. */
uint64_t v8_object__moved_to(const struct v8_object *o);
static inline bool v8_object__is_string(const struct v8_reader *r, const struct v8_object *o)
{
	return o->type >= 0 && o->type < r->layout->first_nonstring;
}

/* The type that a map has. 0, -EINVAL, or as target_memory__read(). */
int v8_reader__type(struct v8_reader *r, uint64_t map, int32_t *type);

/* Where the elements of an array lie, and how many: bytes of a byte array, words of a fixed one. 0, -EAGAIN: none is there. */
int v8_array__find(struct v8_reader *r, uint64_t tagged, uint32_t limit, uint64_t *address,
		   uint32_t *count);

#endif
