/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_HOTSPOT_LAYOUT_H
#define RUNTIMES_HOTSPOT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "runtimes/target_memory.h"

/*
 * The layout of a HotSpot JVM, from its own tables: libjvm.so exports its types, fields and
 * constants for the serviceability agent (hotspot/share/runtime/vmStructs.hpp). They are read once
 * per process. Those of JDK 17, 21 and 25 are understood, and others that publish the same.
 */

/* Variables of 64 bits that libjvm.so exports. */
#define HOTSPOT_EXPORTS_OF(X)                                                                      \
	X(STRUCTS, "gHotSpotVMStructs")                                                            \
	X(STRUCT_STRIDE, "gHotSpotVMStructEntryArrayStride")                                       \
	X(STRUCT_TYPE, "gHotSpotVMStructEntryTypeNameOffset")                                      \
	X(STRUCT_FIELD, "gHotSpotVMStructEntryFieldNameOffset")                                    \
	X(STRUCT_OFFSET, "gHotSpotVMStructEntryOffsetOffset")                                      \
	X(STRUCT_ADDRESS, "gHotSpotVMStructEntryAddressOffset")                                    \
	X(TYPES, "gHotSpotVMTypes")                                                                \
	X(TYPE_STRIDE, "gHotSpotVMTypeEntryArrayStride")                                           \
	X(TYPE_NAME, "gHotSpotVMTypeEntryTypeNameOffset")                                          \
	X(TYPE_SIZE, "gHotSpotVMTypeEntrySizeOffset")

enum hotspot_export {
#define X(name, symbol) HOTSPOT_##name,
	HOTSPOT_EXPORTS_OF(X)
#undef X
		HOTSPOT_EXPORTS
};

/* Their names, in this order. */
extern const char *const hotspot_export_names[HOTSPOT_EXPORTS];

/*
 * Facts: the offset of a field, the address of a static one, the size of a type; those of a type
 * stand together. X(name, what needs it (layout.c), kind, type, field); ALSO: or this.
 */
