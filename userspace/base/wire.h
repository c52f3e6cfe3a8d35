/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of a protobuf message, one after the other, without packing or unpacking it: a profile's message has
 * millions of small ones in it, each of which is unpacked when its turn has come.
 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_type { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32 = 5 };

struct wire {
	const uint8_t *start, *at, *end;
	/* of the field: */
	uint32_t number;
	enum wire_type type;
	uint64_t value;	      /* WIRE_VARINT, the fixed ones */
	const uint8_t *bytes; /* WIRE_BYTES: its contents; else the field itself */
	size_t size;
};

static inline struct wire wire_of(const void *message, size_t size)
{
	const uint8_t *bytes = message;

	return (struct wire){.start = bytes, .at = bytes, .end = bytes + size};
}

/* Of a field that is a message, or packed numbers; nothing, if it has no bytes. */
static inline struct wire wire_inside(const struct wire *field)
{
	return wire_of(field->bytes, field->size);
}

static inline bool wire_varint(struct wire *w, uint64_t *value)
{
	uint64_t result = 0;

	for (unsigned int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
		uint8_t byte = *w->at++;

		result |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*value = result;
			return true;
		}
	}
	return false;
}

/* Writes a varint of up to 10 bytes. Returns its size. */
static inline size_t wire_put_varint(uint8_t *out, uint64_t value)
{
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		out[size++] = (uint8_t)value | 0x80;
	out[size++] = (uint8_t)value;
	return size;
}

/* The header of a field of `size` bytes, into at most 16. Returns its own size. */
static inline size_t wire_put_header(uint8_t *out, uint32_t field, size_t size)
{
	size_t used = wire_put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);

	return used + wire_put_varint(out + used, size);
}

static inline bool wire_fixed(struct wire *w, unsigned int size)
{
	if ((size_t)(w->end - w->at) < size)
		return false;
	w->value = 0;
	for (unsigned int i = 0; i < size; i++)
		w->value |= (uint64_t)w->at[i] << (8 * i);
	w->at += size;
	return true;
}

/* 1: a field; 0: the end; -1: no field at w->at, or it is cut off */
static inline int wire_next(struct wire *w)
{
	const uint8_t *begin = w->at;
	uint64_t tag, size;
	bool good = false;

	if (w->at == w->end)
		return 0;
	if (!wire_varint(w, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX / 8) {
		w->at = begin;
		return -1;
	}
	w->number = (uint32_t)(tag >> 3);
	w->type = (enum wire_type)(tag & 7);
	w->bytes = begin;
	w->size = 0;
	if (w->type == WIRE_VARINT)
		good = wire_varint(w, &w->value);
	else if (w->type == WIRE_FIXED64 || w->type == WIRE_FIXED32)
		good = wire_fixed(w, w->type == WIRE_FIXED64 ? 8 : 4);
	else if (w->type == WIRE_BYTES && wire_varint(w, &size) &&
		 size <= (size_t)(w->end - w->at)) {
		w->bytes = w->at;
		w->size = (size_t)size;
		w->at += size;
		good = true;
	}
	if (!good)
		w->at = begin;
	return good ? 1 : -1;
}

/* The fields of pprof's message Profile. */
enum pprof_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE,
	PPROF_MAPPING,
	PPROF_LOCATION,
	PPROF_FUNCTION,
	PPROF_STRING_TABLE,
	PPROF_TIME_NANOS = 9,
	PPROF_DURATION_NANOS,
	PPROF_PERIOD_TYPE,
	PPROF_PERIOD,
};

#endif
