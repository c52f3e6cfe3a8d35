/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/layout.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include <sysprof/runtime_info.h>

#include "elf/elf_exports.h"
#include "elf/elf_file.h"
#include "runtimes/v8/v8.h"

#define COUNT(array)  (sizeof(array) / sizeof(*(array)))
#define SYMBOL_MAX    128
#define OFFSET_MAX    1024 /* of anything in an object, and of anything from a frame pointer */
#define TYPE_MAX      0xffff
#define VERSION_OF(l) ((l)->major * 100 + (l)->minor)

const char *v8_verdict__text(enum v8_verdict verdict)
{
#define V8_VERDICT_TEXT_(name, text) [name] = (text),
	static const char *const texts[] = {V8_VERDICTS(V8_VERDICT_TEXT_)};
#undef V8_VERDICT_TEXT_

	return (unsigned int)verdict < COUNT(texts) ? texts[verdict] : "";
}

/* A constant: where it goes, and its names behind "v8dbg_", of which a build has one. */
struct constant {
	size_t field;
	const char *names[4];
	bool optional;
};

#define FIELD(name) offsetof(struct v8_layout, name)

static const struct constant constants[] = {
	{FIELD(off_context), {"off_fp_context_or_frame_type"}, false},
	{FIELD(off_function), {"off_fp_function"}, false},
	{FIELD(off_bytecode_offset), {"off_fp_bytecode_offset"}, false},
	{FIELD(off_shared), {"class_JSFunction__shared__SharedFunctionInfo"}, false},
	{FIELD(map_type), {"class_Map__instance_type__uint16_t"}, false},
	{FIELD(type_map), {"type_Map__MAP_TYPE"}, false},
	{FIELD(type_sfi), {"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"}, false},
	{FIELD(type_scope_info), {"type_ScopeInfo__SCOPE_INFO_TYPE"}, false},
	{FIELD(type_script), {"type_Script__SCRIPT_TYPE"}, false},
	{FIELD(type_debug_info), {"type_DebugInfo__DEBUG_INFO_TYPE"}, true},
	{FIELD(type_bytecode_array), {"type_BytecodeArray__BYTECODE_ARRAY_TYPE"}, false},
	{FIELD(type_code), {"type_Code__CODE_TYPE"}, false},
	{FIELD(type_instruction_stream), {"type_InstructionStream__INSTRUCTION_STREAM_TYPE"}, true},
	{FIELD(type_interpreter_data), {"type_InterpreterData__INTERPRETER_DATA_TYPE"}, true},
	{FIELD(type_sfi_wrapper),
	 {"type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE"},
	 true},
	{FIELD(type_fixed_array), {"type_FixedArray__FIXED_ARRAY_TYPE"}, false},
	{FIELD(type_uncompiled_first),
	 {"type_UncompiledDataWithPreparseData__UNCOMPILED_DATA_WITH_PREPARSE_DATA_TYPE"},
	 true},
	{FIELD(type_uncompiled_last),
	 {"type_UncompiledDataWithoutPreparseDataWithJob__"
	  "UNCOMPILED_DATA_WITHOUT_PREPARSE_DATA_WITH_JOB_TYPE"},
	 true},
	{FIELD(sfi_name),
	 {"class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
	  "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
	  "class_SharedFunctionInfo__name_or_scope_info__Object"},
	 false},
	{FIELD(sfi_script),
	 {"class_SharedFunctionInfo__script__Tagged_HeapObject_",
	  "class_SharedFunctionInfo__raw_script__Tagged_Object_",
	  "class_SharedFunctionInfo__script_or_debug_info__HeapObject"},
	 false},
	{FIELD(sfi_flags), {"class_SharedFunctionInfo__flags__int"}, false},
	{FIELD(scope_locals), {"scopeinfo_idx_ncontextlocals"}, false},
	{FIELD(scope_first), {"scopeinfo_idx_first_vars"}, false},
	{FIELD(script_source), {"class_Script__source__Object"}, false},
	{FIELD(script_name), {"class_Script__name__Object"}, false},
	{FIELD(script_line_ends), {"class_Script__line_ends__Object"}, false},
	/* two fields before it; older versions do not have that one */
	{FIELD(script_source_url),
	 {"class_Script__compiled_lazy_function_positions__Tagged_Object_",
	  "class_Script__compiled_lazy_function_positions__Object"},
	 true},
	{FIELD(string_length), {"class_String__length__int32_t"}, false},
	{FIELD(string_chars), {"class_SeqOneByteString__chars__char"}, false},
	{FIELD(cons_first), {"class_ConsString__first__String"}, false},
	{FIELD(cons_second), {"class_ConsString__second__String"}, false},
	{FIELD(sliced_parent), {"class_SlicedString__parent__String"}, false},
	{FIELD(sliced_offset), {"class_SlicedString__offset__SMI"}, false},
	{FIELD(thin_actual), {"class_ThinString__actual__String"}, false},
	{FIELD(external_resource), {"class_ExternalString__resource__Object"}, false},
	{FIELD(first_nonstring), {"FirstNonstringType"}, false},
	{FIELD(uncompiled_name), {"class_UncompiledData__inferred_name__String"}, true},
	{FIELD(uncompiled_start), {"class_UncompiledData__start_position__int32_t"}, true},
	{FIELD(bytecodes), {"class_BytecodeArray__data__uintptr_t"}, false},
	{FIELD(stream_start), {"class_InstructionStream__instruction_start__uintptr_t"}, true},
	{FIELD(code_start), {"class_Code__instruction_start__Address"}, true},
	{FIELD(code_size), {"class_Code__instruction_size__int"}, true},
	{FIELD(code_flags), {"class_Code__flags__uint32_t"}, true},
	{FIELD(code_deopt),
	 {"class_Code__deoptimization_data__FixedArray",
	  "class_Code__deoptimization_data__Tagged_FixedArray_"},
	 true},
	{FIELD(code_positions),
	 {"class_Code__source_position_table__ByteArray",
	  "class_Code__source_position_table__Tagged_ByteArray_"},
	 true},
	{FIELD(kind_baseline), {"CodeKindBaseline"}, true},
	{FIELD(deopt_count), {"DeoptimizationDataInlinedFunctionCountIndex"}, true},
	{FIELD(deopt_literals), {"DeoptimizationDataLiteralArrayIndex"}, true},
	{FIELD(deopt_inlining), {"DeoptimizationDataInliningPositionsIndex"}, true},
	/* directly, or behind a wrapper */
	{FIELD(deopt_sfi),
	 {"DeoptimizationDataSharedFunctionInfoIndex",
	  "DeoptimizationDataWrappedSharedFunctionInfoIndex",
	  "DeoptimizationDataSharedFunctionInfoWrapperIndex"},
	 true},
	{FIELD(type_wasm_module), {"type_WasmModuleObject__WASM_MODULE_OBJECT_TYPE"}, true},
	{FIELD(type_wasm_instance), {"type_WasmInstanceObject__WASM_INSTANCE_OBJECT_TYPE"}, true},
	{FIELD(script_wasm),
	 {"class_Script__wasm_managed_native_module__Tagged_Object_",
	  "class_Script__wasm_managed_native_module__Object"},
	 true},
	{FIELD(frame_wasm), {"frametype_WasmFrame"}, true},
};

