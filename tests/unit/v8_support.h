/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of V8's readers: the constants of four versions, and a heap in an array of bytes that objects are put into. To
 * be included after cmocka.h, unless nothing is asserted (fuzzers).
 */
#ifndef TESTS_UNIT_V8_SUPPORT_H
#define TESTS_UNIT_V8_SUPPORT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/answers.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/script.h"
#include "runtimes/v8/v8.h"

enum v8_version { V8_NODE_18, V8_NODE_20, V8_NODE_24, V8_NODE_26, V8_VERSIONS };

#define NONE INT32_MIN

/* As the builds of npm have them. */
static const struct {
	const char *name;
	int32_t value[V8_VERSIONS];
} v8_constants[] = {
	{"v8dbg_TaggedSize", {8, 8, 8, 8}},
	{"v8dbg_SmiShiftSize", {31, 31, 31, 31}},
	{"v8dbg_SmiValueShift", {1, 1, 1, 1}},
	{"v8dbg_HeapObjectTag", {1, 1, 1, 1}},
	{"v8dbg_HeapObjectTagMask", {3, 3, 3, 3}},
	{"v8dbg_off_fp_context_or_frame_type", {-8, -8, -8, -8}},
	{"v8dbg_off_fp_function", {-16, -16, -16, -16}},
	{"v8dbg_off_fp_bytecode_offset", {-40, -40, -40, -40}},
	{"v8dbg_class_JSFunction__shared__SharedFunctionInfo", {24, 24, 32, 32}},
	{"v8dbg_class_Map__instance_type__uint16_t", {12, 12, 12, 12}},
	{"v8dbg_type_Map__MAP_TYPE", {250, 255, 272, 278}},
	{"v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", {257, 262, 282, 288}},
	{"v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE", {256, 261, 280, 286}},
	{"v8dbg_type_Script__SCRIPT_TYPE", {170, 167, 167, 166}},
	{"v8dbg_type_DebugInfo__DEBUG_INFO_TYPE", {156, 153, 154, 153}},
	{"v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE", {195, 191, 186, 185}},
	{"v8dbg_type_Code__CODE_TYPE", {240, 245, 187, 186}},
	{"v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE", {NONE, 252, 192, 192}},
	{"v8dbg_type_InterpreterData__INTERPRETER_DATA_TYPE", {162, 159, 188, 187}},
	{"v8dbg_type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE",
	 {NONE, NONE, 195, 195}},
	{"v8dbg_type_FixedArray__FIXED_ARRAY_TYPE", {179, 175, 205, 205}},
	{"v8dbg_type_UncompiledDataWithPreparseData__UNCOMPILED_DATA_WITH_PREPARSE_DATA_TYPE",
	 {217, 220, 175, 174}},
	{"v8dbg_type_UncompiledDataWithoutPreparseDataWithJob__"
	 "UNCOMPILED_DATA_WITHOUT_PREPARSE_DATA_WITH_JOB_TYPE",
	 {220, 223, 178, 177}},
	{"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object", {16, 16, NONE, NONE}},
	{"v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
	 {NONE, NONE, 24, 24}},
	{"v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject", {32, 32, NONE, NONE}},
	{"v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", {NONE, NONE, 40, 40}},
	{"v8dbg_class_SharedFunctionInfo__flags__int", {48, 48, 56, 56}},
	{"v8dbg_scopeinfo_idx_ncontextlocals", {2, 2, 2, 2}},
	{"v8dbg_scopeinfo_idx_first_vars", {3, 3, 5, 5}},
	{"v8dbg_class_Script__source__Object", {8, 8, 8, 8}},
	{"v8dbg_class_Script__name__Object", {16, 16, 16, 16}},
	{"v8dbg_class_Script__line_ends__Object", {56, 56, 56, 56}},
	{"v8dbg_class_Script__compiled_lazy_function_positions__Object", {NONE, 96, NONE, NONE}},
	{"v8dbg_class_Script__compiled_lazy_function_positions__Tagged_Object_",
	 {NONE, NONE, 96, 96}},
	{"v8dbg_class_String__length__int32_t", {12, 12, 12, 12}},
	{"v8dbg_class_SeqOneByteString__chars__char", {16, 16, 16, 16}},
	{"v8dbg_class_ConsString__first__String", {16, 16, 16, 16}},
	{"v8dbg_class_ConsString__second__String", {24, 24, 24, 24}},
	{"v8dbg_class_SlicedString__parent__String", {16, 16, 16, 16}},
	{"v8dbg_class_SlicedString__offset__SMI", {24, 24, 24, 24}},
	{"v8dbg_class_ThinString__actual__String", {16, 16, 16, 16}},
	{"v8dbg_class_ExternalString__resource__Object", {16, 16, 16, 16}},
	{"v8dbg_FirstNonstringType", {128, 128, 128, 128}},
	{"v8dbg_class_UncompiledData__inferred_name__String", {8, 8, 8, 8}},
	{"v8dbg_class_UncompiledData__start_position__int32_t", {16, 16, 16, 16}},
	{"v8dbg_class_BytecodeArray__data__uintptr_t", {56, 54, 64, 64}},
	{"v8dbg_class_InstructionStream__instruction_start__uintptr_t", {NONE, 16, 32, 32}},
	{"v8dbg_class_Code__instruction_start__Address", {NONE, NONE, 40, 40}},
	{"v8dbg_class_Code__instruction_start__uintptr_t", {128, NONE, NONE, NONE}},
	{"v8dbg_class_Code__instruction_size__int", {40, NONE, 56, 56}},
	{"v8dbg_class_Code__flags__uint32_t", {48, NONE, 52, 52}},
	{"v8dbg_class_Code__wrapper__Tagged_CodeWrapper_", {NONE, NONE, 24, 24}},
	{"v8dbg_class_Code__deoptimization_data__FixedArray", {NONE, 16, NONE, NONE}},
	{"v8dbg_class_Code__source_position_table__ByteArray", {NONE, 24, NONE, NONE}},
	{"v8dbg_CodeKindBaseline", {11, 11, 10, 11}},
	{"v8dbg_DeoptimizationDataInlinedFunctionCountIndex", {NONE, 1, 1, 1}},
	{"v8dbg_DeoptimizationDataLiteralArrayIndex", {NONE, 2, 3, 3}},
	{"v8dbg_DeoptimizationDataInliningPositionsIndex", {NONE, 7, 8, 8}},
	{"v8dbg_DeoptimizationDataSharedFunctionInfoIndex", {NONE, 6, NONE, NONE}},
	{"v8dbg_DeoptimizationDataWrappedSharedFunctionInfoIndex", {NONE, NONE, 7, 7}},
	{"v8dbg_frametype_EntryFrame", {1, 1, 1, 1}},
	{"v8dbg_frametype_WasmFrame", {4, 4, 4, 24}},
	{"v8dbg_frametype_WasmToJsFrame", {5, 5, 5, 25}},
	{"v8dbg_frametype_IrregexpFrame", {NONE, 27, 31, 23}},
	{"v8dbg_type_WasmModuleObject__WASM_MODULE_OBJECT_TYPE", {2144, 2156, 2163, 2163}},
	{"v8dbg_type_WasmInstanceObject__WASM_INSTANCE_OBJECT_TYPE", {NONE, NONE, 2160, 2160}},
	{"v8dbg_class_Script__wasm_managed_native_module__Object", {80, 80, NONE, NONE}},
	{"v8dbg_class_Script__wasm_managed_native_module__Tagged_Object_", {NONE, NONE, 80, 80}},
	{"_ZN2v88internal7Version6major_E", {10, 11, 13, 14}},
	{"_ZN2v88internal7Version6minor_E", {2, 3, 6, 6}},
	{"_ZN2v88internal7Version6build_E", {154, 244, 233, 202}},
	{"_ZN2v88internal7Version6patch_E", {26, 8, 17, 34}},
};