#define HOTSPOT_FACTS(X, ALSO)                                                                     \
	X(HEAPS, UNWIND, STATIC, "CodeCache", "_heaps")                                            \
	X(ARRAY_LENGTH, UNWIND, FIELD, "GrowableArrayBase", "_len")                                \
	X(ARRAY_DATA, UNWIND, FIELD, "GrowableArray<int>", "_data")                                \
	X(HEAP_MEMORY, UNWIND, FIELD, "CodeHeap", "_memory")                                       \
	X(HEAP_SEGMAP, UNWIND, FIELD, "CodeHeap", "_segmap")                                       \
	X(HEAP_SEGMENT_SHIFT, UNWIND, FIELD, "CodeHeap", "_log2_segment_size")                     \
	X(SPACE_LOW_BOUNDARY, UNWIND, FIELD, "VirtualSpace", "_low_boundary")                      \
	X(SPACE_HIGH_BOUNDARY, UNWIND, FIELD, "VirtualSpace", "_high_boundary")                    \
	X(SPACE_LOW, UNWIND, FIELD, "VirtualSpace", "_low")                                        \
	X(SPACE_HIGH, UNWIND, FIELD, "VirtualSpace", "_high")                                      \
	X(HEAP_BLOCK_SIZE, UNWIND, SIZE, "HeapBlock", "")                                          \
	X(HEAP_BLOCK_USED, NONE, FIELD, "HeapBlock::Header", "_used")                              \
	X(BLOB_NAME, UNWIND, FIELD, "CodeBlob", "_name")                                           \
	X(BLOB_SIZE, UNWIND, FIELD, "CodeBlob", "_size")                                           \
	X(BLOB_FRAME_SIZE, UNWIND, FIELD, "CodeBlob", "_frame_size")                               \
	X(BLOB_FRAME_COMPLETE, UNWIND, FIELD, "CodeBlob", "_frame_complete_offset")                \
	X(BLOB_CODE_BEGIN, POINTERS, FIELD, "CodeBlob", "_code_begin") /* to 21: pointers */       \
	X(BLOB_CODE_END, POINTERS, FIELD, "CodeBlob", "_code_end")                                 \
	X(BLOB_CODE_OFFSET, NONE, FIELD, "CodeBlob", "_code_offset") /* from the blob */           \
	X(BLOB_DATA_OFFSET, OFFSETS, FIELD, "CodeBlob", "_data_offset")                            \
	X(BLOB_MUTABLE_DATA, MOVED, FIELD, "CodeBlob", "_mutable_data")                            \
	X(BLOB_RELOCATION_SIZE, MOVED, FIELD, "CodeBlob", "_relocation_size")                      \
	X(METHOD_OF, NAME, FIELD, "CompiledMethod", "_method")                                     \
	X(DEOPT_HANDLER, NONE, FIELD, "CompiledMethod", "_deopt_handler_begin") /* to 21 */        \
	X(SCOPES_DATA, LINE, FIELD, "CompiledMethod", "_scopes_data_begin") /* to 21: a pointer */ \
	ALSO(METHOD_OF, FIELD, "nmethod", "_method")                                               \
	X(COMPILE_ID, NAME, FIELD, "nmethod", "_compile_id")                                       \
	X(VERIFIED_ENTRY, NONE, FIELD, "nmethod", "_verified_entry_point") /* to 21: a pointer */  \
	X(VERIFIED_ENTRY_OFFSET, NONE, FIELD, "nmethod",                                           \
	  "_verified_entry_offset") /* u2, from code */                                            \
	X(DEOPT_HANDLER_OFFSET, NONE, FIELD, "nmethod",                                            \
	  "_deopt_handler_offset") /* from the blob */                                             \
	X(ORIG_PC_OFFSET, NONE, FIELD, "nmethod", "_orig_pc_offset")                               \
	X(SCOPES_PCS, LINE, FIELD, "nmethod", "_scopes_pcs_offset") /* to 21 from the blob */      \
	X(SCOPES_PCS_END, IN_BLOB, FIELD, "nmethod", "_dependencies_offset") /* to 21 */           \
	ALSO(SCOPES_DATA, FIELD, "nmethod", "_scopes_data_offset")                                 \
	X(METADATA_OFFSET, IN_BLOB, FIELD, "nmethod", "_metadata_offset") /* from the blob */      \
	X(NULL_CHECKS, NONE, FIELD, "nmethod", "_nul_chk_table_offset")                            \
	X(IMMUTABLE_DATA, NONE, FIELD, "nmethod", "_immutable_data")                               \
	X(IMMUTABLE_SIZE, MOVED, FIELD, "nmethod", "_immutable_data_size")                         \
	X(CONST_METHOD, NAME, FIELD, "Method", "_constMethod")                                     \
	X(INTRINSIC, NONE, FIELD, "Method", "_intrinsic_id")                                       \
	X(CONSTANTS, NAME, FIELD, "ConstMethod", "_constants")                                     \
	X(NAME_INDEX, NAME, FIELD, "ConstMethod", "_name_index")                                   \
	X(SIGNATURE_INDEX, NONE, FIELD, "ConstMethod", "_signature_index")                         \
	X(CODE_SIZE, NAME, FIELD, "ConstMethod", "_code_size")                                     \
	X(METHOD_FLAGS, LINE, FIELD, "ConstMethod", "_flags")                                      \
	ALSO(METHOD_FLAGS, FIELD, "ConstMethod", "_flags._flags")                                  \
	X(CONST_METHOD_SIZE, NAME, SIZE, "ConstMethod", "")                                        \
	X(POOL_HOLDER, NAME, FIELD, "ConstantPool", "_pool_holder")                                \
	X(POOL_CACHE, NONE, FIELD, "ConstantPool", "_cache")                                       \
	X(POOL_FILE_INDEX, LINE, FIELD, "ConstantPool", "_source_file_name_index")                 \
	X(POOL_LENGTH, LINE, FIELD, "ConstantPool", "_length")                                     \
	X(POOL_SIZE, NAME, SIZE, "ConstantPool", "")                                               \
	X(CACHE_SIZE, NONE, SIZE, "ConstantPoolCache", "") /* to 21 entries are behind it */       \
	X(CACHE_METHODS, NONE, FIELD, "ConstantPoolCache", "_resolved_method_entries")             \
	X(ENTRY_SIZE, NONE, SIZE, "ConstantPoolCacheEntry", "")                                    \
	X(ENTRY_METHOD, NONE, FIELD, "ConstantPoolCacheEntry", "_f1")                              \
	X(ENTRY_FINAL, NONE, FIELD, "ConstantPoolCacheEntry", "_f2") /* or an index */             \
	X(METHOD_ENTRIES, NONE, FIELD, "Array<ResolvedMethodEntry>", "_data")                      \
	X(METHOD_ENTRY_SIZE, NONE, SIZE, "ResolvedMethodEntry", "")                                \
	X(KLASS_NAME, NAME, FIELD, "Klass", "_name")                                               \
	X(SYMBOL_REFERENCES, NONE, FIELD, "Symbol", "_hash_and_refcount")                          \
	X(SYMBOL_LENGTH, NAME, FIELD, "Symbol", "_length")                                         \
	X(SYMBOL_BODY, NAME, FIELD, "Symbol", "_body")                                             \
	X(INTERPRETER, UNWIND, STATIC, "AbstractInterpreter", "_code")                             \
	X(QUEUE_START, UNWIND, FIELD, "StubQueue", "_stub_buffer")                                 \
	X(QUEUE_END, UNWIND, FIELD, "StubQueue", "_queue_end")                                     \
	X(CODELET_SIZE, NONE, FIELD, "InterpreterCodelet", "_size")                                \
	X(CODELET_DESCRIPTION, NONE, FIELD, "InterpreterCodelet", "_description")                  \
	X(CODELET_TYPE_SIZE, NONE, SIZE, "InterpreterCodelet", "")                                 \
	X(CALL_STUB_RETURN, NONE, STATIC, "StubRoutines", "_call_stub_return_address")             \
	X(PERF_START, COUNT, STATIC, "PerfMemory", "_start")                                       \
	X(PERF_TOP, COUNT, STATIC, "PerfMemory", "_top")                                           \
	X(VM_MAJOR, LINE, STATIC, "Abstract_VM_Version", "_vm_major_version")                      \
	X(FLAGS, NONE, STATIC, "JVMFlag", "flags") /* JVMFlag, which was Flag up to JDK 8 */       \
	X(FLAG_COUNT, NONE, STATIC, "JVMFlag", "numFlags")                                         \
	X(FLAG_SIZE, NONE, SIZE, "JVMFlag", "")                                                    \
	X(FLAG_NAME, NONE, FIELD, "JVMFlag", "_name")                                              \
	X(FLAG_VALUE, NONE, FIELD, "JVMFlag", "_addr")                                             \
	ALSO(FLAGS, STATIC, "Flag", "flags")                                                       \
	ALSO(FLAG_COUNT, STATIC, "Flag", "numFlags")                                               \
	ALSO(FLAG_SIZE, SIZE, "Flag", "")                                                          \
	ALSO(FLAG_NAME, FIELD, "Flag", "_name")                                                    \
	ALSO(FLAG_VALUE, FIELD, "Flag", "_addr")

