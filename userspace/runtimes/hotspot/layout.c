/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/list_column.h"

#define ENTRIES_MAX	 20000u /* all tables of JDK 21 together have 2,064, its flags 1,400 */
#define STRIDE_MAX	 256u
#define NAME_MAX_SIZE	 64u
#define OFFSET_MAX	 0x10000u /* of a field, size of a type: larger ones are forged */
#define STUB_ENTRIES_MAX 256u

const char *const hotspot_export_names[HOTSPOT_EXPORTS] = {HOTSPOT_EXPORTS_OF(SECOND_COLUMN)};

enum kind { FIELD, STATIC, SIZE };

/* The part that needs a fact, or one of the two forms that its facts have had. */
enum need {
	NEED_NONE,
	NEED_UNWIND,
	NEED_POINTERS, /* to 21, of the blob's code */
	NEED_OFFSETS,
	NEED_NAME,
	NEED_LINE,
	NEED_IN_BLOB, /* to 21, what describes inlined methods */
	NEED_MOVED,
	NEED_COUNT,
};

static const enum need needs_of[HOTSPOT_FACT_COUNT] = {
#define X(name, need, kind, type, field) [HOTSPOT_##name] = NEED_##need,
#define ALSO(name, kind, type, field)
	HOTSPOT_FACTS(X, ALSO)
#undef ALSO
#undef X
};

static const struct wanted {
	const char *type, *field;
	enum kind kind;
	enum hotspot_fact fact;
} wanted[] = {
#define X(name, need, kind, type, field) {type, field, kind, HOTSPOT_##name},
#define ALSO(name, kind, type, field)	 {type, field, kind, HOTSPOT_##name},
	HOTSPOT_FACTS(X, ALSO)
#undef ALSO
#undef X
};

#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

struct reading {
	struct hotspot_layout *layout;
	struct target_memory *memory;
	uint64_t exported[HOTSPOT_EXPORTS];
	/* the type of the last entries */
	uint64_t type_address;
	size_t first, end;
	bool is_stubs;
};

static uint64_t word_at(const unsigned char *entry, uint64_t offset)
{
	return target_number(entry, STRIDE_MAX, offset, sizeof(uint64_t));
}

static int read_name(struct reading *r, char name[NAME_MAX_SIZE], uint64_t address)
{
	int err = target_memory__string(r->memory, name, NAME_MAX_SIZE, address);

	return err == -ENAMETOOLONG ? 0 : err;
}

/* The first of several entries for a fact is the one that counts. */
static void note(struct hotspot_layout *l, const struct wanted *w, uint64_t value)
{
	if (l->known[w->fact] || ((w->kind == FIELD || w->kind == SIZE) && value > OFFSET_MAX) ||
	    (w->kind != FIELD && !value))
		return;
	l->at[w->fact] = value;
	l->known[w->fact] = true;
}

static int look_up_type(struct reading *r, uint64_t address)
{
	char name[NAME_MAX_SIZE];
	int err = read_name(r, name, address);

	if (err)
		return err;
	r->type_address = address;
	for (r->first = 0; r->first < WANTED && strcmp(wanted[r->first].type, name); r->first++)
		;
	for (r->end = r->first; r->end < WANTED && !strcmp(wanted[r->end].type, name); r->end++)
		;
	r->is_stubs = !strcmp(name, "StubRoutines");
	return 0;
}

static int note_stub(struct hotspot_layout *l, uint64_t address)
{
	if (!address || l->stub_entries.count == STUB_ENTRIES_MAX)
		return 0;
	return vec_push(&l->stub_entries, address);
}

