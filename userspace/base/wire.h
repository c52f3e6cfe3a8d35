/* SPDX-License-Identifier: BSD-2-Clause */
/* Protobuf messages, field by field: a profile's has millions of small ones, never all unpacked. */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"

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

	if (w->at < w->end && *w->at < 0x80) { /* most of them */
		*value = *w->at++;
		return true;
	}
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

typedef VEC(uint64_t) numbers;

/* Has the field its type in `types`, a letter per number: `v` number, `b` bytes, `*` either? */
bool wire_has_type(const struct wire *field, const char *types);
/*
 * Fills a struct of `size` bytes, a 64-bit number for each field from 1 on: its last value or 0.
 * Fields beyond the struct are skipped, beyond `types` unchecked. False: damaged, or a wrong type.
 */
bool wire_numbers(struct wire message, const char *types, void *numbers, size_t size);
/* Appends the numbers of a repeated field, packed or not. 0, -ENOMEM, -EBADMSG. */
int wire_repeated(struct wire message, uint32_t number, numbers *to);

/*
 * Calls `take` with each field of the messages at `path` (field numbers from outside) in a message;
 * field->start is where it begins. 0; -EBADMSG; or what `take` returned to end it.
 */
int wire_each(struct wire message, const uint32_t *path, size_t depth,
	      int (*take)(void *context, const struct wire *field), void *context);

/* The last field of each number below `count`; missing ones are all zero. 0, -EBADMSG. */
int wire_last(struct wire message, struct wire *fields, uint32_t count);

/* ---- writing --------------------------------------------------------------------------------- */

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

/* `struct bytes b = {}; … free(b.data);` */
struct bytes {
	uint8_t *data;
	size_t count, capacity;
	bool failed; /* a field did not fit into memory */
};

static inline void cleanup_bytes(struct bytes *b)
{
	free(b->data);
}

#define _cleanup_bytes_ __attribute__((cleanup(cleanup_bytes)))

/* Appends. 0, -ENOMEM. */
int bytes__add(struct bytes *b, const void *data, size_t size);

/*
 * Append fields of a protobuf message. As in proto3, a number of 0 and an empty text are left out.
 * Without memory they set `failed`, so callers need not check each call.
 */
void bytes__number(struct bytes *b, uint32_t field, uint64_t value);
void bytes__numbers(struct bytes *b, const void *numbers,
		    size_t size); /* of a struct, from field 1 on */
void bytes__text(struct bytes *b, uint32_t field, const char *text);
void bytes__field(struct bytes *b, uint32_t field, const void *data,
		  size_t size);				 /* also of none */
void bytes__varint(struct bytes *b, uint64_t value);	 /* alone: of a packed field */
void bytes__append(struct bytes *b, struct wire fields); /* as they are */
/* The bytes added since b->count was `at` become one field: a message, or packed numbers. */
void bytes__wrap(struct bytes *b, uint32_t field, size_t at);

/* Bytes that `write` writes to a FILE; free *out after errors too. 0, -ENOMEM, or its result. */
int bytes__write(int (*write)(void *context, FILE *out), void *context, struct bytes *out);

/*
 * Compresses a protobuf message by gzip, deterministic. The messages at `path` in it (numbers of
 * fields, from outside) have tables of many rows. *out is new. 0, -ENOMEM.
 */
int bytes__gzip(const struct bytes *in, const uint32_t *path, size_t depth, struct bytes *out);

/* Where tables of another kind begin in a message: gzip codes each better by itself. */

typedef VEC(size_t) sections;

/*
 * Adds the ascending offsets at which another field follows in the messages at `path` (numbers of
 * fields, from outside), unless so near that a code of their own costs more. None for a damaged
 * message. 0, -ENOMEM.
 */
int sections__find(const uint8_t *message, size_t size, const uint32_t *path, size_t depth,
		   sections *found);

/* ---- pprof ----------------------------------------------------------------------------------- */

/* The fields of a profile (proto/pprof.proto). */
enum pprof_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE,
	PPROF_MAPPING,
	PPROF_LOCATION,
	PPROF_FUNCTION,
	PPROF_STRING_TABLE,
	PPROF_DROP_FRAMES,
	PPROF_KEEP_FRAMES,
	PPROF_TIME_NANOS,
	PPROF_DURATION_NANOS,
	PPROF_PERIOD_TYPE,
	PPROF_PERIOD,
	PPROF_COMMENT,
	PPROF_DEFAULT_SAMPLE_TYPE,
};

/* In our own files: the only type of values of weights; comments. */
#define PPROF_WEIGHT		 "weight"
#define PPROF_COMMENT_OF_SAMPLES "sysprof: shares are of samples"
#define PPROF_COMMENT_OF_PART	 "part of: the file that was read: "
#define PPROF_COMMENT_OF_CPU	 "sysprof: CPU time is "

enum pprof_sample_field { PPROF_LOCATION_ID = 1, PPROF_VALUE, PPROF_LABEL };
#define PPROF_LINE 4 /* of a location */

/* The numbers of its messages, for wire_numbers() and bytes__numbers(); texts by string number. */
struct pprof_value_type {
	int64_t type, unit;
};

struct pprof_label {
	int64_t key, text, number, unit;
};

struct pprof_mapping {
	uint64_t id, start, limit, offset;
	int64_t filename, build_id;
	uint64_t has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct pprof_location {
	uint64_t id, mapping, address;
};

struct pprof_line {
	uint64_t function;
	int64_t line, column;
};

struct pprof_function {
	uint64_t id;
	int64_t name, system_name, filename, start_line;
};

#endif
