/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Baseline code is made bytecode by bytecode, in their order. Its table has the bytes of code of each, behind those of the
 * function's entry. The bytecodes have the positions.
 */
#include "runtimes/v8/code.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "runtimes/v8/bytecodes.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/lines.h"

#define BYTECODES_MAX	(1 << 18) /* bytes of one function */
#define BYTECODE_LENGTH 8	  /* BytecodeArray: its length, a Smi */

/* The bytecodes of an array, which the caller frees, and their table of positions, a word. */
static int read_bytecodes(struct v8_reader *r, uint64_t array, unsigned char **bytes,
			  uint32_t *size, uint64_t *positions)
{
	const struct v8_layout *l = r->layout;
	_cleanup_free_ unsigned char *read = NULL;
	struct v8_object o;
	uint64_t length;
	int err = v8_object__read(r, array, &o);

	if (err)
		return err;
	length = v8_object__word(&o, BYTECODE_LENGTH);
	if (o.type != l->type_bytecode_array || !v8_is_smi(length) || v8_smi(length) <= 0 ||
	    v8_smi(length) > BYTECODES_MAX)
		return -EAGAIN;
	*size = v8_smi(length);
	read = malloc(*size);
	if (!read)
		return -ENOMEM;
	err = target_memory__read(r->memory, read, *size, array - 1 + l->bytecodes);
	if (err)
		return err;
	*positions = v8_object__word(&o, l->bytecode_positions);
	*bytes = steal_ptr(read);
	return 0;
}

/* The offset of the bytecode whose code the byte at `offset` is in. -ENODATA: of none. */
static int find_bytecode(const struct v8_bytecodes *table, const unsigned char *bytes,
			 uint32_t size, const unsigned char *sizes, uint32_t sizes_size,
			 uint64_t offset, int64_t *bytecode)
{
	const unsigned char *next = sizes, *end = sizes + sizes_size;
	uint64_t done, length;
	uint32_t at = 0;

	if (!v8_varint(&next, end, &done) || offset < done)
		return -ENODATA; /* it has just been entered */
	while (at < size) {
		if (!v8_varint(&next, end, &length) || length > V8_CODE_MAX)
			return -ENODATA;
		done += length;
		if (offset < done) {
			*bytecode = at;
			return 0;
		}
		length = v8_bytecodes__length(table, bytes + at, size - at);
		if (!length)
			return -ENODATA;
		at += length;
	}
	return -ENODATA;
}

/* The last one that is not behind the bytecode. */
static int position_of(struct v8_reader *r, uint64_t table, int64_t bytecode, int32_t *position)
{
	_cleanup_free_ unsigned char *bytes = NULL;
	struct v8_positions p;
	uint32_t size;
	int err = v8_lines__table(r, table, &bytes, &size);

	if (err)
		return err;
	*position = -1;
	v8_positions__init(&p, r->layout->encoding, bytes, size);
	while (v8_positions__next(&p) && p.code <= bytecode)
		*position = v8_position__source(p.word);
	return *position < 0 ? -ENODATA : 0;
}

static void add(struct v8_chain *chain, uint64_t sfi, int32_t position)
{
	chain->at[chain->count].sfi = sfi;
	chain->at[chain->count++].position = position;
}

static int leaf_of_optimized(const struct v8_code *code, struct v8_chain *chain)
{
	if (!code->inlined)
		return -ENODATA;
	*chain = (struct v8_chain){.is_blind = true};
	add(chain, code->sfi, -1);
	return 0;
}

/*
 * Code of another function than the frame's: it has no frame yet, or none any more. Or it was made since, where the
 * frame's own code had been, which cannot be detected.
 */
static int leaf_without_frame(const struct v8_code *code, uint64_t sfi, struct v8_chain *chain)
{
	if (!code->sfi)
		return -ENODATA;
	*chain = (struct v8_chain){.is_blind = true};
	add(chain, code->sfi, -1);
	add(chain, sfi, -1);
	return 0;
}

/* `offset`: of the address from the code's start. */
static int baseline(struct v8_reader *r, const struct v8_bytecodes *bytecodes,
		    const struct v8_code *code, uint64_t sfi, uint64_t offset,
		    struct v8_chain *chain)
{
	_cleanup_free_ unsigned char *bytes = NULL, *sizes = NULL;
	uint32_t size, sizes_size;
	uint64_t positions;
	int64_t bytecode;
	int32_t position;
	int err;

	if (!bytecodes->count || !code->bytecode_array)
		return -ENODATA;
	err = v8_lines__table(r, code->positions, &sizes, &sizes_size);
	if (!err)
		err = read_bytecodes(r, code->bytecode_array, &bytes, &size, &positions);
	if (!err)
		err = find_bytecode(bytecodes, bytes, size, sizes, sizes_size, offset, &bytecode);
	if (!err)
		err = position_of(r, positions, bytecode, &position);
	if (err)
		return err;
	*chain = (struct v8_chain){};
	add(chain, sfi, position);
	return 0;
}

int v8_place__chain(struct v8_reader *r, const struct v8_bytecodes *bytecodes, uint64_t sfi,
		    uint64_t address, bool is_leaf, struct v8_chain *chain)
{
	struct v8_code code;
	enum v8_code_owner owner;
	int err = v8_code__at(r, address, &code);

	if (err)
		return err;
	owner = v8_code__owner(r, &code, sfi);
	if (owner == V8_OWNER_OTHER && is_leaf)
		return leaf_without_frame(&code, sfi, chain);
	if (owner == V8_OWNER_OTHER) {
		*chain = (struct v8_chain){.is_blind = true};
		add(chain, sfi, -1);
		return 0;
	}
	if (owner != V8_OWNER_SAME)
		return -ENODATA;
	if (code.kind == V8_CODE_BASELINE)
		return baseline(r, bytecodes, &code, sfi, address - code.start, chain);
	return is_leaf ? leaf_of_optimized(&code, chain)
		       : v8_code__chain(r, &code, address + 1, chain);
}
