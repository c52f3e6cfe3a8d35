/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a JVM that never was: tables of fields, a code heap with the interpreter, a stub and a compiled method that has
 * another inlined, a stack with all of them. For unit tests and the fuzzer. Offsets are our own, not any JDK's.
 */
#ifndef TESTS_UNIT_HOTSPOT_IMAGE_H
#define TESTS_UNIT_HOTSPOT_IMAGE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "models/hotspot_walk.h"

#define IMAGE_BASE	  UINT64_C(0x10000000)
#define IMAGE_SIZE	  0x24000u
#define IMAGE_TABLES	  0x1000u
#define IMAGE_TYPES	  0x3000u
#define IMAGE_STRINGS	  0x4000u
#define IMAGE_HEAP	  0x8000u /* CodeHeap */
#define IMAGE_STATICS	  0x8800u
#define IMAGE_MAP	  0x9000u
#define IMAGE_METHODS	  0xa000u
#define IMAGE_DEBUG	  0xc000u
#define IMAGE_CODE	  0x10000u
#define IMAGE_CODE_SIZE	  0x10000u
#define IMAGE_STACK	  0x20000u
#define IMAGE_PERF	  0x22000u
#define IMAGE_FLAGS	  0x23000u /* 3, of 32 bytes each */
#define IMAGE_FLAG_VALUES (IMAGE_FLAGS + 0x80)
#define IMAGE_FLAG	  (IMAGE_FLAG_VALUES + 1) /* PreserveFramePointer */
#define IMAGE_UNLOADS	  (IMAGE_PERF + 192)	  /* their counter */
#define IMAGE_BLOCK	  16u
#define IMAGE_HEADER	  160u
#define IMAGE_INTERPRETER 0u /* segments */
#define IMAGE_STUBS	  32u
#define IMAGE_COMPILED	  64u
#define IMAGE_FRAME_WORDS 4u
#define IMAGE_COMPILE_ID  77u

struct hotspot_image {
	uint8_t bytes[IMAGE_SIZE];
	uint64_t exports[HOTSPOT_EXPORTS];
	uint32_t next_field, next_type, next_string;
	bool is_moved;			 /* as from JDK 23 on */
	uint64_t method, inlined, klass; /* Method* */
	uint64_t reads;
};

static inline int image_read(void *context, void *to, size_t size, uint64_t address)
{
	struct hotspot_image *i = context;

	i->reads++;
	if (address < IMAGE_BASE || address - IMAGE_BASE > IMAGE_SIZE ||
	    size > IMAGE_SIZE - (address - IMAGE_BASE))
		return -ENODATA;
	memcpy(to, i->bytes + (address - IMAGE_BASE), size);
	return 0;
}

static inline struct target_memory image_memory(struct hotspot_image *i)
{
	return (struct target_memory){
		.read = image_read, .context = i, .bytes_left = 16u << 20, .reads_left = 20000};
}

static inline void image_put(struct hotspot_image *i, uint64_t at, uint64_t value, size_t size)
{
	memcpy(i->bytes + at, &value, size);
}

static inline uint64_t image_word(const struct hotspot_image *i, uint64_t at)
{
	uint64_t word;

	memcpy(&word, i->bytes + at, sizeof(word));
	return word;
}

static inline uint64_t image_string(struct hotspot_image *i, const char *text)
{
	uint32_t at = i->next_string;

	memcpy(i->bytes + at, text, strlen(text) + 1);
	i->next_string += strlen(text) + 1;
	return IMAGE_BASE + at;
}

static inline void image_entry(struct hotspot_image *i, const char *type, const char *field,
			       uint64_t offset, uint64_t address)
{
	uint32_t at = IMAGE_TABLES + 32 * i->next_field++;

	image_put(i, at, image_string(i, type), 8);
	image_put(i, at + 8, image_string(i, field), 8);
	image_put(i, at + 16, offset, 8);
	image_put(i, at + 24, address, 8);
}

static inline void image_type(struct hotspot_image *i, const char *type, uint64_t size)
{
	uint32_t at = IMAGE_TYPES + 16 * i->next_type++;

	image_put(i, at, image_string(i, type), 8);
	image_put(i, at + 8, size, 8);
}

