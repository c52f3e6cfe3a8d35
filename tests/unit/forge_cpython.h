/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CPython that is forged in an array of bytes: its runtime, an interpreter, a thread with frames, code, names. For tests
 * and the fuzzer: every word of it can be changed. No cmocka in here.
 */
#ifndef TESTS_UNIT_FORGE_CPYTHON_H
#define TESTS_UNIT_FORGE_CPYTHON_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sysprof/event.h>

#include "runtimes/python/layout.h"
#include "runtimes/runtime.h"
#include "runtimes/python/cpython.h"
#include "runtimes/table.h"
#include "runtimes/target_memory.h"

#define FORGED_BASE UINT64_C(0x7f0000000000)
#define FORGED_SIZE 0x10000u

/* Offsets in the array. */
enum {
	FORGED_RUNTIME = 0x0,
	FORGED_INTERPRETER = 0x2000, /* as large as the offsets in it */
	FORGED_GIL = 0x4000,
	FORGED_THREAD = 0x5000,
	FORGED_CFRAMES = 0x5800, /* on the C stack: these, and frames of owner 3 */
	FORGED_FRAMES = 0x6000,
	FORGED_TYPE = 0x7000,
	FORGED_CODE = 0x8000, /* 0x200 each */
	FORGED_TEXT = 0xa000, /* where str and bytes begin */
	FORGED_FS = 0xe000,
};

struct forged {
	uint8_t bytes[FORGED_SIZE];
	struct cpython py; /* what should be found */
	uint32_t text;	   /* offset of the next str or bytes */
	uint32_t frames, codes;
};

static inline uint64_t forged_address(uint32_t offset)
{
	return FORGED_BASE + offset;
}

static inline int forged_read(void *context, void *to, size_t size, uint64_t address)
{
	const struct forged *f = context;

	if (address < FORGED_BASE || address - FORGED_BASE > FORGED_SIZE ||
	    size > FORGED_SIZE - (address - FORGED_BASE))
		return -ENODATA;
	memcpy(to, f->bytes + (address - FORGED_BASE), size);
	return 0;
}

static inline struct target_memory forged_memory(struct forged *f)
{
	return (struct target_memory){
		.read = forged_read, .context = f, .bytes_left = 64u << 20, .reads_left = 1u << 20};
}

static inline void forged_put(struct forged *f, uint32_t offset, uint64_t value, size_t size)
{
	if (offset + size <= FORGED_SIZE)
		memcpy(f->bytes + offset, &value, size);
}

static inline void forged_word(struct forged *f, uint32_t offset, uint64_t value)
{
	forged_put(f, offset, value, 8);
}

/* ---- objects --------------------------------------------------------------------------------- */

static inline uint32_t forged_str_of(struct forged *f, const void *text, size_t length,
				     uint32_t kind, bool ascii)
{
	const struct cpython_layout *l = &f->py.layout;
	uint32_t at = f->text, data = ascii ? l->str_ascii : l->str_other;

	forged_word(f, at, 1);
	forged_word(f, at + l->str_length, length);
	if (l->str_hash)
		for (size_t i = 0; i < length * kind; i++)
			f->bytes[at + l->str_hash + i % 8] ^= ((const uint8_t *)text)[i];
	forged_put(f, at + l->str_state, kind << 2 | 1u << 5 | (ascii ? 1u << 6 : 0), 4);
	memcpy(f->bytes + at + data, text, length * kind);
	f->text = (at + data + length * kind + 23) & ~15u;
	return at;
}

static inline uint32_t forged_str(struct forged *f, const char *text)
{
	return forged_str_of(f, text, strlen(text), 1, true);
}

static inline uint32_t forged_bytes(struct forged *f, const void *data, size_t size)
{
	const struct cpython_layout *l = &f->py.layout;
	uint32_t at = f->text;

	forged_word(f, at, 1);
	forged_word(f, at + l->bytes_size, size);
	memcpy(f->bytes + at + l->bytes_data, data, size);
	f->text = (at + l->bytes_data + size + 23) & ~15u;
	return at;
}