/* Which version's they are; and one of them changed. */
struct v8_forged {
	enum v8_version version;
	const char *changed; /* NULL: none */
	int32_t to;	     /* NONE: it is not there */
};

static inline int v8_forged_constant(void *context, const char *symbol, uint32_t *value)
{
	const struct v8_forged *f = context;
	int32_t found = NONE;

	for (size_t i = 0; i < sizeof(v8_constants) / sizeof(*v8_constants); i++) {
		if (!strcmp(v8_constants[i].name, symbol))
			found = v8_constants[i].value[f->version];
	}
	if (f->changed && !strcmp(f->changed, symbol))
		found = f->to;
	if (found == NONE)
		return -ENOENT;
	*value = found;
	return 0;
}

/* ---- a heap ---------------------------------------------------------------------------------- */

#define HEAP_BASE 0x7f0000100000u
#define HEAP_SIZE (1u << 20)
#define SMI(n)	  ((uint64_t)(uint32_t)(n) << 32)

/* Types of strings are the same in all versions. */
enum { ONE_BYTE = 40, TWO_BYTE = 32, CONS_ONE = 41, EXTERNAL_ONE = 42, EXTERNAL_TWO = 34 };
enum { SLICED_ONE = 43, THIN_ONE = 45, UNCACHED_ONE = 58, ODDBALL = 131 };