static int visit_field(struct reading *r, const unsigned char *entry)
{
	uint64_t type = word_at(entry, r->exported[HOTSPOT_STRUCT_TYPE]);
	uint64_t offset = word_at(entry, r->exported[HOTSPOT_STRUCT_OFFSET]);
	uint64_t address = word_at(entry, r->exported[HOTSPOT_STRUCT_ADDRESS]);
	char name[NAME_MAX_SIZE];
	int err = type == r->type_address ? 0 : look_up_type(r, type);

	if (!err && r->is_stubs)
		err = note_stub(r->layout, address);
	if (err || r->first == r->end)
		return err;
	err = read_name(r, name, word_at(entry, r->exported[HOTSPOT_STRUCT_FIELD]));
	if (err)
		return err;
	for (size_t i = r->first; i < r->end; i++)
		if ((wanted[i].kind == FIELD || wanted[i].kind == STATIC) &&
		    !strcmp(wanted[i].field, name))
			note(r->layout, &wanted[i], wanted[i].kind == STATIC ? address : offset);
	return 0;
}

static int visit_type(struct reading *r, const unsigned char *entry)
{
	int err = look_up_type(r, word_at(entry, r->exported[HOTSPOT_TYPE_NAME]));

	if (err)
		return err;
	for (size_t i = r->first; i < r->end; i++)
		if (wanted[i].kind == SIZE)
			note(r->layout, &wanted[i], word_at(entry, r->exported[HOTSPOT_TYPE_SIZE]));
	return 0;
}

/* Entries up to one without a name. */
static int each_entry(struct reading *r, enum hotspot_export array, enum hotspot_export stride,
		      enum hotspot_export name,
		      int (*visit)(struct reading *r, const unsigned char *entry))
{
	uint64_t at = r->exported[array], step = r->exported[stride];

	if (!at || !step || step > STRIDE_MAX)
		return -ENODATA;
	r->type_address = 0;
	for (unsigned int i = 0; i < ENTRIES_MAX; i++, at += step) {
		unsigned char entry[STRIDE_MAX] = {};
		int err = target_memory__read(r->memory, entry, step, at);

		if (!err && !word_at(entry, r->exported[name]))
			return 0;
		if (!err)
			err = visit(r, entry);
		if (err)
			return err;
	}
	return -ENODATA;
}

static int read_tables(struct reading *r, const uint64_t exports[HOTSPOT_EXPORTS])
{
	int err = 0;

	for (unsigned int i = 0; i < HOTSPOT_EXPORTS && !err; i++)
		err = exports[i] ? target_memory__read(r->memory, &r->exported[i],
						       sizeof(r->exported[i]), exports[i])
				 : -ENODATA;
	if (!err)
		err = each_entry(r, HOTSPOT_STRUCTS, HOTSPOT_STRUCT_STRIDE, HOTSPOT_STRUCT_TYPE,
				 visit_field);
	if (!err)
		err = each_entry(r, HOTSPOT_TYPES, HOTSPOT_TYPE_STRIDE, HOTSPOT_TYPE_NAME,
				 visit_type);
	return err;
}

/* ---- flags ----------------------------------------------------------------------------------- */

/* The value of a bool flag. 1, 0; -ENODATA: there is none of this name; else as reading fails. */
static int find_flag(struct reading *r, const char *wanted_name)
{
	const struct hotspot_layout *l = r->layout;
	uint64_t at, count = 0, size = l->at[HOTSPOT_FLAG_SIZE];
	int err = target_memory__read(r->memory, &at, sizeof(at), l->at[HOTSPOT_FLAGS])
			  ?: target_memory__read(r->memory, &count, sizeof(count),
						 l->at[HOTSPOT_FLAG_COUNT]);
	for (uint64_t i = 0; i < count && i < ENTRIES_MAX && !err; i++, at += size) {
		unsigned char entry[STRIDE_MAX] = {}, value;
		char name[NAME_MAX_SIZE];

		err = target_memory__read(r->memory, entry, size, at)
			      ?: read_name(r, name, word_at(entry, l->at[HOTSPOT_FLAG_NAME]));
		if (err || strcmp(name, wanted_name))
			continue;
		err = target_memory__read(r->memory, &value, sizeof(value),
					  word_at(entry, l->at[HOTSPOT_FLAG_VALUE]));
		return err ? err : value != 0;
	}
	return err ? err : -ENODATA;
}