static inline uint32_t forged_code_of(struct forged *f, uint32_t name, uint32_t file,
				      uint32_t lines, uint32_t firstline)
{
	const struct cpython_layout *l = &f->py.layout;
	uint32_t at = FORGED_CODE + 0x200 * f->codes++;

	forged_word(f, at, 1);
	forged_word(f, at + 8, f->py.code_type);
	forged_put(f, at + l->code_firstline, firstline, 4);
	if (l->code_version)
		forged_put(f, at + l->code_version, f->codes, 4);
	forged_word(f, at + l->code_filename, forged_address(file));
	if (l->code_name)
		forged_word(f, at + l->code_name, forged_address(name));
	forged_word(f, at + l->code_qualname, forged_address(name));
	forged_word(f, at + l->code_linetable, forged_address(lines));
	forged_put(f, at + l->code_firsttraceable, 1, 4);
	return at;
}

/* Its lines: two code units each at the first line, the one after it, no line, five lines on. */
static inline uint32_t forged_code(struct forged *f, const char *name, uint32_t firstline)
{
	static const uint8_t lines[] = {0x80 | 13 << 3 | 1,
					0,
					0x80 | 11 << 3 | 1,
					1,
					2,
					0x80 | 15 << 3 | 1,
					0x80 | 14 << 3 | 1,
					8,
					1,
					2,
					3};

	return forged_code_of(f, forged_str(f, name), forged_str(f, "/opt/app.py"),
			      forged_bytes(f, lines, sizeof(lines)), firstline);
}

/* ---- what the kernel copies of a code object --------------------------------------------------- */

static inline uint64_t forged_word_at(const struct forged *f, uint64_t offset)
{
	uint64_t value = 0;

	if (offset + sizeof(value) <= FORGED_SIZE)
		memcpy(&value, f->bytes + offset, sizeof(value));
	return value;
}

static inline uint16_t forged_copy_of(const struct forged *f, uint64_t address, void *to,
				      size_t size)
{
	return forged_read((void *)f, to, size, address) ? 0 : (uint16_t)size;
}

/* As the kernel does it. There is room for CODE_COPY_TABLE more behind *e. False: it copies nothing. */
static inline bool forged_copy(const struct forged *f, const struct cpython_layout *l,
			       uint64_t code, uint64_t check, struct code_copy_event *e)
{
	uint64_t at = code - FORGED_BASE, length;

	*e = (struct code_copy_event){
		.header = {.type = EVENT_CODE_COPY}, .tgid = 1, .function = code, .check = check};
	e->head_size = forged_copy_of(f, code, e->head, l->code_linetable + 8);
	if (!e->head_size)
		return false;
	e->name = forged_word_at(f, at + l->code_qualname);
	e->file = forged_word_at(f, at + l->code_filename);
	e->lines = forged_word_at(f, at + l->code_linetable);
	length = forged_word_at(f, e->lines - FORGED_BASE + l->bytes_size);
	if (length > CODE_COPY_TABLE || l->bytes_data + length > CODE_COPY_TABLE)
		return false;
	e->lines_size = forged_copy_of(f, e->lines, e->lines_bytes, l->bytes_data + length);
	if (!e->lines_size)
		return false;
	if (l->code_name) {
		e->hash_at = forged_word_at(f, at + l->code_name) + l->str_hash;
		e->hash = forged_word_at(f, e->hash_at - FORGED_BASE);
	}
	e->name_size = forged_copy_of(f, e->name, e->name_bytes, CODE_COPY_NAME);
	e->file_size = forged_copy_of(f, e->file, e->file_bytes, CODE_COPY_FILE);
	e->header.size = sizeof(*e) + ((e->lines_size + 7u) & ~7u);
	return true;
}

/* ---- frames: the outermost is made first ------------------------------------------------------ */

static inline uint32_t forged_frame_at(struct forged *f, uint32_t at, uint32_t code,
				       uint32_t previous, uint32_t unit, uint8_t owner)
{
	const struct cpython_layout *l = &f->py.layout;

	forged_word(f, at + l->frame_previous, previous ? forged_address(previous) : 0);
	forged_word(f, at + l->frame_code, forged_address(code) | (l->has_base_frame ? 1 : 0));
	forged_word(f, at + l->frame_instruction,
		    forged_address(code) + l->code_bytecode + 2 * unit);
	forged_put(f, at + l->frame_owner, owner, 1);
	return at;
}