/* Values that every V8 on a 64-bit machine has. */
static const struct {
	const char *name;
	int32_t value;
} certain[] = {
	{"HeapObjectTag", 1},
	{"HeapObjectTagMask", 3},
	{"SmiTag", 0},
	{"SmiTagMask", 1},
	{"class_HeapObject__map__Map", 0},
	{"off_fp_context_or_frame_type", -8},
	{"off_fp_function", -16},
	{"StringRepresentationMask", 7},
	{"StringEncodingMask", 8},
	{"OneByteStringTag", 8},
	{"SeqStringTag", 0},
	{"ConsStringTag", 1},
	{"ExternalStringTag", 2},
	{"SlicedStringTag", 3},
	{"ThinStringTag", 5},
	{"FirstNonstringType", 128},
	{"class_FixedArray__data__uintptr_t", 16},
	{"class_FixedArrayBase__length__SMI", 8},
};

/* Where the code of a frame may be: in V8's file, or made while the program runs. */
enum { OF_FILE, MADE, MADE_LEAF };

static const struct {
	const char *name, *text;
	int where;
} frame_types[] = {
	{"Entry", "entry", OF_FILE},
	{"ConstructEntry", "entry", OF_FILE},
	{"Exit", "exit", OF_FILE},
	{"BuiltinExit", "exit", OF_FILE},
	{"ApiCallbackExit", "exit", OF_FILE},
	{"ApiAccessorExit", "exit", OF_FILE},
	{"ApiConstructExit", "exit", OF_FILE},
	{"ApiNamedAccessorExit", "exit", OF_FILE},
	{"ApiIndexedAccessorExit", "exit", OF_FILE},
	{"Stub", "stub", OF_FILE},
	{"Internal", "internal", OF_FILE},
	{"Construct", "construct", OF_FILE},
	{"FastConstruct", "construct", OF_FILE},
	{"Builtin", "builtin", OF_FILE},
	{"BuiltinContinuation", "continuation", OF_FILE},
	{"JavaScriptBuiltinContinuation", "continuation", OF_FILE},
	{"JavaScriptBuiltinContinuationWithCatch", "continuation", OF_FILE},
	{"TurbofanStubWithContext", "stub", OF_FILE},
	{"Native", "native", OF_FILE},
	{"Irregexp", "regular expression", MADE_LEAF},
	{"Wasm", "WebAssembly", OF_FILE},
	{"WasmToJs", "WebAssembly to JavaScript", MADE},
	{"WasmToJsFunction", "WebAssembly to JavaScript", MADE},
	{"JsToWasm", "JavaScript to WebAssembly", MADE},
	{"CWasmEntry", "WebAssembly entry", MADE},
	{"WasmExit", "WebAssembly exit", MADE},
	{"WasmDebugBreak", "WebAssembly", MADE},
	{"WasmLiftoffSetup", "WebAssembly", MADE},
	{"WasmSegmentStart", "WebAssembly", MADE},
	{"StackSwitch", "WebAssembly", MADE},
	{"WasmCompileLazy", "WebAssembly", MADE},
};

