/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions begin at multiples of 64 bytes, behind the header of their object. So steps of 64
 * bytes back from an address lead to it: to the first word that is the map of such objects. The
 * header names the Code object, which has the address of its instructions; instructions that only
 * look like a header do not agree with it.
 */
#include "runtimes/v8/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/lines.h"

#define ALIGNMENT     64u
#define FIRST_BLOCK   1024u /* bytes that are read at once: most functions are small */
#define LARGEST_BLOCK 16384u
#define PAGE	      4096u
#define CHUNK_BITS                                                                                 \
	20 /* a piece of the range that V8 reserves for code of the heap; four of its chunks */
#define KIND_MASK 15
#define ARRAY_MAX (1u << 16) /* elements of any array that is followed */
#define WRAPPED	  8	     /* SharedFunctionInfoWrapper: what is wrapped */
#define WEAK	  2

/* ---- where code begins ----------------------------------------------------------------------- */

static bool is_stream_map(struct v8_reader *r, uint64_t map)
{
	int32_t type;

	if (!v8_is_object(map))
		return false;
	if (r->stream_map)
		return map == r->stream_map;
	if (v8_reader__type(r, map, &type) || type != r->layout->type_instruction_stream)
		return false;
	r->stream_map = map;
	return true;
}

static enum v8_code_kind kind_of(const struct v8_layout *l, uint32_t flags)
{
	int32_t above = (int32_t)(flags & KIND_MASK) - l->kind_baseline;

	return above >= 0 && above <= 2 ? (enum v8_code_kind)(V8_CODE_BASELINE + above)
					: V8_CODE_OTHER;
}

/*
 * The Code that a header names, if its instructions are there. Up to V8 10.2 the header is that of the
 * Code itself.
 */
static int read_code(struct v8_reader *r, uint64_t word, uint64_t start, uint64_t pc,
		     struct v8_code *code)
{
	const struct v8_layout *l = r->layout;
	struct v8_object o;
	int err = v8_object__read(r, l->code_more ? start - l->stream_start + 1 : word, &o);

	if (err)
		return err == -EINVAL || err == -ENODATA ? -ENOENT : err;
	if (o.type != l->type_code ||
	    (!l->code_more && v8_object__word(&o, l->code_start) != start))
		return -ENOENT;
	start += l->code_more;
	*code = (struct v8_code){
		.start = start,
		.size = v8_object__u32(&o, l->code_size),
		.kind = kind_of(l, v8_object__u32(&o, l->code_flags)),
		.deopt = v8_object__word(&o, l->code_deopt),
		.positions = v8_object__word(&o, l->code_positions),
	};
	/* what lies before this one does not reach the address either */
	return pc - start < code->size ? 0 : -ENODATA;
}