static enum hotspot_flag read_flag(struct reading *r, const char *name)
{
	const struct hotspot_layout *l = r->layout;
	int value;

	for (unsigned int i = HOTSPOT_FLAGS; i <= HOTSPOT_FLAG_VALUE; i++)
		if (!l->known[i])
			return HOTSPOT_FLAG_UNKNOWN;
	if (!l->at[HOTSPOT_FLAG_SIZE] || l->at[HOTSPOT_FLAG_SIZE] > STRIDE_MAX)
		return HOTSPOT_FLAG_UNKNOWN;
	value = find_flag(r, name);
	if (value < 0)
		return HOTSPOT_FLAG_UNKNOWN;
	return value ? HOTSPOT_FLAG_ON : HOTSPOT_FLAG_OFF;
}

/* ---- what that is enough for ----------------------------------------------------------------- */

static void judge(struct hotspot_layout *l)
{
	const bool has_offsets = l->known[HOTSPOT_BLOB_CODE_OFFSET];
	const bool is_moved = l->known[HOTSPOT_IMMUTABLE_DATA];
	const struct {
		enum hotspot_part part;
		bool counts;
	} needs[] = {
		[NEED_NONE] = {},
		[NEED_UNWIND] = {HOTSPOT_CAN_UNWIND, true},
		[NEED_POINTERS] = {HOTSPOT_CAN_UNWIND, !has_offsets},
		[NEED_OFFSETS] = {HOTSPOT_CAN_UNWIND, has_offsets},
		[NEED_NAME] = {HOTSPOT_CAN_NAME, true},
		[NEED_LINE] = {HOTSPOT_CAN_LINE, true},
		[NEED_IN_BLOB] = {HOTSPOT_CAN_LINE, !is_moved},
		[NEED_MOVED] = {HOTSPOT_CAN_LINE, is_moved},
		[NEED_COUNT] = {HOTSPOT_CAN_COUNT, true},
	};

	for (unsigned int i = 0; i < HOTSPOT_PARTS; i++)
		l->can[i] = true;
	for (unsigned int i = 0; i < HOTSPOT_FACT_COUNT; i++)
		if (!l->known[i] && needs[needs_of[i]].counts)
			l->can[needs[needs_of[i]].part] = false;
	l->can[HOTSPOT_CAN_LINE] = l->can[HOTSPOT_CAN_LINE] && l->can[HOTSPOT_CAN_NAME];
}

static void measure_header(struct hotspot_layout *l)
{
	for (unsigned int i = HOTSPOT_BLOB_NAME; i <= HOTSPOT_IMMUTABLE_SIZE; i++) {
		if (!l->known[i])
			continue;
		if (l->at[i] + 8 > HOTSPOT_HEADER_MAX) {
			l->known[i] = false;
			continue;
		}
		if (l->at[i] + 8 > l->header_size)
			l->header_size = l->at[i] + 8;
	}
}

int hotspot_layout__read(struct hotspot_layout *l, struct target_memory *memory,
			 const uint64_t exports[HOTSPOT_EXPORTS])
{
	_cleanup_free_ struct target_pages *pages = calloc(1, sizeof(*pages));
	struct reading r = {.layout = l, .memory = memory};
	int err;

	*l = (struct hotspot_layout){};
	if (!pages)
		return -ENOMEM;
	memory->pages = pages;
	err = read_tables(&r, exports);
	if (!err && l->known[HOTSPOT_VM_MAJOR])
		err = target_memory__read(memory, &l->major, sizeof(l->major),
					  l->at[HOTSPOT_VM_MAJOR]);
	if (!err)
		l->frame_pointers = read_flag(&r, "PreserveFramePointer");
	l->describes_all = read_flag(&r, "DebugNonSafepoints");
	memory->pages = NULL;
	if (err) {
		hotspot_layout__fini(l);
		return err;
	}
	measure_header(l);
	judge(l);
	return 0;
}

void hotspot_layout__fini(struct hotspot_layout *l)
{
	vec_free(&l->stub_entries);
}