enum hotspot_fact {
#define X(name, need, kind, type, field) HOTSPOT_##name,
#define ALSO(name, kind, type, field)
	HOTSPOT_FACTS(X, ALSO)
#undef ALSO
#undef X
		HOTSPOT_FACT_COUNT
};

/* The use of the published tables. */
enum hotspot_part {
	HOTSPOT_CAN_UNWIND, /* blobs, the interpreter */
	HOTSPOT_CAN_NAME,   /* methods, inlined ones too */
	HOTSPOT_CAN_LINE,
	HOTSPOT_CAN_COUNT, /* counters of PerfMemory */
	HOTSPOT_PARTS
};

/* A flag of the command line. */
enum hotspot_flag {
	HOTSPOT_FLAG_UNKNOWN, /* it cannot be read */
	HOTSPOT_FLAG_OFF,
	HOTSPOT_FLAG_ON,
};

#define HOTSPOT_HEADER_MAX 512u /* bytes of a blob that are read at once */

struct hotspot_layout {
	uint64_t at[HOTSPOT_FACT_COUNT];
	bool known[HOTSPOT_FACT_COUNT];
	bool can[HOTSPOT_PARTS];
	uint32_t major;	      /* of the JDK; 0: it does not say */
	uint32_t header_size; /* of a blob: all fields above end before it */
	/* -XX:+PreserveFramePointer. Before the JVM has a code heap it may not have parsed it */
	enum hotspot_flag frame_pointers;
	/* -XX:+DebugNonSafepoints: all places are described, also those between calls and polls */
	enum hotspot_flag describes_all;
	VEC(uint64_t)
	stub_entries; /* addresses of variables with entry points of stubs, up to 21 */
};

/* The beginning of an object of the JVM. */
struct hotspot_object {
	const struct hotspot_layout *layout;
	const unsigned char *bytes;
	size_t size;
};

/* A number of 2, 4 or 8 bytes. 0: the layout lacks the field, or it is behind these bytes. */
static inline uint64_t hotspot_number(const struct hotspot_object *o, enum hotspot_fact fact,
				      size_t size)
{
	return o->layout->known[fact] ? target_number(o->bytes, o->size, o->layout->at[fact], size)
				      : 0;
}

/*
 * `exports`: their addresses in the process. 0; -ENODATA: no HotSpot; -EDQUOT; -ENOMEM; else as
 * reading fails. A part that cannot be done is no error.
 */
int hotspot_layout__read(struct hotspot_layout *l, struct target_memory *memory,
			 const uint64_t exports[HOTSPOT_EXPORTS]);
void hotspot_layout__fini(struct hotspot_layout *l);

#endif