struct source {
	v8_constant_fn constant;
	void *context;
	int err; /* what ended it */
};

/* Is there one of this name? */
static bool find(struct source *s, const char *name, int32_t *value)
{
	char symbol[SYMBOL_MAX];
	uint32_t read;
	int err;

	if (s->err)
		return false;
	snprintf(symbol, sizeof(symbol), "v8dbg_%s", name);
	err = s->constant(s->context, symbol, &read);
	if (err && err != -ENOENT)
		s->err = err;
	if (!err)
		*value = (int32_t)read;
	return !err;
}

static bool read_constants(struct v8_layout *l, struct source *s)
{
	bool all = true;

	for (size_t i = 0; i < COUNT(constants); i++) {
		const struct constant *c = &constants[i];
		int32_t *field = (int32_t *)((char *)l + c->field);
		bool found = false;

		*field = V8_NO_OFFSET;
		for (size_t k = 0; k < COUNT(c->names) && c->names[k] && !found; k++)
			found = find(s, c->names[k], field);
		/* larger than anything can be: it would be read far away, or wrap */
		if (found && (*field > TYPE_MAX || *field < -OFFSET_MAX))
			return false;
		all &= found || c->optional;
	}
	return all;
}

static bool read_certain(struct source *s)
{
	for (size_t i = 0; i < COUNT(certain); i++) {
		int32_t value;

		if (find(s, certain[i].name, &value) && value != certain[i].value)
			return false;
	}
	return true;
}