struct v8_heap {
	unsigned char bytes[HEAP_SIZE];
	size_t used;
	uint64_t maps[4096]; /* by type */
	uint64_t meta_map;
	uint32_t reads;
	struct v8_layout layout;
	struct target_memory memory;
	struct v8_scripts *scripts;
	struct v8_reader reader;
};

static inline int v8_heap_read(void *context, void *to, size_t size, uint64_t address)
{
	struct v8_heap *h = context;

	h->reads++;
	if (address < HEAP_BASE || address - HEAP_BASE > HEAP_SIZE ||
	    size > HEAP_SIZE - (address - HEAP_BASE))
		return -ENODATA;
	memcpy(to, h->bytes + (address - HEAP_BASE), size);
	return 0;
}

static inline void v8_heap_refill(struct v8_heap *h)
{
	h->memory = (struct target_memory){
		.read = v8_heap_read, .context = h, .bytes_left = 32 << 20, .reads_left = 4000};
	h->reads = 0;
}

static inline void v8_heap_put(struct v8_heap *h, uint64_t tagged, uint32_t offset,
			       const void *bytes, size_t size)
{
	size_t at = tagged - 1 + offset - HEAP_BASE;

	if (at <= HEAP_SIZE && size <= HEAP_SIZE - at)
		memcpy(h->bytes + at, bytes, size);
}

static inline void v8_heap_word(struct v8_heap *h, uint64_t tagged, uint32_t offset, uint64_t word)
{
	v8_heap_put(h, tagged, offset, &word, sizeof(word));
}

static inline void v8_heap_u32(struct v8_heap *h, uint64_t tagged, uint32_t offset, uint32_t word)
{
	v8_heap_put(h, tagged, offset, &word, sizeof(word));
}

static inline uint64_t v8_heap_space(struct v8_heap *h, size_t size, size_t alignment)
{
	uint64_t address;

	h->used = (h->used + alignment - 1) & ~(alignment - 1);
	address = HEAP_BASE + h->used;
	h->used += size;
	if (h->used > HEAP_SIZE)
		abort();
	return address;
}

static inline uint64_t v8_heap_map(struct v8_heap *h, int32_t type)
{
	if (!h->maps[type]) {
		uint16_t short_type = type;

		h->maps[type] = v8_heap_space(h, 80, 8) + 1;
		v8_heap_word(h, h->maps[type], 0, h->meta_map);
		v8_heap_put(h, h->maps[type], h->layout.map_type, &short_type, 2);
	}
	return h->maps[type];
}

/* A new object of this type; its fields are 0. */
static inline uint64_t v8_heap_object(struct v8_heap *h, int32_t type, size_t size)
{
	uint64_t tagged = v8_heap_space(h, size, 8) + 1;

	v8_heap_word(h, tagged, 0, v8_heap_map(h, type));
	return tagged;
}

static inline void v8_heap__init(struct v8_heap *h, enum v8_version version)
{
	struct v8_forged forged = {.version = version};

	memset(h, 0, sizeof(*h));
	v8_layout__fill(&h->layout, v8_forged_constant, &forged);
	h->used = 64;
	h->meta_map = v8_heap_space(h, 80, 8) + 1;
	h->maps[h->layout.type_map] = h->meta_map;
	v8_heap_word(h, h->meta_map, 0, h->meta_map);
	v8_heap_put(h, h->meta_map, h->layout.map_type, &(uint16_t){h->layout.type_map}, 2);
	h->scripts = v8_scripts__new();
	v8_reader__init(&h->reader, &h->layout, h->scripts);
	h->reader.memory = &h->memory;
	v8_heap_refill(h);
}

static inline void v8_heap__fini(struct v8_heap *h)
{
	v8_scripts__free(h->scripts);
}

/* An empty heap. The one before is gone. */
static inline struct v8_heap *v8_heap_fresh(enum v8_version version)
{
	static struct v8_heap h;

	v8_heap__fini(&h);
	v8_heap__init(&h, version);
	return &h;
}

