/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_V8_HEAP_H
#define RUNTIMES_V8_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/target_memory.h"
#include "runtimes/v8/layout.h"

struct v8_scripts;

/*
 * Objects of V8's heap, read as they are. A Smi has a number in its upper half and 0 in its lower
 * one, a pointer to an object is 1 more than its address. Nothing is trusted: an object may be
 * none, may have been moved (its first word then is an address), and may change while it is read.
 * Each link that is followed is checked by the object's type.
 */

#define V8_MAPS_KNOWN	64

#define V8_CHUNKS_KNOWN 512u /* 1 MB each: a power of two */

/*
 * A reader of the heaps of one process; one thread. The layout and the scripts are the caller's;
 * `memory` is the limit of one request, and may be another for each. The types of maps are kept for
 * kinds that are followed, because V8 never changes the memory of these maps.
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
	/* By their low bits: parts of the address space that had heap code, their number + 1. */
	uint64_t code_chunks[V8_CHUNKS_KNOWN];
};

static inline void v8_reader__init(struct v8_reader *r, const struct v8_layout *layout,
				   struct v8_scripts *scripts)
{
	*r = (struct v8_reader){.layout = layout, .scripts = scripts};
}

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
 * 0; -EINVAL: the word is no pointer to an object; or as target_memory__read(). An object without a
 * map is no error: its type is -1.
 */
int v8_object__read(struct v8_reader *r, uint64_t tagged, struct v8_object *o);
static inline uint64_t v8_object__word(const struct v8_object *o, int32_t offset)
{
	return target_number(o->bytes, o->got, (uint64_t)offset, sizeof(uint64_t));
}
static inline uint32_t v8_object__u32(const struct v8_object *o, int32_t offset)
{
	return (uint32_t)target_number(o->bytes, o->got, (uint64_t)offset, sizeof(uint32_t));
}
/* Where the collector has moved it; 0: nowhere. */
uint64_t v8_object__moved_to(const struct v8_object *o);
static inline bool v8_object__is_string(const struct v8_reader *r, const struct v8_object *o)
{
	return o->type >= 0 && o->type < r->layout->first_nonstring;
}

/* The type that a map has. 0, -EINVAL, or as target_memory__read(). */
int v8_reader__type(struct v8_reader *r, uint64_t map, int32_t *type);

/* The elements of an array: bytes of a byte array, words of a fixed one. -EAGAIN: it is none. */
int v8_array__find(struct v8_reader *r, uint64_t tagged, uint32_t limit, uint64_t *address,
		   uint32_t *count);

/*
 * Strings of V8: in one piece (sequential, or outside of the heap), joined of two (cons), part of
 * another (sliced), or a stand-in for another (thin); in bytes of Latin-1 or in units of UTF-16.
 * They change from one into another while the program runs.
 */

/* `count` characters of 1 or 2 (`wide`) bytes; aligned for neither. 0, or what ends it. */
typedef int (*v8_chars_fn)(void *context, const unsigned char *chars, size_t count, bool wide);

/*
 * The first `limit` characters in order, in pieces. 0; -EAGAIN: a part is no string, or too short:
 * it may be changing; -ELOOP: more pieces than a name has; or as target_memory__read().
 */
int v8_string__each(struct v8_reader *r, uint64_t string, uint32_t limit, v8_chars_fn visit,
		    void *context);

/* As sanitized UTF-8, cut at `size`, 4096 at most; NUL is shown as \x00. On failure `to` is "". */
int v8_string__text(struct v8_reader *r, uint64_t string, char *to, size_t size);

#endif