static void read_frame_types(struct v8_layout *l, struct source *s)
{
	for (size_t i = 0; i < COUNT(frame_types); i++) {
		char name[SYMBOL_MAX];
		int32_t value;

		snprintf(name, sizeof(name), "frametype_%sFrame", frame_types[i].name);
		if (!find(s, name, &value) || value <= 0 || value >= V8_FRAME_TYPES)
			continue;
		l->frame_types[value] = frame_types[i].text;
		if (frame_types[i].where != OF_FILE)
			l->frames_made |= 1ull << value;
		if (frame_types[i].where == MADE_LEAF)
			l->frames_made_leaf |= 1ull << value;
	}
}

static bool read_version(struct v8_layout *l, struct source *s)
{
	static const struct {
		const char *name;
		size_t field;
	} parts[] = {
		{"_ZN2v88internal7Version6major_E", FIELD(major)},
		{"_ZN2v88internal7Version6minor_E", FIELD(minor)},
		{"_ZN2v88internal7Version6build_E", FIELD(build)},
	};

	for (size_t i = 0; i < COUNT(parts); i++) {
		uint32_t value;

		if (s->constant(s->context, parts[i].name, &value) || value > 0xffff)
			return false;
		*(uint32_t *)((char *)l + parts[i].field) = value;
	}
	return true;
}

static bool is_known(const struct v8_layout *l)
{
	return l->major >= 10 && l->major <= 14;
}

/* The kind of a module's scope, whose number has changed back and forth. */
static int32_t module_scope(const struct v8_layout *l)
{
	return VERSION_OF(l) >= 1300 && VERSION_OF(l) < 1500 ? 5 : 3;
}

/* Are the number and the fields beside it where the kernel reads them? */
static bool has_number(const struct v8_layout *l)
{
	if (!is_known(l) || (l->off_shared != 24 && l->off_shared != 32))
		return false;
	return l->sfi_unique_id > 0 ||
	       l->sfi_literal_id - l->sfi_script == RUNTIME_V8_BEFORE_NUMBER;
}

static void fill_by_version(struct v8_layout *l)
{
	const unsigned int version = VERSION_OF(l);

	l->sfi_literal_id = l->sfi_flags + 4;
	l->sfi_unique_id = version >= 1204 ? l->sfi_flags + 8 : V8_NO_OFFSET;
	l->sfi_size = l->sfi_flags + (version >= 1204 ? 12 : 8);
	l->script_id = 64; /* not published; the same in all versions */
	l->has_number = has_number(l);
	l->scope_flags_raw = l->scope_first >= 5;
	l->scope_counts_module = version >= 1204;
	l->scope_module = module_scope(l);
	l->script_source_url = l->script_source_url > 0 ? l->script_source_url + 16 : 104;
	l->string_data = l->external_resource + 8;
	l->bytecode_positions = version >= 1200 ? 24 : 32;
	if (is_known(l) && version <= 1306)
		l->encoding = V8_POSITIONS_ZIGZAG;
	else if (is_known(l) && version >= 1401)
		l->encoding = V8_POSITIONS_BREAKABLE;
}

/* V8 10.2: the code is behind the fields of its Code, two of which are not published. */
static void fill_code_in_place(struct v8_layout *l, struct source *s)
{
	int32_t start;

	if (!find(s, "class_Code__instruction_start__uintptr_t", &start) || start != 128)
		return;
	l->type_instruction_stream = l->type_code;
	l->stream_start = l->code_more = 64;
	l->code_start = start;
	l->code_deopt = 16;
	l->code_positions = 24;
	l->deopt_count = 1;
	l->deopt_literals = 2;
	l->deopt_sfi = 6;
	l->deopt_inlining = 7;
}

