/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_V8_LAYOUT_H
#define RUNTIMES_V8_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct elf_file;

/*
 * The layout of one build of V8: from the constants that V8 publishes for debuggers as symbols
 * (v8dbg_*) of the executable or library that it is linked into, stripped or not. Unpublished
 * values are filled in by the version, for versions that were examined. Offsets are in bytes from
 * the start of an object, whose tagged pointer is 1 more. Types are those of the object's map.
 */

/* How much of a V8 can be read: enum, and the sentence for it. */
#define V8_VERDICTS(X)                                                                             \
	X(V8_WHOLE, "names, lines and inlined functions")                                          \
	X(V8_NO_INLINED, "names and lines; where its V8 keeps what is inlined is not known")       \
	X(V8_NAMES_ONLY, "names without lines: its V8 is of a version that was not looked at")     \
	X(V8_ABSENT, "it has none of the constants that V8 publishes for debuggers")               \
	X(V8_COMPRESSED, "its V8 compresses pointers, which is not read")                          \
	X(V8_TOO_OLD, "its V8 is older than version 10 (Node.js 18)")                              \
	X(V8_INCOMPLETE, "constants that V8 publishes for debuggers are missing")                  \
	X(V8_CONTRADICTED, "its constants are not those of a V8 on a 64-bit machine")

#define V8_VERDICT_(name, text) name,
enum v8_verdict { V8_VERDICTS(V8_VERDICT_) };
#undef V8_VERDICT_

const char *v8_verdict__text(enum v8_verdict verdict);

/* Of the code offset in a table of positions. The wrong one gives lines that look right. */
enum v8_position_encoding { V8_POSITIONS_UNKNOWN, V8_POSITIONS_ZIGZAG, V8_POSITIONS_BREAKABLE };

#define V8_FRAME_TYPES 64
#define V8_NO_OFFSET   INT32_MIN /* an unknown one */

struct v8_layout {
	enum v8_verdict verdict;
	uint32_t major, minor, build;

	/* Offsets for a walk of stacks: from the frame pointer, in a JSFunction less the tag. */
	int32_t off_context, off_function, off_bytecode_offset;
	int32_t off_shared;

	int32_t map_type; /* u16 in a Map */
	int32_t type_map, type_sfi, type_scope_info, type_script, type_debug_info,
		type_bytecode_array;
	int32_t type_code, type_instruction_stream, type_interpreter_data, type_sfi_wrapper;
	int32_t type_fixed_array, type_uncompiled_first, type_uncompiled_last;

	int32_t sfi_name, sfi_script, sfi_flags, sfi_literal_id;
	int32_t sfi_unique_id; /* V8_NO_OFFSET before Node.js 22 */
	bool has_number;       /* these are known for sure: see v8_function__number() */
	int32_t sfi_size;      /* bytes to compare: is it still the same? */

	int32_t scope_locals, scope_first; /* slots of 8 bytes behind the map and the flags */
	bool scope_flags_raw;	  /* u32; else a Smi. And positions in slots of their own */
	bool scope_counts_module; /* a module's ScopeInfo has one slot more */
	int32_t scope_module;	  /* that kind of scope */

	int32_t script_source, script_name, script_line_ends, script_source_url;
	int32_t script_id; /* a Smi */

	int32_t string_length, string_chars, string_data;
	int32_t cons_first, cons_second, sliced_parent, sliced_offset, thin_actual,
		external_resource;
	int32_t first_nonstring;

	int32_t uncompiled_name, uncompiled_start;
	int32_t bytecodes, bytecode_positions;
	enum v8_position_encoding encoding;

	bool has_code;	      /* all of the following are known */
	int32_t stream_start; /* of instructions, in an InstructionStream; aligned to 64 bytes */
	uint32_t code_more; /* 10.2: instructions are in the Code, this much behind stream_start */
	int32_t code_start, code_size, code_flags, code_deopt, code_positions;
	int32_t kind_baseline; /* then Maglev, TurboFan */
	int32_t deopt_count, deopt_literals, deopt_inlining, deopt_sfi;

	/* WebAssembly; what is not there is less than 1 */
	int32_t type_wasm_module, type_wasm_instance;
	int32_t script_wasm; /* of a module's Script: what owns its code */
	int32_t frame_wasm;
	/* Bits of frame types that code outside V8's file can have; and of those calling none. */
	uint64_t frames_made, frames_made_leaf;

	const char *frame_types[V8_FRAME_TYPES]; /* of frames without a function; NULL: unknown */
};

/* The value of a symbol: 0, -ENOENT, or another negative errno, which ends it all. */
typedef int (*v8_constant_fn)(void *context, const char *symbol, uint32_t *value);

/*
 * Always fills the verdict; only if it is V8_WHOLE, V8_NO_INLINED or V8_NAMES_ONLY also the rest,
 * with the frame types, and returns true.
 */
bool v8_layout__read(struct v8_layout *l, struct elf_file *file);
bool v8_layout__fill(struct v8_layout *l, v8_constant_fn constant, void *context);

/* Rows have offsets into the bytecodes. That in a frame, shifted right by 32, is this much more. */
int32_t v8_layout__bytecode_bias(const struct v8_layout *l);

#endif
