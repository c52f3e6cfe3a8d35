/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"

#define SHIFT_MAX	22u
#define SHIFT_MIN	5u
#define HEAP_MAX	(UINT64_C(4) << 30)
#define ADDRESS_BITS	47
#define FREE		0xffu
#define MAP_PIECE	64u
#define MAP_READ	4096u
#define NAME_READ	40u
#define FRAME_WORDS_MAX (1u << 17)
#define BLOCK_MAX	UINT8_MAX /* bytes of a block's header */

/* ---- heaps ----------------------------------------------------------------------------------- */

static int read_heap(struct hotspot_code *code, struct target_memory *memory, uint64_t heap)
{
	const uint64_t *at = code->layout->at;
	uint64_t space = heap + at[HOTSPOT_HEAP_MEMORY], map = heap + at[HOTSPOT_HEAP_SEGMAP];
	struct hotspot_heap h = {};
	uint64_t map_high = 0;
	uint32_t shift;
	const struct {
		uint64_t from, *to;
	} words[] = {
		{space + at[HOTSPOT_SPACE_LOW_BOUNDARY], &h.low},
		{space + at[HOTSPOT_SPACE_HIGH_BOUNDARY], &h.high},
		{space + at[HOTSPOT_SPACE_HIGH], &h.committed},
		{map + at[HOTSPOT_SPACE_LOW], &h.map},
		{map + at[HOTSPOT_SPACE_HIGH], &map_high},
	};
	int err = target_memory__u32(memory, &shift, heap + at[HOTSPOT_HEAP_SEGMENT_SHIFT]);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !err; i++)
		err = target_memory__word(memory, words[i].to, words[i].from);
	if (err)
		return err;
	if (h.low >= h.high || h.high >> ADDRESS_BITS || h.high - h.low > HEAP_MAX ||
	    h.committed < h.low || h.committed > h.high || map_high < h.map || shift < SHIFT_MIN ||
	    shift > SHIFT_MAX || (code->count && shift != code->shift))
		return -ENODATA;
	code->shift = shift;
	h.map_size = min_u64(map_high - h.map, (h.committed - h.low) >> shift);
	code->heaps[code->count++] = h;
	return 0;
}

DEFINE_ORDER(compare_heaps, struct hotspot_heap, ASCENDING(low));

/* Ascending, and none within another. */
static int sort_heaps(struct hotspot_code *code)
{
	qsort(code->heaps, code->count, sizeof(code->heaps[0]), compare_heaps);
	for (unsigned int i = 1; i < code->count; i++)
		if (code->heaps[i].low < code->heaps[i - 1].high)
			return -ENODATA;
	return 0;
}

static int read_interpreter(struct hotspot_code *code, struct target_memory *memory)
{
	const uint64_t *at = code->layout->at;
	uint64_t queue;
	uint32_t end;
	int err = target_memory__word(memory, &queue, at[HOTSPOT_INTERPRETER])
			?: target_memory__word(memory, &code->bytecode_start,
				       queue + at[HOTSPOT_QUEUE_START])
			?: target_memory__u32(memory, &end, queue + at[HOTSPOT_QUEUE_END]);

	if (!err)
		code->bytecode_end = code->bytecode_start + min_u64(end, HOTSPOT_CODE_MAX);
	if (!err && code->layout->known[HOTSPOT_CALL_STUB_RETURN] &&
	    target_memory__word(memory, &code->call_return, at[HOTSPOT_CALL_STUB_RETURN]))
		code->call_return = 0;
	return err;
}

int hotspot_code__read(struct hotspot_code *code, const struct hotspot_layout *layout,
		       struct target_memory *memory)
{
	const uint64_t *at = layout->at;
	uint64_t array, data;
	uint32_t length = 0;
	int err;

