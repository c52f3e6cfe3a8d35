/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of a Go program and how deep the stack is in them.
 *
 * A function's record refers to tables that give a value to each of its instructions: the depth of the stack, the
 * file, the line. Such a table is a sequence of pairs of variable-length integers, a step of the value (zigzag) and
 * one of the pc, and ends with a zero step of the value; the value begins at -1. A step of the pc by 0 is treated as
 * damage, so no walk takes more steps than its function has bytes, and the walks of all functions together no more
 * than the text has.
 *
 * The form: runtime/symtab.go and cmd/link/internal/ld/pcln.go of Go's sources.
 */
#include "elf/gopclntab.h"

#include <errno.h>

#include "base/minmax.h"
#include "base/order.h"
#include "elf/gopclntab_private.h"

#define MAX_NAME	 (16 << 10)
#define MAX_VARINT_BYTES 5
#define FLAG_TOP_FRAME	 1
#define FLAG_SP_WRITE	 2

/* Fields of a record that are at the same place in all versions. */
enum {
	RECORD_START = 0,
	RECORD_NAME = 4,
	RECORD_DEPTHS = 16,
	RECORD_FILES = 20,
	RECORD_LINES = 24,
	RECORD_VALUE_TABLES = 28,
	RECORD_UNIT = 32,
	RECORD_START_LINE = 36, /* Go 1.20 */
};

/* From the end of a record's fixed part back. */
enum { TAIL_SIZE = 4, TAIL_ID = 0, TAIL_FLAGS = 1, TAIL_DATA_TABLES = 3 };

size_t gopclntab__count(const struct gopclntab *t)
{
	return t->count;
}

/* Of function number `number`; if that is the count: the end of the last one. */
static uint64_t start_of(const struct gopclntab *t, size_t number)
{
	return t->text + go_load32(t->functions.data + number * 8);
}

const char *go_string(struct go_bytes bytes, uint32_t offset)
{
	size_t left;

	if (offset >= bytes.size)
		return NULL;
	left = bytes.size - offset;
	if (!memchr(bytes.data + offset, '\0', min_u64(left, MAX_NAME)))
		return NULL;
	return (const char *)bytes.data + offset;
}

int gopclntab__record(const struct gopclntab *t, size_t number, struct go_record *record)
{
	uint32_t offset = go_load32(t->functions.data + number * 8 + 4);
	size_t fixed = RECORD_START_LINE + (t->go_120 ? 4 : 0) + TAIL_SIZE, tables;
	const unsigned char *data, *tail;

	if (offset > t->functions.size || t->functions.size - offset < fixed)
		return -EBADMSG;
	data = t->functions.data + offset;
	tail = data + fixed - TAIL_SIZE;
	*record = (struct go_record){
		.start = start_of(t, number),
		.end = start_of(t, number + 1),
		.name = go_load32(data + RECORD_NAME),
		.depths = go_load32(data + RECORD_DEPTHS),
		.file_numbers = go_load32(data + RECORD_FILES),
		.lines = go_load32(data + RECORD_LINES),
		.value_tables = go_load32(data + RECORD_VALUE_TABLES),
		.unit = go_load32(data + RECORD_UNIT),
		.start_line = t->go_120 ? (int32_t)go_load32(data + RECORD_START_LINE) : 0,
		.id = tail[TAIL_ID],
		.flags = tail[TAIL_FLAGS],
		.data_tables = tail[TAIL_DATA_TABLES],
		.tables = offset + fixed,
	};
	tables = (t->functions.size - record->tables) / sizeof(uint32_t);
	if (t->text + go_load32(data + RECORD_START) != record->start ||
	    record->value_tables > tables || record->data_tables > tables - record->value_tables)
		return -EBADMSG;
	return 0;
}

int gopclntab__function(const struct gopclntab *t, size_t number, struct go_function *function)
{
	struct go_record record;
	const char *name;

	if (number >= t->count || gopclntab__record(t, number, &record))
		return -EBADMSG;
	name = go_string(t->names, record.name);
	*function = (struct go_function){
		.start = record.start,
		.end = record.end,
		.name = name ? name : "",
		.is_top = record.flags & FLAG_TOP_FRAME,
		.writes_sp = record.flags & FLAG_SP_WRITE,
		.id = record.id,
	};
	return 0;
}

int gopclntab__find(const struct gopclntab *t, uint64_t address, size_t *number)
{
	if (address < start_of(t, 0) || address >= start_of(t, t->count))
		return -ENOENT;
	/* the first is not read again: the number is in range, whatever the order of the rest */
	*number = partition_index(t->count - 1, i, start_of(t, i + 1) <= address);
	return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

void go_values__init(struct go_values *v, const struct gopclntab *t, const struct go_record *record,
		     uint32_t offset)
{
	bool there = offset && offset < t->values.size;

	*v = (struct go_values){
		.at = there ? t->values.data + offset : NULL,
		.limit = there ? t->values.data + t->values.size : NULL,
		.start = record->start,
		.end = record->start,
		.function_end = record->end,
		.value = -1,
		.first = true,
	};
}

static int read_varint(struct go_values *v, uint32_t *value)
{
	*value = 0;
	for (unsigned int i = 0; i < MAX_VARINT_BYTES && v->at < v->limit; i++) {
		unsigned char byte = *v->at++;

		*value |= (uint32_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return 0;
	}
	return -EBADMSG;
}

int go_values__next(struct go_values *v)
{
	uint32_t step, length;

	if (!v->at || v->end >= v->function_end)
		return 0;
	if (read_varint(v, &step))
		return -EBADMSG;
	if (!step && !v->first)
		return 0;
	if (read_varint(v, &length) || !length)
		return -EBADMSG;
	v->first = false;
	v->value = (int32_t)((uint32_t)v->value + ((step >> 1) ^ -(step & 1)));
	v->start = v->end;
	v->end = v->start + min_u64(length, v->function_end - v->start);
	return 1;
}

int gopclntab__each_depth(const struct gopclntab *t, size_t number, go_depth_fn visit,
			  void *context)
{
	struct go_record record;
	struct go_values values;
	int more, err;

	if (number >= t->count || gopclntab__record(t, number, &record))
		return -EBADMSG;
	go_values__init(&values, t, &record, record.depths);
	while ((more = go_values__next(&values)) > 0) {
		err = visit(context, values.start, values.end, values.value);
		if (err)
			return err;
	}
	return more;
}