static inline void image_exports(struct hotspot_image *i)
{
	static const uint64_t VALUES[HOTSPOT_EXPORTS] = {
		[HOTSPOT_STRUCTS] = IMAGE_BASE + IMAGE_TABLES,
		[HOTSPOT_STRUCT_STRIDE] = 32,
		[HOTSPOT_STRUCT_FIELD] = 8,
		[HOTSPOT_STRUCT_OFFSET] = 16,
		[HOTSPOT_STRUCT_ADDRESS] = 24,
		[HOTSPOT_TYPES] = IMAGE_BASE + IMAGE_TYPES,
		[HOTSPOT_TYPE_STRIDE] = 16,
		[HOTSPOT_TYPE_SIZE] = 8,
	};

	for (unsigned int k = 0; k < HOTSPOT_EXPORTS; k++) {
		i->exports[k] = IMAGE_BASE + 8 * k;
		image_put(i, 8 * k, VALUES[k], 8);
	}
}

static inline void image_statics(struct hotspot_image *i)
{
	static const struct {
		const char *type, *field;
		uint32_t at;
		uint64_t value;
	} STATICS[] = {
		{"CodeCache", "_heaps", 0, IMAGE_BASE + IMAGE_HEAP + 0x100},
		{"AbstractInterpreter", "_code", 8, IMAGE_BASE + IMAGE_HEAP + 0x180},
		{"PerfMemory", "_start", 16, IMAGE_BASE + IMAGE_PERF},
		{"PerfMemory", "_top", 24, IMAGE_BASE + IMAGE_PERF + 0x100},
		{"Abstract_VM_Version", "_vm_major_version", 32, 0},
		{"JVMFlag", "flags", 48, IMAGE_BASE + IMAGE_FLAGS},
		{"JVMFlag", "numFlags", 56, 3},
		{"StubRoutines", "_call_stub_entry", 40,
		 IMAGE_BASE + IMAGE_CODE + IMAGE_STUBS * 128 + 0x140},
	};

	for (size_t k = 0; k < sizeof(STATICS) / sizeof(STATICS[0]); k++) {
		uint32_t at = IMAGE_STATICS + STATICS[k].at;

		image_entry(i, STATICS[k].type, STATICS[k].field, 0, IMAGE_BASE + at);
		image_put(i, at, STATICS[k].value, 8);
	}
	image_put(i, IMAGE_STATICS + 32, i->is_moved ? 25 : 17, 4);
}

static inline void image_fields(struct hotspot_image *i)
{
	static const struct {
		const char *type, *field;
		uint32_t offset;
		int moved; /* 0: to JDK 22; 1: from 23 on; 2: always */
	} FIELDS[] = {
		{"GrowableArrayBase", "_len", 0, 2},
		{"GrowableArray<int>", "_data", 8, 2},
		{"CodeHeap", "_memory", 0, 2},
		{"CodeHeap", "_segmap", 64, 2},
		{"CodeHeap", "_log2_segment_size", 128, 2},
		{"VirtualSpace", "_low_boundary", 0, 2},
		{"VirtualSpace", "_high_boundary", 8, 2},
		{"VirtualSpace", "_low", 16, 2},
		{"VirtualSpace", "_high", 24, 2},
		{"CodeBlob", "_name", 0, 2},
		{"CodeBlob", "_size", 8, 2},
		{"CodeBlob", "_frame_size", 12, 2},
		{"CodeBlob", "_frame_complete_offset", 16, 2},
		{"CodeBlob", "_code_begin", 24, 0},
		{"CodeBlob", "_code_end", 32, 0},
		{"CodeBlob", "_code_offset", 40, 1},
		{"CodeBlob", "_data_offset", 44, 1},
		{"CodeBlob", "_mutable_data", 48, 1},
		{"CodeBlob", "_relocation_size", 56, 1},
		{"CompiledMethod", "_method", 64, 0},
		{"CompiledMethod", "_scopes_data_begin", 112, 0},
		{"nmethod", "_method", 64, 1},
		{"nmethod", "_compile_id", 72, 2},
		{"nmethod", "_verified_entry_point", 80, 0},
		{"nmethod", "_verified_entry_offset", 80, 1},
		{"nmethod", "_orig_pc_offset", 96, 2},
		{"nmethod", "_scopes_pcs_offset", 100, 2},
		{"nmethod", "_dependencies_offset", 104, 0},
		{"nmethod", "_scopes_data_offset", 120, 1},
		{"nmethod", "_metadata_offset", 124, 0},
		{"nmethod", "_nul_chk_table_offset", 140, 2},
		{"nmethod", "_immutable_data", 128, 1},
		{"nmethod", "_immutable_data_size", 136, 1},
		{"Method", "_constMethod", 8, 2},
		{"Method", "_intrinsic_id", 16, 2},
		{"ConstMethod", "_constants", 8, 2},
		{"ConstMethod", "_name_index", 16, 2},
		{"ConstMethod", "_code_size", 18, 2},
		{"ConstMethod", "_flags", 20, 2},
		{"ConstMethod", "_signature_index", 24, 2},
		{"ConstantPool", "_pool_holder", 8, 2},
		{"ConstantPool", "_cache", 24, 2},
		{"ConstantPoolCache", "_resolved_method_entries", 8, 1},
		{"Array<ResolvedMethodEntry>", "_data", 8, 1},
		{"ConstantPoolCacheEntry", "_f1", 8, 0},
		{"ConstantPoolCacheEntry", "_f2", 16, 0},
		{"ConstantPool", "_length", 16, 2},
		{"ConstantPool", "_source_file_name_index", 20, 2},
		{"Klass", "_name", 8, 2},
		{"Symbol", "_hash_and_refcount", 0, 2},
		{"Symbol", "_length", 4, 2},
		{"Symbol", "_body", 6, 2},
		{"StubQueue", "_stub_buffer", 0, 2},
		{"StubQueue", "_queue_end", 8, 2},
		{"InterpreterCodelet", "_size", 0, 2},
		{"InterpreterCodelet", "_description", 8, 2},
		{"JVMFlag", "_name", 8, 2},
		{"JVMFlag", "_addr", 0, 2},
		{"JVMFlag", "_flags", 16, 2},
	};

	for (size_t k = 0; k < sizeof(FIELDS) / sizeof(FIELDS[0]); k++)
		if (FIELDS[k].moved == 2 || FIELDS[k].moved == i->is_moved)
			image_entry(i, FIELDS[k].type, FIELDS[k].field, FIELDS[k].offset, 0);
	image_entry(i, "HeapBlock::Header", "_used", 8, 0);
	image_type(i, "HeapBlock", IMAGE_BLOCK);
	image_type(i, "ConstMethod", 32);
	image_type(i, "ConstantPool", 32);
	image_type(i, "ConstantPoolCache", 16);
	image_type(i, i->is_moved ? "ResolvedMethodEntry" : "ConstantPoolCacheEntry", 24);
	image_type(i, "InterpreterCodelet", 32);
	image_type(i, "JVMFlag", 32);
}

