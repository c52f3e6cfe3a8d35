/* SPDX-License-Identifier: BSD-2-Clause */
#include "models/hotspot_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/names.h"

#define ENTRIES_IN_BLOB_MAX 256u
#define RDX		    2
#define CODELETS_MAX	    4096u
#define CODELET_ALIGN	    32u
#define DESCRIPTION_MAX	    32u
#define BARRIER_SIZE	    7u
#define ENTER_SPECIAL	    "jdk.internal.vm.Continuation.enterSpecial"

void hotspot_rows__fini(struct hotspot_rows *rows)
{
	vec_free(&rows->list);
}

const struct hotspot_rule *hotspot_rows__find(const struct hotspot_rows *rows, uint32_t offset)
{
	size_t at = partition_point(rows->list.data, rows->list.count, row, row->start <= offset);

	return at ? &rows->list.data[at - 1].rule : NULL;
}

static struct hotspot_rule by_sp(uint32_t depth)
{
	struct hotspot_rule rule = {.cfa = HOTSPOT_CFA_SP, .cfa_offset = depth};

	if (depth < 16)
		return rule;
	rule.fp = HOTSPOT_FP_AT_CFA;
	rule.fp_offset = -16;
	return rule;
}

static struct hotspot_rule by_fp(void)
{
	return (struct hotspot_rule){
		.cfa = HOTSPOT_CFA_FP, .cfa_offset = 16, .fp = HOTSPOT_FP_AT_CFA, .fp_offset = -16};
}

struct hotspot_rule hotspot_rule_of_blob(const struct hotspot_blob *blob, uint32_t offset,
					 bool is_innermost)
{
	switch (blob->kind) {
	case HOTSPOT_BYTECODE:
		return hotspot_interpreted;
	case HOTSPOT_STUBS:
	case HOTSPOT_CONTINUATION:
		return by_fp();
	case HOTSPOT_ADAPTERS:
	case HOTSPOT_NO_FRAME:
		return by_sp(8);
	default:
		break;
	}
	if (!blob->frame_size)
		return blob->kind == HOTSPOT_NATIVE || blob->kind == HOTSPOT_NMETHOD ? by_sp(8)
										     : by_fp();
	if (is_innermost && offset < blob->frame_complete)
		return by_sp(8);
	return by_sp(8 * blob->frame_size);
}

/* ---- stubs ----------------------------------------------------------------------------------- */

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int find_enter_special(struct hotspot_stubs *s, const struct hotspot_code *code,
			      struct target_memory *memory, const struct hotspot_blobs *blobs)
{
	for (size_t i = 0; i < blobs->list.count; i++) {
		const struct hotspot_blob *b = &blobs->list.data[i];
		struct managed_function f = {};
		struct hotspot_method m;
		bool found;
		int err;

		if (b->kind != HOTSPOT_NATIVE || !b->frame_size)
			continue;
		err = hotspot_method__read(code->layout, memory, b->method, &m);
		if (!err)
			err = hotspot_method__describe(code->layout, memory, &m, &f);
		found = !err && !strcmp(f.name, ENTER_SPECIAL);
		managed_function__fini(&f);
		if (found) {
			s->enter_special_words = b->frame_size;
			s->enter_special = b->method;
			return 0;
		}
		if (err && err != -ENODATA)
			return err;
	}
	return 0;
}

int hotspot_stubs__read(struct hotspot_stubs *s, struct hotspot_code *code,
			struct target_memory *memory, const struct hotspot_blobs *blobs)
{
	const struct hotspot_layout *l = code->layout;
	int err = 0;

	*s = (struct hotspot_stubs){};
	for (size_t i = 0; i < l->stub_entries.count && !err; i++) {
		uint64_t entry;

		err = target_memory__word(memory, &entry, l->stub_entries.data[i]);
		if (!err && hotspot_code__heap(code, entry))
			err = vec_push(&s->entries, entry);
	}
	if (s->entries.count)
		qsort(s->entries.data, s->entries.count, sizeof(s->entries.data[0]),
		      compare_addresses);
	if (!err)
		err = find_enter_special(s, code, memory, blobs);
	if (err)
		hotspot_stubs__fini(s);
	return err;
}

void hotspot_stubs__fini(struct hotspot_stubs *s)
{
	vec_free(&s->entries);
}

/* ---- the interpreter ------------------------------------------------------------------------- */

/* A codelet's header, then its code, at the next address that is aligned. */
static int add_codelet(const struct hotspot_code *code, struct target_memory *memory,
		       const uint8_t *bytes, uint64_t at, uint32_t size, uint32_t start,
		       struct hotspot_rows *rows)
{
	uint64_t begin = at + code->layout->at[HOTSPOT_CODELET_TYPE_SIZE];
	uint32_t header = ((begin + CODELET_ALIGN - 1) & ~(uint64_t)(CODELET_ALIGN - 1)) - at;
	char description[DESCRIPTION_MAX];
	uint64_t address;
	int err;

	if (header > size || code->layout->at[HOTSPOT_CODELET_DESCRIPTION] + 8 > size)
		return 0;
	memcpy(&address, bytes + code->layout->at[HOTSPOT_CODELET_DESCRIPTION], sizeof(address));
	err = target_memory__string(memory, description, sizeof(description), address);
	if (err == -EDQUOT || err == -ESRCH || err == -EPERM)
		return err;
	return hotspot_decode_codelet(bytes + header, size - header, start + header,
				      !err || err == -ENAMETOOLONG
					      ? !strncmp(description, "method entry point", 18)
					      : false,
				      rows);
}

