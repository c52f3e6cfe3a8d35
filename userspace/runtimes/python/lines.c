/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry is a byte of which bit 7 is set, kind and length in it, and the operands of the kind behind. Its length is
 * in code units of two bytes; lines are differences.
 */
#include "runtimes/python/lines.h"

#include <stdbool.h>

#define CODE_UNIT 2u
#define CODE_MAX  (1u << 30) /* bytes of one function's bytecode */

enum { KIND_ONE_LINE = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NO_LINE = 15 };

struct reading {
	const uint8_t *at, *end;
	bool damaged;
};

static uint8_t take_byte(struct reading *r)
{
	if (r->at == r->end) {
		r->damaged = true;
		return 0;
	}
	return *r->at++;
}

/* Six bits in a byte, the lowest first; bit 6: there are more. */
static uint32_t take_number(struct reading *r)
{
	uint32_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = take_byte(r);
		if (shift < 32)
			value |= (uint32_t)(byte & 0x3f) << shift;
		shift += 6;
	} while (byte & 0x40 && !r->damaged);
	return value;
}

static int64_t take_difference(struct reading *r)
{
	uint32_t value = take_number(r);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* The difference of the line; columns are skipped. */
static int64_t take_line(struct reading *r, unsigned int kind)
{
	int64_t difference = 0;

	if (kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS) {
		take_byte(r);
		take_byte(r);
		return kind - KIND_ONE_LINE;
	}
	if (kind < KIND_ONE_LINE)
		take_byte(r);
	if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
		difference = take_difference(r);
	for (int i = 0; kind == KIND_LONG && i < 3; i++)
		take_number(r);
	return difference;
}

static int add_row(struct managed_function *f, uint32_t offset, uint32_t line)
{
	if (f->rows.count && f->rows.data[f->rows.count - 1].line == line)
		return 0;
	return vec_push(&f->rows, (struct managed_row){.offset = offset, .line = line});
}

int cpython_lines__read(const uint8_t *table, size_t size, uint32_t firstline,
			struct managed_function *f)
{
	struct reading r = {.at = table, .end = table + size};
	int64_t line = firstline;
	uint32_t offset = 0;
	int err = 0;

	while (!err && r.at < r.end && f->rows.count + 1 < MANAGED_ROWS_MAX && offset < CODE_MAX) {
		uint8_t entry = take_byte(&r);
		unsigned int kind = entry >> 3 & 0xf;

		line += entry & 0x80 ? take_line(&r, kind) : 0;
		if (!(entry & 0x80) || r.damaged)
			break;
		err = add_row(f, offset,
			      kind != KIND_NO_LINE && line > 0 && line <= INT32_MAX ? line : 0);
		offset += CODE_UNIT * ((entry & 7u) + 1);
	}
	return err ? err : add_row(f, offset, 0);
}