static inline void image_heap(struct hotspot_image *i)
{
	const uint64_t code = IMAGE_BASE + IMAGE_CODE, map = IMAGE_BASE + IMAGE_MAP;

	image_put(i, IMAGE_HEAP, code, 8);
	image_put(i, IMAGE_HEAP + 8, code + IMAGE_CODE_SIZE, 8);
	image_put(i, IMAGE_HEAP + 16, code, 8);
	image_put(i, IMAGE_HEAP + 24, code + IMAGE_CODE_SIZE, 8);
	image_put(i, IMAGE_HEAP + 64 + 16, map, 8);
	image_put(i, IMAGE_HEAP + 64 + 24, map + IMAGE_CODE_SIZE / 128, 8);
	image_put(i, IMAGE_HEAP + 128, 7, 4);
	/* the array of heaps, and the queue of codelets */
	image_put(i, IMAGE_HEAP + 0x100, 1, 4);
	image_put(i, IMAGE_HEAP + 0x108, IMAGE_BASE + IMAGE_HEAP + 0x140, 8);
	image_put(i, IMAGE_HEAP + 0x140, IMAGE_BASE + IMAGE_HEAP, 8);
	image_put(i, IMAGE_HEAP + 0x180, code + 0x100, 8);
	image_put(i, IMAGE_HEAP + 0x188, 0x400, 4);
	memset(i->bytes + IMAGE_MAP, 0xff, IMAGE_CODE_SIZE / 128);
}

/* Its offset in the image. */
static inline uint32_t image_blob(struct hotspot_image *i, uint32_t segment, uint32_t segments,
				  const char *name, uint32_t words)
{
	uint32_t at = IMAGE_CODE + segment * 128 + IMAGE_BLOCK, size = segments * 128 - IMAGE_BLOCK;

	for (uint32_t k = 0; k < segments; k++)
		i->bytes[IMAGE_MAP + segment + k] = k;
	i->bytes[at - IMAGE_BLOCK + 8] = 1; /* used */
	image_put(i, at, image_string(i, name), 8);
	image_put(i, at + 8, size, 4);
	image_put(i, at + 12, words, 4);
	image_put(i, at + 16, words ? 9 : 0, i->is_moved ? 2 : 4);
	if (i->is_moved) {
		image_put(i, at + 40, IMAGE_HEADER, 4);
		image_put(i, at + 44, size / 2, 4);
	} else {
		image_put(i, at + 24, IMAGE_BASE + at + IMAGE_HEADER, 8);
		image_put(i, at + 32, IMAGE_BASE + at + size / 2, 8);
	}
	return at;
}