static inline uint32_t forged_frame(struct forged *f, uint32_t code, uint32_t previous,
				    uint32_t unit)
{
	return forged_frame_at(f, FORGED_FRAMES + 0x80 * f->frames++, code, previous, unit, 0);
}

/* ---- the interpreter -------------------------------------------------------------------------- */

static inline void forged_begin(struct forged *f, const struct cpython_layout *layout,
				uint32_t version)
{
	memset(f, 0, sizeof(*f));
	f->py = (struct cpython){.runtime = forged_address(FORGED_RUNTIME),
				 .version = version,
				 .code_type = forged_address(FORGED_TYPE),
				 .layout = *layout};
	f->text = FORGED_TEXT;
}

/* A thread whose innermost frame is `frame`, in a loop with an anchor of 3.11's or one in the chain. */
static inline void forged_finish(struct forged *f, uint32_t frame, uint32_t cframe)
{
	const struct cpython_layout *l = &f->py.layout;
	uint32_t gil = l->interp_gil ? FORGED_GIL : FORGED_RUNTIME;

	forged_word(f, FORGED_RUNTIME + l->interpreters, forged_address(FORGED_INTERPRETER));
	if (l->tss_key) {
		forged_put(f, FORGED_RUNTIME + l->tss_key, 1, 4);
		forged_put(f, FORGED_RUNTIME + l->tss_key + 4, 2, 4);
	}
	forged_word(f, FORGED_INTERPRETER + l->interp_threads, forged_address(FORGED_THREAD));
	if (l->interp_gil)
		forged_word(f, FORGED_INTERPRETER + l->interp_gil, forged_address(FORGED_GIL));
	forged_put(f, gil + l->gil_locked, 1, 4);
	forged_word(f, gil + l->gil_holder, forged_address(FORGED_THREAD));
	forged_word(f, FORGED_THREAD + l->thread_interp, forged_address(FORGED_INTERPRETER));
	forged_word(f, FORGED_THREAD + l->thread_id, forged_address(FORGED_FS));
	forged_word(f, FORGED_THREAD + l->thread_frame,
		    l->has_cframes ? forged_address(cframe)
		    : frame	   ? forged_address(frame)
				   : 0);
	/* glibc's block: its own address twice, the DTV, the first keys, a word of thread-local storage */
	forged_word(f, FORGED_FS, forged_address(FORGED_FS));
	forged_word(f, FORGED_FS + 0x10, forged_address(FORGED_FS));
	forged_word(f, FORGED_FS + 0x310 + 16 * 2 + 8, forged_address(FORGED_THREAD));
	forged_word(f, FORGED_FS - 0x28, forged_address(FORGED_THREAD));
}

