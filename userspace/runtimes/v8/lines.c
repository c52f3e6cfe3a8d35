/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/lines.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "runtimes/answers.h"
#include "runtimes/v8/function.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/script.h"

#define SFI_DATA	   8
#define INTERPRETER_ARRAY  8 /* InterpreterData: its BytecodeArray */
#define LINKS_TO_BYTECODES 3 /* Code, InterpreterData, BytecodeArray */

int v8_lines__follow_bytecodes(struct v8_reader *r, uint64_t word, uint64_t *bytecode_array)
{
	const struct v8_layout *l = r->layout;

	*bytecode_array = 0;
	for (unsigned int i = 0; i < LINKS_TO_BYTECODES; i++) {
		struct v8_object o;
		int err = v8_object__read(r, word, &o);

		if (err)
			return err == -EINVAL ? 0 : err;
		if (o.type == l->type_bytecode_array) {
			*bytecode_array = word;
			return 0;
		}
		if (l->type_interpreter_data > 0 && o.type == l->type_interpreter_data)
			word = v8_object__word(&o, INTERPRETER_ARRAY);
		else if (l->has_code && o.type == l->type_code)
			word = v8_object__word(&o, l->code_deopt);
		else
			return 0;
	}
	return 0;
}

int v8_lines__bytecode_array(struct v8_reader *r, uint64_t sfi, uint64_t *bytecode_array)
{
	uint64_t data;

	*bytecode_array = 0;
	if (!v8_is_object(sfi))
		return -ENODATA;
	return target_memory__word(r->memory, &data, sfi - 1 + SFI_DATA)
		       ?: v8_lines__follow_bytecodes(r, data, bytecode_array);
}

int v8_lines__table(struct v8_reader *r, uint64_t word, unsigned char **bytes, uint32_t *size)
{
	_cleanup_free_ unsigned char *read = NULL;
	uint64_t address;
	struct v8_object o;
	uint32_t count;
	int err = v8_object__read(r, word, &o);

	if (err == -EINVAL || (!err && o.type < r->layout->first_nonstring))
		return -ENODATA;
	if (err)
		return err;
	err = v8_array__find(r, word, V8_POSITIONS_MAX, &address, &count);
	if (err)
		return err == -EAGAIN ? -ENODATA
				      : err; /* undefined, or the mark of a failed attempt */
	read = malloc(count + 1);
	if (!read)
		return -ENOMEM;
	err = target_memory__read(r->memory, read, count, address);
	if (err)
		return err;
	*bytes = steal_ptr(read);
	*size = count;
	return 0;
}

static int add_rows(struct v8_reader *r, struct v8_script *script, struct v8_positions *p,
		    struct managed_function *f)
{
	while (f->rows.count < MANAGED_ROWS_MAX && v8_positions__next(p)) {
		struct managed_row row = {.offset = p->code < 0 ? 0 : p->code};
		int err = v8_script__place(r, script, v8_position__source(p->word), &row.line,
					   &row.column)
				  ?: vec_push(&f->rows, row);

		if (err)
			return err;
	}
	return 0;
}

static int read_rows(struct v8_reader *r, uint64_t sfi, uint64_t array, struct managed_function *f)
{
	const struct v8_layout *l = r->layout;
	_cleanup_free_ unsigned char *bytes = NULL;
	struct v8_positions positions;
	struct v8_script *script;
	struct v8_object o;
	uint32_t size;
	int err = v8_object__read(r, array, &o)
			  ?: v8_lines__table(r, v8_object__word(&o, l->bytecode_positions), &bytes,
					     &size);

	if (err)
		return err == -ENODATA || err == -EINVAL ? 0 : err;
	err = v8_function__script(r, sfi, &script);
	if (err || !script)
		return err;
	v8_positions__init(&positions, l->encoding, bytes, size);
	return add_rows(r, script, &positions, f);
}

int v8_lines__read(struct v8_reader *r, uint64_t sfi, struct managed_function *f)
{
	uint64_t array;
	int err;

	f->rows.count = 0;
	if (r->layout->encoding == V8_POSITIONS_UNKNOWN)
		return -ENOTSUP;
	err = v8_lines__bytecode_array(r, sfi, &array);
	if (!err && array)
		err = read_rows(r, sfi, array, f);
	if (err)
		f->rows.count = 0;
	return err;
}

int v8_lines__place(struct v8_reader *r, uint64_t sfi, int32_t position, uint32_t *line,
		    uint32_t *column)
{
	struct v8_script *script;
	int err = v8_function__script(r, sfi, &script);

	*line = *column = 0;
	if (err || !script || position < 0)
		return err;
	return v8_script__place(r, script, position, line, column);
}

/* ---- tables of positions --------------------------------------------------------------------- */

#define NOWHERE (-1)

static int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ -(value & 1));
}

void v8_positions__init(struct v8_positions *p, enum v8_position_encoding encoding,
			const void *bytes, size_t size)
{
	*p = (struct v8_positions){.bytes = {.at = bytes, .end = (const uint8_t *)bytes + size},
				   .encoding = encoding,
				   .code = -1};
}

static int64_t code_delta(const struct v8_positions *p, uint64_t value)
{
	int64_t delta;

	if (p->encoding == V8_POSITIONS_BREAKABLE)
		return value >> 2;
	delta = unzigzag(value);
	return delta < 0 ? -(delta + 1) : delta;
}

bool v8_positions__next(struct v8_positions *p)
{
	uint64_t code, source;
	int64_t delta;

	if (p->encoding == V8_POSITIONS_UNKNOWN || !wire_varint(&p->bytes, &code) ||
	    !wire_varint(&p->bytes, &source))
		return false;
	delta = code_delta(p, code);
	if (delta > UINT32_MAX || p->code + delta > UINT32_MAX)
		return false;
	p->code += delta;
	p->word = (uint64_t)p->word + (uint64_t)unzigzag(source);
	return true;
}

int32_t v8_position__source(uint64_t word)
{
	return (int32_t)(word >> 1 & 0x3fffffff) + NOWHERE;
}

uint32_t v8_position__inlining(uint64_t word)
{
	return word >> 31 & 0xffff;
}