/* V8 11 does not publish all of Code's fields; 12.4 and later all but two, right before `wrapper`. */
static void fill_code(struct v8_layout *l, struct source *s)
{
	const unsigned int version = VERSION_OF(l);
	int32_t wrapper;

	if (version == 1002)
		fill_code_in_place(l, s);
	if (version == 1103 || version == 1104) {
		l->code_start = 40;
		l->code_flags = 48;
		l->code_size = 56;
	} else if (version == 1108) {
		l->code_start = 32;
		l->code_flags = 40;
		l->code_size = 44;
	} else if (version >= 1204 &&
		   find(s, "class_Code__wrapper__Tagged_CodeWrapper_", &wrapper) && wrapper >= 24) {
		l->code_deopt = wrapper - 16;
		l->code_positions = wrapper - 8;
	}
	l->has_code = l->type_instruction_stream > 0 && l->stream_start >= 16 &&
		      l->stream_start <= 64 && l->code_start > 0 && l->code_size > 0 &&
		      l->code_flags > 0 && l->code_deopt > 0 && l->code_positions > 0 &&
		      l->kind_baseline > 0 && l->deopt_count >= 0 && l->deopt_literals >= 0 &&
		      l->deopt_inlining >= 0 && l->deopt_sfi >= 0;
}

/* Offsets in an object must be within its size. */
static bool is_sound(const struct v8_layout *l)
{
	const int32_t offsets[] = {
		l->off_shared,	  l->map_type,	    l->sfi_name,    l->sfi_script,
		l->sfi_flags,	  l->script_source, l->script_name, l->script_line_ends,
		l->string_length, l->string_chars,  l->cons_first,  l->cons_second,
		l->sliced_parent, l->sliced_offset, l->thin_actual, l->external_resource,
		l->bytecodes,	  l->scope_locals,  l->scope_first,
	};

	for (size_t i = 0; i < COUNT(offsets); i++) {
		if (offsets[i] < 0 || offsets[i] > OFFSET_MAX)
			return false;
	}
	return l->off_bytecode_offset < 0 && l->first_nonstring == 128;
}

static enum v8_verdict judge(struct v8_layout *l, struct source *s)
{
	int32_t size, shift_size = 0, shift = 0;
	bool all;

	if (!find(s, "TaggedSize", &size))
		return V8_ABSENT;
	if (size != 8)
		return size == 4 ? V8_COMPRESSED : V8_CONTRADICTED;
	if (!read_version(l, s))
		return V8_INCOMPLETE;
	if (l->major < 10)
		return V8_TOO_OLD;
	if (!find(s, "SmiShiftSize", &shift_size) || !find(s, "SmiValueShift", &shift))
		return V8_INCOMPLETE;
	all = read_constants(l, s);
	if ((int64_t)shift_size + shift != 32 || !read_certain(s))
		return V8_CONTRADICTED;
	if (!all || s->err)
		return V8_INCOMPLETE;
	if (!is_sound(l))
		return V8_CONTRADICTED;
	fill_by_version(l);
	if (l->encoding == V8_POSITIONS_UNKNOWN)
		return V8_NAMES_ONLY;
	fill_code(l, s);
	return l->has_code ? V8_WHOLE : V8_NO_INLINED;
}

bool v8_layout__fill(struct v8_layout *l, v8_constant_fn constant, void *context)
{
	struct source s = {constant, context, 0};

	*l = (struct v8_layout){};
	l->verdict = judge(l, &s);
	if (l->verdict != V8_WHOLE && l->verdict != V8_NO_INLINED && l->verdict != V8_NAMES_ONLY)
		return false;
	read_frame_types(l, &s);
	return true;
}

static int exported(void *context, const char *symbol, uint32_t *value)
{
	return elf_exports__u32(context, symbol, value);
}

bool v8_layout__read(struct v8_layout *l, struct elf_file *file)
{
	struct elf_exports exports;

	if (elf_exports__init(&exports, file)) {
		*l = (struct v8_layout){.verdict = V8_ABSENT};
		return false;
	}
	return v8_layout__fill(l, exported, &exports);
}

int32_t v8_layout__bytecode_bias(const struct v8_layout *l)
{
	return l->bytecodes - 1;
}