static int make_interpreter(struct hotspot_rows *rows, const struct hotspot_code *code,
			    struct target_memory *memory, const struct hotspot_blob *blob,
			    const uint8_t *bytes, uint32_t size)
{
	uint64_t offset_of_size = code->layout->at[HOTSPOT_CODELET_SIZE];
	uint64_t at = code->bytecode_start - blob->code, end = code->bytecode_end - blob->code;
	int err = hotspot_rows__add(rows, 0, &hotspot_interpreted);

	if (!code->layout->known[HOTSPOT_CODELET_SIZE] ||
	    !code->layout->known[HOTSPOT_CODELET_DESCRIPTION] ||
	    !code->layout->known[HOTSPOT_CODELET_TYPE_SIZE])
		return err;
	end = min_u64(end, size);
	for (unsigned int i = 0; i < CODELETS_MAX && at < end && !err; i++) {
		uint32_t length;

		if (end - at < offset_of_size + sizeof(length))
			break;
		memcpy(&length, bytes + at + offset_of_size, sizeof(length));
		if (!length || length > end - at)
			break;
		err = add_codelet(code, memory, bytes + at, blob->code + at, length, at, rows);
		at += length;
	}
	return err;
}

/* ---- the stubs of virtual threads ------------------------------------------------------------ */

/*
 * They run with the frame of enterSpecial in rbp. What a thawed frame returns to where its caller is still in the heap is
 * `mov rsp,[r15+…]`, and is looked up one byte before.
 */
static int make_continuation(struct hotspot_rows *rows, const struct hotspot_stubs *stubs,
			     const uint8_t *bytes, uint32_t size)
{
	static const uint8_t BARRIER[] = {0x49, 0x8b, 0xa7};
	const struct hotspot_rule other = by_fp(), barrier = by_sp(8 * stubs->enter_special_words);
	int err = hotspot_rows__add(rows, 0, &other);

	for (uint32_t at = 1; at + BARRIER_SIZE <= size && stubs->enter_special_words && !err;
	     at++) {
		if (memcmp(bytes + at, BARRIER, sizeof(BARRIER)))
			continue;
		err = hotspot_rows__add(rows, at - 1, &barrier);
		if (!err)
			err = hotspot_rows__add(rows, at + BARRIER_SIZE, &other);
	}
	return err;
}

/* ---- any blob -------------------------------------------------------------------------------- */

static size_t entries_of(const struct hotspot_stubs *stubs, const struct hotspot_blob *blob,
			 uint32_t entries[ENTRIES_IN_BLOB_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < stubs->entries.count && count < ENTRIES_IN_BLOB_MAX; i++)
		if (stubs->entries.data[i] >= blob->code && stubs->entries.data[i] < blob->code_end)
			entries[count++] = stubs->entries.data[i] - blob->code;
	return count;
}

/* Some are called, others are jumped to, with what is called then: the frame's size decides. */
static void choose_entry(struct hotspot_shape *shape, const struct hotspot_blob *blob,
			 const uint8_t *bytes, uint32_t size)
{
	int32_t depth = 8 * (int32_t)blob->frame_size;

	if (blob->kind != HOTSPOT_EXCEPTION && blob->kind != HOTSPOT_SAFEPOINT)
		return;
	if (hotspot_depth_at_call(bytes, size, 8) == depth ||
	    hotspot_depth_at_call(bytes, size, 0) != depth)
		return;
	shape->entry = 0;
	shape->entry_ra = blob->kind == HOTSPOT_EXCEPTION ? RDX : -1;
}

static int decode_blob(struct hotspot_rows *rows, const struct hotspot_stubs *stubs,
		       const struct hotspot_blob *blob, const uint8_t *bytes, uint32_t size)
{
	uint32_t entries[ENTRIES_IN_BLOB_MAX];
	struct hotspot_shape shape = {
		.entry = 8,
		.entry_ra = -1,
		.words = blob->frame_size,
		.verified = blob->verified_entry ? blob->verified_entry - blob->code : 0,
		.is_nmethod = blob->kind == HOTSPOT_NMETHOD || blob->kind == HOTSPOT_NATIVE,
	};

	if (!shape.is_nmethod && !blob->frame_size) {
		shape.by_fp = true;
		shape.entries = entries;
		shape.entry_count = entries_of(stubs, blob, entries);
	}
	choose_entry(&shape, blob, bytes, size);
	return hotspot_decode(bytes, size, &shape, rows);
}

static int add_one(struct hotspot_rows *rows, struct hotspot_rule rule)
{
	return hotspot_rows__add(rows, 0, &rule);
}

int hotspot_rows__make(struct hotspot_rows *rows, const struct hotspot_code *code,
		       struct target_memory *memory, const struct hotspot_stubs *stubs,
		       const struct hotspot_blob *blob)
{
	uint64_t size = blob->code_end - blob->code;
	_cleanup_free_ uint8_t *bytes = NULL;
	int err;

	*rows = (struct hotspot_rows){};
	if (blob->kind == HOTSPOT_NO_FRAME)
		return add_one(rows, by_sp(8));
	if (size > HOTSPOT_CODE_MAX)
		return -EFBIG;
	bytes = malloc(size ? size : 1);
	if (!bytes)
		return -ENOMEM;
	err = target_memory__read(memory, bytes, size, blob->code);
	if (!err && blob->kind == HOTSPOT_BYTECODE)
		err = make_interpreter(rows, code, memory, blob, bytes, size);
	else if (!err && blob->kind == HOTSPOT_CONTINUATION)
		err = make_continuation(rows, stubs, bytes, size);
	else if (!err)
		err = decode_blob(rows, stubs, blob, bytes, size);
	if (err)
		hotspot_rows__fini(rows);
	return err;
}