static inline uint64_t image_symbol(struct hotspot_image *i, uint32_t *at, const char *text)
{
	uint32_t start = *at = (*at + 7) & ~7u;

	image_put(i, start, 0xabcd0001, 4); /* a hash, and its references */
	image_put(i, start + 4, strlen(text), 2);
	memcpy(i->bytes + start + 6, text, strlen(text));
	*at += 6 + strlen(text);
	return IMAGE_BASE + start;
}

/* A method of 20 bytes of bytecode, with lines 10 (from 0), 13 (from 8) and 300 (from 9). */
/* nops; 13: ifeq 3; 19: return */
static const uint8_t IMAGE_BYTECODES[20] = {[13] = 0x99, 0xff, 0xf6, [19] = 0xb1};
#define IMAGE_BYTECODES_OF(method) ((method) + 0xa0 + 32)

static inline uint64_t image_method(struct hotspot_image *i, uint32_t at, const char *class_name,
				    const char *name, const char *signature, const char *file)
{
	uint32_t pool = at + 0x20, holder = at + 0x80, code = at + 0xa0, symbols = at + 0x100;
	uint32_t x = i->is_moved;			    /* what UNSIGNED5 leaves out */
	const uint8_t lines[] = {0xff,	     0 + x, 20 + x, /* 0, +10 */
				 8 << 3 | 3,		    /* 8: 13 */
				 0xff,	     2 + x, (574 & 63) + 192 + x,
				 0,	     0};

	image_put(i, at + 8, IMAGE_BASE + code, 8);
	image_put(i, pool + 8, IMAGE_BASE + holder, 8);
	image_put(i, pool + 16, 4, 4);
	image_put(i, pool + 20, *file ? 2 : 0, 2);
	image_put(i, holder + 8, image_symbol(i, &symbols, class_name), 8);
	image_put(i, pool + 32 + 8, image_symbol(i, &symbols, name), 8);
	image_put(i, pool + 32 + 16, image_symbol(i, &symbols, file), 8);
	image_put(i, pool + 32 + 24, image_symbol(i, &symbols, signature), 8);
	image_put(i, code + 8, IMAGE_BASE + pool, 8);
	image_put(i, code + 16, 1, 2);
	image_put(i, code + 18, 20, 2);
	image_put(i, code + 20, 1, 2);
	image_put(i, code + 24, *signature ? 3 : 0, 2);
	memcpy(i->bytes + code + 32, IMAGE_BYTECODES, sizeof(IMAGE_BYTECODES));
	memcpy(i->bytes + code + 32 + 20, lines, sizeof(lines));
	/* 574 = 62 + 192 + (5 << 6): +287 */
	image_put(i, code + 32 + 20 + 6, 254 + x, 1);
	image_put(i, code + 32 + 20 + 7, 5 + x, 1);
	return IMAGE_BASE + at;
}

/* One place: at 0x40, the inlined method (index 9) in the method (index 3). */
static inline void image_debug_data(struct hotspot_image *i, uint32_t blob)
{
	uint32_t x = i->is_moved, places = i->is_moved ? IMAGE_DEBUG : blob + 0x600;
	uint32_t scopes = places + 32, methods = places + 0x80;
	const uint8_t records[] = {0, 0 + x, 1 + x, 4 + x, 1 + x, 2 + x, 10 + x};

	image_put(i, places, 0x40, 4);
	image_put(i, places + 4, 4, 4);
	image_put(i, places + 16, 0x7fffffff, 4);
	memcpy(i->bytes + scopes, records, sizeof(records));
	image_put(i, methods, i->method, 8);
	image_put(i, methods + 8, i->inlined, 8);
	if (i->is_moved) {
		image_put(i, blob + 48, IMAGE_BASE + methods - 8, 8);
		image_put(i, blob + 56, 8, 4);
		image_put(i, blob + 128, IMAGE_BASE + places, 8);
		image_put(i, blob + 136, 0x80, 4);
		image_put(i, blob + 120, 32, 4);
		image_put(i, blob + 100, 0, 4);
	} else {
		image_put(i, blob + 100, 0x600, 4);
		image_put(i, blob + 104, 0x620, 4);
		image_put(i, blob + 112, IMAGE_BASE + scopes, 8);
		image_put(i, blob + 124, 0x680, 4);
	}
}