/* The table of 3.13 to 3.15 with what those versions have in it, in front of everything. */
static inline void forged_table(uint8_t *table, uint32_t version)
{
	static const uint16_t fields_13[][2] = {
		{40, 632}, {64, 7264}, {72, 7344}, {112, 16},  {120, 100}, {136, 116}, {144, 108},
		{168, 8},  {176, 16},  {184, 72},  {192, 152}, {224, 80},  {232, 8},   {240, 0},
		{248, 56}, {264, 70},  {280, 112}, {296, 128}, {304, 136}, {312, 68},  {344, 200},
		{520, 16}, {528, 32},  {544, 32},  {552, 16},  {560, 40},
	};
	static const uint16_t fields_14[][2] = {
		{40, 808}, {64, 7272}, {72, 7344}, {120, 16},  {128, 100}, {144, 116}, {152, 108},
		{192, 8},  {200, 16},  {208, 72},  {216, 152}, {248, 88},  {256, 8},   {264, 0},
		{272, 56}, {288, 74},  {320, 112}, {336, 128}, {344, 136}, {352, 68},  {384, 208},
		{600, 16}, {608, 32},  {624, 32},  {632, 16},  {640, 40},
	};
	static const uint16_t fields_15[][2] = {
		{40, 936},  {64, 7264}, {72, 7336}, {120, 16}, {128, 100}, {144, 116},
		{152, 108}, {192, 8},	{200, 16},  {208, 72}, {240, 176}, {272, 36},
		{280, 40},  {312, 88},	{320, 8},   {328, 0},  {336, 56},  {352, 74},
		{384, 112}, {400, 128}, {408, 136}, {416, 68}, {448, 208}, {696, 16},
		{704, 32},  {720, 32},	{728, 16},  {736, 40}, {744, 56},
	};
	unsigned int minor = cpython_minor(version);
	const uint16_t(*fields)[2] = minor == 13 ? fields_13 : minor == 14 ? fields_14 : fields_15;
	size_t count = minor == 13   ? sizeof(fields_13) / sizeof(*fields_13)
		       : minor == 14 ? sizeof(fields_14) / sizeof(*fields_14)
				     : sizeof(fields_15) / sizeof(*fields_15);

	memset(table, 0, CPYTHON_TABLE_MAX);
	memcpy(table, "xdebugpy", 8);
	memcpy(table + 8, &version, sizeof(version));
	for (size_t i = 0; i < count; i++)
		memcpy(table + fields[i][0], &fields[i][1], sizeof(fields[i][1]));
}

#define FORGED_LOOPS 2u

/*
 * The whole of a version: two loops of two functions each, <module> and outer, inner and leaf, leaf innermost. False: the
 * layout is refused.
 */
static inline bool forged_program(struct forged *f, uint32_t version)
{
	uint8_t table[CPYTHON_TABLE_MAX] = {};
	struct cpython_layout l;
	uint32_t module, outer, inner, leaf, at = 0, none = FORGED_TYPE;

	forged_table(table, version);
	if (cpython_minor(version) < 13 ? cpython_layout__of_version(version, &l)
					: cpython_layout__of_table(table, sizeof(table), 0, &l))
		return false;
	forged_begin(f, &l, version);
	if (cpython_minor(version) >= 13)
		memcpy(f->bytes, table, sizeof(table));
	module = forged_code(f, "<module>", 1);
	outer = forged_code(f, "Outer.run", 10);
	inner = forged_code(f, "Inner.<locals>.key", 20);
	leaf = forged_code(f, "leaf", 30);
	if (l.has_base_frame)
		at = forged_frame_at(f, FORGED_THREAD + 0x400, none, 0, 0, 3);
	if (l.has_own_anchors)
		at = forged_frame_at(f, FORGED_CFRAMES + 0x180, none, at, 0, 3);
	at = forged_frame(f, module, at, 0);
	if (l.frame_is_entry)
		forged_put(f, at + l.frame_is_entry, 1, 1);
	at = forged_frame(f, outer, at, 2);
	if (l.has_own_anchors)
		at = forged_frame_at(f, FORGED_CFRAMES + 0x80, none, at, 0, 3);
	at = forged_frame(f, inner, at, 4);
	if (l.frame_is_entry)
		forged_put(f, at + l.frame_is_entry, 1, 1);
	at = forged_frame(f, leaf, at, 6);
	if (l.has_cframes) {
		forged_word(f, FORGED_CFRAMES + 0x40 + l.cframe_frame, forged_address(at));
		forged_word(f, FORGED_CFRAMES + 0x40 + l.cframe_previous,
			    forged_address(FORGED_CFRAMES + 0x140));
		forged_word(f, FORGED_CFRAMES + 0x140 + l.cframe_frame,
			    forged_address(FORGED_FRAMES + 0x80));
	}
	forged_finish(f, at, FORGED_CFRAMES + 0x40);
	return true;
}

extern const struct runtime python_runtime;

/* The event of a copy, as the collector adds it. */
static inline int forged_read_copy(struct code_answers *answers, const struct code_copy_event *copy,
				   const struct cpython_layout *l)
{
	struct runtime_layout layout = {.size = sizeof(*l)};

	memcpy(layout.bytes, l, sizeof(*l));
	return python_runtime.memory->read_copy(answers, copy, &layout);
}

#endif