static inline uint64_t v8_heap_string(struct v8_heap *h, const char *text)
{
	size_t length = strlen(text);
	uint64_t s = v8_heap_object(h, ONE_BYTE, (16 + length + 7) & ~(size_t)7);

	v8_heap_u32(h, s, 12, length);
	v8_heap_put(h, s, 16, text, length);
	return s;
}

static inline uint64_t v8_heap_wide(struct v8_heap *h, const uint16_t *units, size_t length)
{
	uint64_t s = v8_heap_object(h, TWO_BYTE, (16 + 2 * length + 7) & ~(size_t)7);

	v8_heap_u32(h, s, 12, length);
	v8_heap_put(h, s, 16, units, 2 * length);
	return s;
}

/* A string of another kind: two words behind the length. */
static inline uint64_t v8_heap_linked(struct v8_heap *h, int32_t type, uint32_t length,
				      uint64_t first, uint64_t second)
{
	uint64_t s = v8_heap_object(h, type, 32);

	v8_heap_u32(h, s, 12, length);
	v8_heap_word(h, s, 16, first);
	v8_heap_word(h, s, 24, second);
	return s;
}

static inline uint64_t v8_heap_script(struct v8_heap *h, uint64_t source, uint64_t name, int32_t id)
{
	uint64_t s = v8_heap_object(h, h->layout.type_script, 136), undefined;

	undefined = v8_heap_object(h, ODDBALL, 48);
	v8_heap_word(h, s, 8, source);
	v8_heap_word(h, s, 16, name ? name : undefined);
	v8_heap_word(h, s, 56, undefined);
	v8_heap_word(h, s, 64, SMI(id));
	v8_heap_word(h, s, h->layout.script_source_url, undefined);
	return s;
}

/* A ScopeInfo without locals: name and inferred name (0: none), start of the parameters. */
static inline uint64_t v8_heap_scope(struct v8_heap *h, uint64_t name, uint64_t inferred,
				     int32_t start)
{
	const struct v8_layout *l = &h->layout;
	uint64_t s = v8_heap_object(h, l->type_scope_info, 128);
	uint32_t flags = 2 | (name ? 1u << 12 : 0) | (inferred ? 1u << 14 : 0);
	uint32_t slot = l->scope_first;

	if (l->scope_flags_raw)
		v8_heap_u32(h, s, 8, flags);
	else
		v8_heap_word(h, s, 8, SMI(flags));
	if (l->scope_flags_raw)
		v8_heap_word(h, s, 8 + 8 * 3, SMI(start));
	if (name) {
		v8_heap_word(h, s, 8 + 8 * slot, name);
		slot += 2;
	}
	if (inferred)
		v8_heap_word(h, s, 8 + 8 * slot++, inferred);
	if (!l->scope_flags_raw)
		v8_heap_word(h, s, 8 + 8 * slot, SMI(start));
	return s;
}

static inline uint64_t v8_heap_sfi(struct v8_heap *h, uint64_t data, uint64_t name, uint64_t script,
				   uint32_t number)
{
	const struct v8_layout *l = &h->layout;
	uint64_t s = v8_heap_object(h, l->type_sfi, l->sfi_size);

	v8_heap_word(h, s, 8, data);
	v8_heap_word(h, s, l->sfi_name, name);
	v8_heap_word(h, s, l->sfi_script, script);
	v8_heap_u32(h, s, l->sfi_literal_id, number);
	if (l->sfi_unique_id > 0)
		v8_heap_u32(h, s, l->sfi_unique_id, number);
	return s;
}

/* A byte array, or one of words. */
static inline uint64_t v8_heap_bytes(struct v8_heap *h, const void *bytes, size_t count)
{
	uint64_t a = v8_heap_object(h, 190, (16 + count + 7) & ~(size_t)7);

	v8_heap_word(h, a, 8, SMI(count));
	v8_heap_put(h, a, 16, bytes, count);
	return a;
}

static inline uint64_t v8_heap_array(struct v8_heap *h, const uint64_t *words, size_t count)
{
	uint64_t a = v8_heap_object(h, h->layout.type_fixed_array, 16 + 8 * count);

	v8_heap_word(h, a, 8, SMI(count));
	v8_heap_put(h, a, 16, words, 8 * count);
	return a;
}

#endif