/* mov [rsp-0x14000],eax; push rbp; sub rsp,0x10; nop …; add rsp,0x10; pop rbp; ret */
static const uint8_t IMAGE_METHOD_CODE[] = {0x89, 0x84, 0x24, 0,    0xc0, 0xfe, 0xff, 0x55,
					    0x48, 0x83, 0xec, 0x10, 0x90, 0x90, 0x90, 0x90,
					    0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};

static inline void image_blobs(struct hotspot_image *i)
{
	uint32_t at = image_blob(i, IMAGE_COMPILED, 32, "nmethod", IMAGE_FRAME_WORDS);

	image_put(i, at + 64, i->method, 8);
	image_put(i, at + 72, IMAGE_COMPILE_ID, 4);
	image_put(i, at + 80, i->is_moved ? 0 : IMAGE_BASE + at + IMAGE_HEADER,
		  i->is_moved ? 2 : 8);
	image_put(i, at + 96, 8, 4);
	memcpy(i->bytes + at + IMAGE_HEADER, IMAGE_METHOD_CODE, sizeof(IMAGE_METHOD_CODE));
	image_debug_data(i, at);
	at = image_blob(i, IMAGE_STUBS, 16, "StubRoutines (1)", 0);
	memcpy(i->bytes + at + IMAGE_HEADER, "\x55\x48\x8b\xec\x90\x90\xc9\xc3", 8);
	image_blob(i, IMAGE_INTERPRETER, 24, "Interpreter", 0);
	image_put(i, IMAGE_CODE + 0x100, 0x200, 4);
	image_put(i, IMAGE_CODE + 0x108, image_string(i, "iadd"), 8);
	image_put(i, IMAGE_CODE + 0x300, 0x200, 4);
	image_put(i, IMAGE_CODE + 0x308, image_string(i, "method entry point (kind = zerolocals)"),
		  8);
}

static inline void image_counter(struct hotspot_image *i)
{
	image_put(i, IMAGE_PERF, 0xc0c0feca, 4);
	image_put(i, IMAGE_PERF + 24, 32, 4);
	image_put(i, IMAGE_PERF + 28, 3, 4);
	image_put(i, IMAGE_PERF + 32, 48, 4);
	image_put(i, IMAGE_PERF + 36, 20, 4);
	image_put(i, IMAGE_PERF + 48, 40, 4);
	memcpy(i->bytes + IMAGE_PERF + 52, "sun.ci.other", 13);
	image_put(i, IMAGE_PERF + 80, 56, 4);
	image_put(i, IMAGE_PERF + 84, 20, 4);
	image_put(i, IMAGE_PERF + 96, 48, 4);
	memcpy(i->bytes + IMAGE_PERF + 100, "sun.ci.totalCompiles", 21);
	image_put(i, IMAGE_PERF + 128, 1234, 8);
	image_put(i, IMAGE_PERF + 136, 64, 4);
	image_put(i, IMAGE_PERF + 140, 20, 4);
	image_put(i, IMAGE_PERF + 152, 56, 4);
	memcpy(i->bytes + IMAGE_PERF + 156, "java.cls.unloadedClasses", 25);
	image_put(i, IMAGE_UNLOADS, 5, 8);
}

static inline void image_flags(struct hotspot_image *i)
{
	static const char *const NAMES[] = {"UseCompressedOops", "PreserveFramePointer",
					    "PreserveFramePointerNot"};

	for (uint32_t k = 0; k < 3; k++) {
		image_put(i, IMAGE_FLAGS + 32 * k, IMAGE_BASE + IMAGE_FLAG_VALUES + k, 8);
		image_put(i, IMAGE_FLAGS + 32 * k + 8, image_string(i, NAMES[k]), 8);
		i->bytes[IMAGE_FLAG_VALUES + k] = k != 1;
	}
}

static inline void image_init(struct hotspot_image *i, bool is_moved)
{
	memset(i, 0, sizeof(*i));
	i->is_moved = is_moved;
	i->next_string = IMAGE_STRINGS;
	image_exports(i);
	image_statics(i);
	image_fields(i);
	image_heap(i);
	i->method = image_method(i, IMAGE_METHODS, "a/b/Outer", "run", "(I[[Ljava/lang/String;)V",
				 "Outer.java");
	i->inlined = image_method(i, IMAGE_METHODS + 0x200, "a/W$$Lambda+0x00007f86a4001000",
				  "call", "()J", "");
	image_blobs(i);
	image_counter(i);
	image_flags(i);
}

static inline uint64_t image_code_of(uint32_t segment)
{
	return IMAGE_BASE + IMAGE_CODE + segment * 128 + IMAGE_BLOCK + IMAGE_HEADER;
}

#endif