	*code = (struct hotspot_code){.layout = layout};
	if (!layout->can[HOTSPOT_CAN_UNWIND])
		return -ENODATA;
	err = target_memory__word(memory, &array, at[HOTSPOT_HEAPS])
			?: target_memory__u32(memory, &length, array + at[HOTSPOT_ARRAY_LENGTH])
			?: target_memory__word(memory, &data, array + at[HOTSPOT_ARRAY_DATA]);
	if (!err && (!length || length > HOTSPOT_HEAPS_MAX))
		err = -ENODATA;
	for (uint32_t i = 0; i < length && !err; i++) {
		uint64_t heap;

		err = target_memory__word(memory, &heap, data + i * sizeof(heap))
			      ?: read_heap(code, memory, heap);
	}
	if (!err)
		err = sort_heaps(code);
	return err ? err : read_interpreter(code, memory);
}

const struct hotspot_heap *hotspot_code__heap(const struct hotspot_code *code, uint64_t address)
{
	return find_first(code->heaps, code->count, heap,
			  address >= heap->low && address < heap->high);
}

int hotspot_code__find(const struct hotspot_code *code, struct target_memory *memory,
		       uint64_t address, uint64_t *blob)
{
	const struct hotspot_heap *h = hotspot_code__heap(code, address);
	unsigned char piece[MAP_PIECE];
	uint64_t at, start = 1, end = 0;

	if (!h)
		return -ENOENT;
	at = (address - h->low) >> code->shift;
	for (unsigned int hops = 0; hops < HOTSPOT_HOPS_MAX; hops++) {
		unsigned char back;

		if (at < start || at >= end) {
			int err;

			end = at + 1;
			start = end > MAP_PIECE ? end - MAP_PIECE : 0;
			err = target_memory__read(memory, piece, end - start, h->map + start);
			if (err)
				return err;
		}
		back = piece[at - start];
		if (back == FREE)
			return -ENOENT;
		if (!back) {
			*blob = h->low + (at << code->shift) +
				code->layout->at[HOTSPOT_HEAP_BLOCK_SIZE];
			return 0;
		}
		if (back > at)
			return -ELOOP;
		at -= back;
	}
	memory->left = true;
	return -ELOOP;
}

/* ---- a blob ---------------------------------------------------------------------------------- */

static const struct {
	const char *prefix;
	enum hotspot_kind kind;
} kinds_by_name[] = {
	{"nmethod", HOTSPOT_NMETHOD},
	{"native nmethod", HOTSPOT_NATIVE},
	{"Interpreter", HOTSPOT_BYTECODE},
	{"StubRoutines (continuation", HOTSPOT_CONTINUATION},
	{"Stub Generator continuation", HOTSPOT_CONTINUATION},
	{"StubRoutines", HOTSPOT_STUBS},
	{"Stub Generator", HOTSPOT_STUBS},
	{"I2C/C2I adapters", HOTSPOT_ADAPTERS},
	{"MethodHandles adapters", HOTSPOT_ADAPTERS},
	{"vtable chunks", HOTSPOT_NO_FRAME},
	{"InlineCacheBuffer", HOTSPOT_NO_FRAME},
	{"ExceptionBlob", HOTSPOT_EXCEPTION},
	{"UncommonTrapBlob", HOTSPOT_UNCOMMON_TRAP},
	{"SafepointBlob", HOTSPOT_SAFEPOINT},
	{"DeoptimizationBlob", HOTSPOT_DEOPT},
};

static enum hotspot_kind kind_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds_by_name) / sizeof(kinds_by_name[0]); i++)
		if (!strncmp(name, kinds_by_name[i].prefix, strlen(kinds_by_name[i].prefix)))
			return kinds_by_name[i].kind;
	return HOTSPOT_RUNTIME;
}

static int read_kind(struct hotspot_code *code, struct target_memory *memory, uint64_t name,
		     enum hotspot_kind *kind)
{
	size_t slot = (name >> 3 ^ name >> 12) % HOTSPOT_NAMES_KNOWN;
	char text[NAME_READ];
	int err;

	if (code->kinds[slot].name != name || !name) {
		err = target_memory__string(memory, text, sizeof(text), name);
		if (err && err != -ENAMETOOLONG)
			return err;
		code->kinds[slot].name = name;
		code->kinds[slot].kind = kind_by_name(text);
	}
	*kind = code->kinds[slot].kind;
	return 0;
}