/* The headers in one block, the last one first. -ENOENT: go on with what is before it. */
static int search_block(struct v8_reader *r, const unsigned char *block, uint64_t address,
			uint64_t size, uint64_t pc, struct v8_code *code)
{
	const uint32_t header = r->layout->stream_start;

	for (uint64_t start = address + size; start >= address + header; start -= ALIGNMENT) {
		uint64_t words[2];
		int err;

		memcpy(words, block + (start - header - address), sizeof(words));
		if (!is_stream_map(r, words[0]))
			continue;
		err = read_code(r, words[1], start, pc, code);
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}

/* A block, or where memory begins within it, its last page. `begin` is set. */
static int read_block(struct v8_reader *r, unsigned char *block, uint64_t *begin, uint64_t end)
{
	const uint64_t page = (end - 1) & ~(uint64_t)(PAGE - 1);
	int err = target_memory__read(r->memory, block, end - *begin, *begin);

	if (err != -ENODATA || page <= *begin)
		return err;
	*begin = page;
	return target_memory__read(r->memory, block, end - page, page);
}

static uint64_t *chunk_slot(struct v8_reader *r, uint64_t address)
{
	return &r->code_chunks[(address >> CHUNK_BITS) & (V8_CHUNKS_KNOWN - 1)];
}

static void note_chunk(struct v8_reader *r, uint64_t address)
{
	*chunk_slot(r, address) = (address >> CHUNK_BITS) + 1;
}

/* Code of the heap has been seen near that address. */
static bool is_in_heap(struct v8_reader *r, uint64_t address)
{
	return *chunk_slot(r, address) == (address >> CHUNK_BITS) + 1;
}

/* A header lies within the 64 bytes before its instructions, so that blocks need not overlap. */
static int search(struct v8_reader *r, uint64_t pc, struct v8_code *code)
{
	const uint64_t last = (pc - r->layout->code_more) & ~(uint64_t)(ALIGNMENT - 1);
	const uint64_t lowest = last > V8_CODE_MAX ? last - V8_CODE_MAX : 0;
	unsigned char block[LARGEST_BLOCK];
	uint64_t size = FIRST_BLOCK, end = last;

	while (end > lowest) {
		uint64_t begin = end - lowest > size ? end - size : lowest;
		int err = read_block(r, block, &begin, end);

		if (!err)
			err = search_block(r, block, begin, end - begin, pc, code);
		else if (err == -ENODATA)
			return -ENOENT;
		if (err == -ENODATA)
			note_chunk(r, code->start);
		if (err != -ENOENT)
			return err == -ENODATA ? -ENOENT : err;
		end = begin;
		size = min_u64(size * 2, LARGEST_BLOCK);
	}
	return -ENOENT;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* The SFI that a word leads to, directly or in a wrapper. 0: to none. */
static int follow_sfi(struct v8_reader *r, uint64_t word, uint64_t *sfi)
{
	const struct v8_layout *l = r->layout;
	struct v8_object o;
	int err;

	*sfi = 0;
	if ((word & 3) == (1 | WEAK))
		word &= ~(uint64_t)WEAK;
	err = v8_object__read(r, word, &o);
	if (!err && l->type_sfi_wrapper > 0 && o.type == l->type_sfi_wrapper) {
		word = v8_object__word(&o, WRAPPED);
		err = v8_object__read(r, word, &o);
	}
	if (err)
		return err == -EINVAL || err == -ENODATA ? 0 : err;
	if (o.type == l->type_sfi)
		*sfi = word;
	return 0;
}

/* An element of an array. -EAGAIN: it has none such. */
static int element(struct v8_reader *r, uint64_t array, int64_t index, uint64_t *word)
{
	uint64_t address;
	uint32_t count;
	int err = v8_array__find(r, array, ARRAY_MAX, &address, &count);

	if (err)
		return err;
	if (index < 0 || index >= count)
		return -EAGAIN;
	return target_memory__word(r->memory, word, address + 8 * index);
}

/* InliningPositions[id - 1]: the position of a call, and the literal that it calls (-1: itself). */
struct inlining {
	uint64_t position;
	int32_t literal, padding;
};

_Static_assert(sizeof(struct inlining) == 16, "V8's");

static int read_owner(struct v8_reader *r, struct v8_code *code)
{
	const struct v8_layout *l = r->layout;
	uint64_t word;
	int err;

	if (code->kind == V8_CODE_OTHER)
		return 0;
	if (code->kind == V8_CODE_BASELINE)
		return v8_lines__follow_bytecodes(r, code->deopt, &code->bytecode_array);
	err = element(r, code->deopt, l->deopt_sfi, &word)
			?: follow_sfi(r, word, &code->sfi)
			?: element(r, code->deopt, l->deopt_count, &word);
	if (!err && v8_is_smi(word) && v8_smi(word) > 0)
		code->inlined = v8_smi(word);
	return err == -EAGAIN ? 0 : err;
}

int v8_code__at(struct v8_reader *r, uint64_t pc, struct v8_code *code)
{
	struct v8_code found;
	int err;

	if (!r->layout->has_code)
		return -ENOTSUP;
	err = search(r, pc, &found);
	if (err == -ENOENT && is_in_heap(r, pc))
		return -ENODATA;
	if (err)
		return err;
	note_chunk(r, pc);
	err = read_owner(r, &found);
	if (!err)
		*code = found;
	return err;
}

enum v8_code_owner v8_code__owner(struct v8_reader *r, const struct v8_code *code, uint64_t sfi)
{
	uint64_t array;

	if (code->sfi)
		return code->sfi == sfi ? V8_OWNER_SAME : V8_OWNER_OTHER;
	if (!code->bytecode_array || v8_lines__bytecode_array(r, sfi, &array) || !array)
		return V8_OWNER_UNKNOWN;
	return array == code->bytecode_array ? V8_OWNER_SAME : V8_OWNER_OTHER;
}

/* ---- what is inlined there ------------------------------------------------------------------- */

/* The word of the last entry that is not behind an offset; 0: there is none. */
static int position_at(struct v8_reader *r, uint64_t table, uint64_t offset, uint64_t *word)
{
	_cleanup_free_ unsigned char *bytes = NULL;
	struct v8_positions p;
	uint32_t size;
	int err = v8_lines__table(r, table, &bytes, &size);

	*word = 0;
	if (err)
		return err == -ENODATA ? 0 : err;
	v8_positions__init(&p, r->layout->encoding, bytes, size);
	while (v8_positions__next(&p) && (p.code < 0 || (uint64_t)p.code <= offset))
		*word = p.word;
	return 0;
}

static int read_inlining(struct v8_reader *r, uint64_t array, uint32_t id,
			 struct inlining *inlining)
{
	const uint32_t size = sizeof(*inlining);
	uint64_t address;
	uint32_t count;
	int err = v8_array__find(r, array, ARRAY_MAX * size, &address, &count);

	if (err)
		return err;
	if ((uint64_t)id * size > count)
		return -EAGAIN;
	return target_memory__read(r->memory, inlining, size, address + (uint64_t)(id - 1) * size);
}

static int read_inlined_sfi(struct v8_reader *r, const struct v8_code *code, int32_t literal,
			    uint64_t *sfi)
{
	uint64_t literals, word;
	int err;

	*sfi = code->sfi;
	if (literal == -1)
		return 0;
	err = element(r, code->deopt, r->layout->deopt_literals, &literals)
			?: element(r, literals, literal, &word)
			?: follow_sfi(r, word, sfi);
	return err ? err : *sfi ? 0 : -EAGAIN;
}

static void add(struct v8_chain *chain, uint64_t sfi, int32_t position)
{
	chain->at[chain->count].sfi = sfi;
	chain->at[chain->count++].position = position;
}

/* A function is inlined before those inlined into it: numbers fall on the way out, and it ends. */
static int add_inlined(struct v8_reader *r, const struct v8_code *code, uint64_t *word,
		       struct v8_chain *chain)
{
	uint64_t array;
	uint32_t id = v8_position__inlining(*word);
	int err = id ? element(r, code->deopt, r->layout->deopt_inlining, &array) : 0;

	while (!err && id) {
		struct inlining inlining;
		uint64_t sfi;

		if (chain->count == V8_INLINED_MAX - 1) {
			chain->is_cut = r->memory->left = true;
			return 0;
		}
		err = read_inlining(r, array, id, &inlining)
			      ?: read_inlined_sfi(r, code, inlining.literal, &sfi);
		if (!err && v8_position__inlining(inlining.position) >= id)
			err = -EAGAIN;
		if (err)
			break;
		add(chain, sfi, v8_position__source(*word));
		*word = inlining.position;
		id = v8_position__inlining(*word);
	}
	return err;
}

/*
 * V8 gives code up by changing return addresses into it, to its exits: each calls a builtin by a
 * table. In code that is in use, a call is never right behind another.
 */
static int find_exit(struct v8_reader *r, uint64_t return_address, bool *is_exit)
{
	static const unsigned char call[] = {0x41, 0xff, 0x55}; /* call *disp8(%r13) */
	unsigned char bytes[sizeof(call)];
	int err = target_memory__read(r->memory, bytes, sizeof(bytes), return_address);

	*is_exit = !err && !memcmp(bytes, call, sizeof(call));
	return err == -ENODATA ? 0 : err;
}

int v8_code__chain(struct v8_reader *r, const struct v8_code *code, uint64_t return_address,
		   struct v8_chain *chain)
{
	struct v8_chain found = {};
	uint64_t word = 0;
	int err;

	if (code->kind < V8_CODE_MAGLEV || !code->sfi || return_address <= code->start)
		return -ENODATA;
	err = find_exit(r, return_address, &found.is_deoptimized);
	if (!err && !found.is_deoptimized)
		err = position_at(r, code->positions, return_address - 1 - code->start, &word);
	if (err)
		return err;
	found.is_blind = !word && code->inlined;
	err = add_inlined(r, code, &word, &found);
	if (err)
		return err;
	add(&found, code->sfi, v8_position__source(found.is_cut ? 0 : word));
	*chain = found;
	return 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

/*
 * Baseline code is made bytecode by bytecode, in their order. Its table has the size of each one's
 * code, behind that of the function's entry. The bytecodes have the positions.
 */

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
	struct wire lengths = {.at = sizes, .end = sizes + sizes_size};
	uint64_t done, length;
	uint32_t at = 0;

	if (!wire_varint(&lengths, &done) || offset < done)
		return -ENODATA; /* it has just been entered */
	while (at < size) {
		if (!wire_varint(&lengths, &length) || length > V8_CODE_MAX)
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

static int leaf_of_optimized(const struct v8_code *code, struct v8_chain *chain)
{
	if (!code->inlined)
		return -ENODATA;
	*chain = (struct v8_chain){.is_blind = true};
	add(chain, code->sfi, -1);
	return 0;
}

/*
 * Code of another function than the frame's, which has no frame yet, or none any more. It may also
 * have been made since, at the place of the frame's own code, which cannot be detected.
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
	uint64_t positions, word;
	int64_t bytecode;
	int err;

	if (!bytecodes->count || !code->bytecode_array)
		return -ENODATA;
	err = v8_lines__table(r, code->positions, &sizes, &sizes_size)
			?: read_bytecodes(r, code->bytecode_array, &bytes, &size, &positions)
			?: find_bytecode(bytecodes, bytes, size, sizes, sizes_size, offset,
				 &bytecode)
			?: position_at(r, positions, bytecode, &word);
	if (!err && v8_position__source(word) < 0)
		err = -ENODATA;
	if (err)
		return err;
	*chain = (struct v8_chain){};
	add(chain, sfi, v8_position__source(word));
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

/* ---- bytecodes ------------------------------------------------------------------------------- */

#define COUNT_LEAST 128u
#define BLOCK	    (1u << 20)
#define OVERLAP	    (V8_SCALES * V8_BYTECODES)
#define READ_MAX    (96u << 20) /* of a file's constants */

/* Wide, ExtraWide and those of the debugger, which have the registers 0, 1, 2, 3 as operands. */
static const unsigned char first[] = {1, 1, 1, 1, 1, 2, 3, 4};

/* Operands that are widened grow by their number; others do not. */
static bool is_table(const unsigned char *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned int one = table[i], two = table[count + i], four = table[2 * count + i];

		if (!one || two < one || four - two != 2 * (two - one) || four > V8_BYTECODE_MAX)
			return false;
	}
	return true;
}

static bool take(const unsigned char *at, size_t left, struct v8_bytecodes *table)
{
	for (uint32_t count = COUNT_LEAST; count <= V8_BYTECODES && V8_SCALES * count <= left;
	     count++) {
		/* the debugger's are wider in the second row */
		if (memcmp(at + count, first, 5) || at[count + 5] != 3 || !is_table(at, count))
			continue;
		table->count = count;
		for (unsigned int scale = 0; scale < V8_SCALES; scale++)
			memcpy(table->size[scale], at + scale * count, count);
		return true;
	}
	return false;
}

bool v8_bytecodes__find(const unsigned char *bytes, size_t size, struct v8_bytecodes *table)
{
	const unsigned char *at = bytes, *end = bytes + size;

	*table = (struct v8_bytecodes){};
	while ((at = memmem(at, end - at, first, sizeof(first)))) {
		if (take(at, end - at, table))
			return true;
		at++;
	}
	return false;
}

bool v8_bytecodes__read(struct elf_file *file, struct v8_bytecodes *table)
{
	_cleanup_free_ unsigned char *block = malloc(BLOCK + OVERLAP);
	struct elf_section section;
	uint64_t offset;

	*table = (struct v8_bytecodes){};
	if (!block || elf_file__find_section(file, ".rodata", &section))
		return false;
	for (offset = 0; offset < min_u64(section.size, READ_MAX); offset += BLOCK) {
		ssize_t got = elf_file__read_section(file, &section, offset, block,
						     BLOCK + OVERLAP);

		if (got <= 0)
			return false;
		if (v8_bytecodes__find(block, (size_t)got, table))
			return true;
	}
	return false;
}

size_t v8_bytecodes__length(const struct v8_bytecodes *table, const unsigned char *at, size_t left)
{
	/* Wide, ExtraWide; the debugger has put the others in the place of these */
	unsigned int scale = left && at[0] < 4 ? 1 + (at[0] & 1) : 0;
	size_t prefix = scale ? 1 : 0, length;

	if (left <= prefix || at[prefix] >= table->count)
		return 0;
	length = prefix + table->size[scale][at[prefix]];
	return length <= left ? length : 0;
}