static void take_code(const struct hotspot_object *o, struct hotspot_blob *b)
{
	int32_t complete;

	if (o->layout->known[HOTSPOT_BLOB_CODE_OFFSET]) {
		b->code = b->address + hotspot_number(o, HOTSPOT_BLOB_CODE_OFFSET, 4);
		b->code_end = b->address + hotspot_number(o, HOTSPOT_BLOB_DATA_OFFSET, 4);
		/* 2 bytes since the same JDK */
		complete = (int16_t)hotspot_number(o, HOTSPOT_BLOB_FRAME_COMPLETE, 2);
	} else {
		b->code = hotspot_number(o, HOTSPOT_BLOB_CODE_BEGIN, 8);
		b->code_end = hotspot_number(o, HOTSPOT_BLOB_CODE_END, 8);
		complete = (int32_t)hotspot_number(o, HOTSPOT_BLOB_FRAME_COMPLETE, 4);
	}
	b->frame_complete = complete > 0 ? complete : 0;
}

static uint64_t within(const struct hotspot_blob *b, uint64_t address)
{
	return address >= b->code && address < b->code_end ? address : 0;
}

static void take_nmethod(const struct hotspot_object *o, struct hotspot_blob *b)
{
	const bool *known = o->layout->known;

	b->method = hotspot_number(o, HOTSPOT_METHOD_OF, 8);
	b->compile_id = hotspot_number(o, HOTSPOT_COMPILE_ID, 4);
	b->orig_pc_offset = hotspot_number(o, HOTSPOT_ORIG_PC_OFFSET, 4);
	b->verified_entry =
		within(b, known[HOTSPOT_VERIFIED_ENTRY]
				  ? hotspot_number(o, HOTSPOT_VERIFIED_ENTRY, 8)
				  : b->code + hotspot_number(o, HOTSPOT_VERIFIED_ENTRY_OFFSET, 2));
	if (known[HOTSPOT_DEOPT_HANDLER])
		b->deopt_handler = within(b, hotspot_number(o, HOTSPOT_DEOPT_HANDLER, 8));
	else if (known[HOTSPOT_DEOPT_HANDLER_OFFSET])
		b->deopt_handler =
			within(b, b->address + hotspot_number(o, HOTSPOT_DEOPT_HANDLER_OFFSET, 4));
}

static uint64_t check_of(const struct hotspot_object *o)
{
	if (!o->layout->known[HOTSPOT_COMPILE_ID] || !o->layout->known[HOTSPOT_METHOD_OF])
		return 0;
	return hotspot_number(o, HOTSPOT_COMPILE_ID, 4) << 32 |
	       hotspot_number(o, HOTSPOT_METHOD_OF, 4);
}

int hotspot_code__take(struct hotspot_code *code, struct target_memory *memory,
		       const unsigned char *bytes, uint64_t address, struct hotspot_blob *b)
{
	const struct hotspot_object o = {code->layout, bytes, code->layout->header_size};
	const struct hotspot_heap *heap = hotspot_code__heap(code, address);
	int err;

	*b = (struct hotspot_blob){.address = address};
	b->name = hotspot_number(&o, HOTSPOT_BLOB_NAME, 8);
	b->size = hotspot_number(&o, HOTSPOT_BLOB_SIZE, 4);
	b->frame_size = hotspot_number(&o, HOTSPOT_BLOB_FRAME_SIZE, 4);
	take_code(&o, b);
	if (!heap || !b->size || b->size > heap->high - address || b->code < address ||
	    b->code_end < b->code || b->code_end > address + b->size)
		return -ENODATA;
	if (b->frame_size > FRAME_WORDS_MAX) /* -1: it has none */
		b->frame_size = 0;
	b->check = check_of(&o);
	err = read_kind(code, memory, b->name, &b->kind);
	if (err)
		return err;
	if (b->kind == HOTSPOT_NMETHOD || b->kind == HOTSPOT_NATIVE)
		take_nmethod(&o, b);
	return 0;
}

/* The header of its block lies before it. */
int hotspot_code__blob(struct hotspot_code *code, struct target_memory *memory, uint64_t address,
		       struct hotspot_blob *blob)
{
	const struct hotspot_layout *l = code->layout;
	unsigned char bytes[BLOCK_MAX + HOTSPOT_HEADER_MAX];
	uint64_t block = l->at[HOTSPOT_HEAP_BLOCK_SIZE];
	int err = block > BLOCK_MAX ? -ENODATA
				    : target_memory__read(memory, bytes, block + l->header_size,
							  address - block);

	if (err)
		return err;
	if (l->known[HOTSPOT_HEAP_BLOCK_USED] &&
	    !target_number(bytes, block, l->at[HOTSPOT_HEAP_BLOCK_USED], 1))
		return -ENODATA;
	return hotspot_code__take(code, memory, bytes + block, address, blob);
}

int hotspot_code__each(struct hotspot_code *code, struct target_memory *memory,
		       int (*visit)(void *context, const struct hotspot_blob *blob), void *context)
{
	const struct hotspot_heap *h = hotspot_code__heap(code, code->bytecode_start);
	unsigned char map[MAP_READ];
	unsigned int blobs = 0;
	int err = h ? 0 : -ENODATA;

	for (uint64_t at = 0; !err && at < h->map_size; at++) {
		struct hotspot_blob blob;

		if (blobs == HOTSPOT_BLOBS_MAX) {
			memory->left = true;
			break;
		}
		if (at % sizeof(map) == 0)
			err = target_memory__read(
				memory, map, min_u64(sizeof(map), h->map_size - at), h->map + at);
		if (err || map[at % sizeof(map)])
			continue;
		blobs++;
		err = hotspot_code__blob(code, memory,
					 h->low + (at << code->shift) +
						 code->layout->at[HOTSPOT_HEAP_BLOCK_SIZE],
					 &blob);
		err = err == -ENODATA ? 0 : err ? err : visit(context, &blob);
	}
	return err;
}

int hotspot_blob__name(const struct hotspot_blob *blob, struct target_memory *memory, char *name,
		       size_t size)
{
	return target_memory__string(memory, name, size, blob->name);
}

/* ---- for the kernel -------------------------------------------------------------------------- */

int hotspot_words__make(struct runtime_hotspot *w, const struct hotspot_code *code)
{
	const struct hotspot_layout *l = code->layout;
	const struct {
		enum hotspot_fact fact;
		uint16_t *to;
	} offsets[] = {
		{HOTSPOT_BLOB_NAME, &w->name},
		{HOTSPOT_BLOB_FRAME_SIZE, &w->frame_size},
		{HOTSPOT_BLOB_FRAME_COMPLETE, &w->frame_complete},
		{l->known[HOTSPOT_BLOB_CODE_OFFSET] ? HOTSPOT_BLOB_CODE_OFFSET
						    : HOTSPOT_BLOB_CODE_BEGIN,
		 &w->code},
		{HOTSPOT_COMPILE_ID, &w->compile_id},
		{HOTSPOT_METHOD_OF, &w->method},
		{HOTSPOT_CONST_METHOD, &w->const_method},
	};

	*w = (struct runtime_hotspot){.bytecode_start = code->bytecode_start,
				      .bytecode_end = code->bytecode_end,
				      .shift = code->shift,
				      .block_size = l->at[HOTSPOT_HEAP_BLOCK_SIZE],
				      .is_narrow = l->known[HOTSPOT_BLOB_CODE_OFFSET]};
	if (code->count > RUNTIME_HEAPS || l->at[HOTSPOT_HEAP_BLOCK_SIZE] > UINT8_MAX)
		return -E2BIG;
	for (unsigned int i = 0; i < code->count; i++) {
		w->heaps[i].low = code->heaps[i].low;
		w->heaps[i].high = code->heaps[i].high;
		w->heaps[i].map = code->heaps[i].map;
	}
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		if (l->at[offsets[i].fact] >= HOTSPOT_HEADER_MAX)
			return -E2BIG;
		*offsets[i].to = l->at[offsets[i].fact];
	}
	return 0;
}
