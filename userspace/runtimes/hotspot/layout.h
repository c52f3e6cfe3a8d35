/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of a HotSpot JVM, from its own tables: libjvm.so exports tables of its types, fields and constants for
 * the serviceability agent (hotspot/share/runtime/vmStructs.hpp). They are read once per process. Those of JDK 17, 21
 * and 25 are understood, and of others if what they publish is the same.
 */
#ifndef RUNTIMES_HOTSPOT_LAYOUT_H
#define RUNTIMES_HOTSPOT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/vec.h"
#include "runtimes/target_memory.h"

/* Variables of 64 bits that libjvm.so exports. */
enum hotspot_export {
	HOTSPOT_STRUCTS,
	HOTSPOT_STRUCT_STRIDE,
	HOTSPOT_STRUCT_TYPE,
	HOTSPOT_STRUCT_FIELD,
	HOTSPOT_STRUCT_OFFSET,
	HOTSPOT_STRUCT_ADDRESS,
	HOTSPOT_TYPES,
	HOTSPOT_TYPE_STRIDE,
	HOTSPOT_TYPE_NAME,
	HOTSPOT_TYPE_SIZE,
	HOTSPOT_INTS,
	HOTSPOT_INT_STRIDE,
	HOTSPOT_INT_NAME,
	HOTSPOT_INT_VALUE,
	HOTSPOT_EXPORTS
};

/* Their names, in this order. */
extern const char *const hotspot_export_names[HOTSPOT_EXPORTS];

/*
 * Their values: the offset of a field, the address of a static one, the size of a type, the value of a constant.
 * X(name here)
 */
#define HOTSPOT_FACTS(X)                                                                           \
	X(HEAPS)                                                                                   \
	X(ARRAY_LENGTH)                                                                            \
	X(ARRAY_DATA)                                                                              \
	X(HEAP_MEMORY)                                                                             \
	X(HEAP_SEGMAP)                                                                             \
	X(HEAP_SEGMENT_SHIFT)                                                                      \
	X(SPACE_LOW_BOUNDARY)                                                                      \
	X(SPACE_HIGH_BOUNDARY)                                                                     \
	X(SPACE_LOW)                                                                               \
	X(SPACE_HIGH)                                                                              \
	X(HEAP_BLOCK_SIZE)                                                                         \
	X(HEAP_BLOCK_USED)                                                                         \
	X(BLOB_NAME)                                                                               \
	X(BLOB_SIZE)                                                                               \
	X(BLOB_FRAME_SIZE)                                                                         \
	X(BLOB_FRAME_COMPLETE)                                                                     \
	X(BLOB_CODE_BEGIN) /* to 21: pointers */                                                   \
	X(BLOB_CODE_END)                                                                           \
	X(BLOB_CODE_OFFSET) /* from 23 on: from the blob */                                        \
	X(BLOB_DATA_OFFSET)                                                                        \
	X(BLOB_MUTABLE_DATA)                                                                       \
	X(BLOB_RELOCATION_SIZE)                                                                    \
	X(METHOD_OF)                                                                               \
	X(COMPILE_ID)                                                                              \
	X(VERIFIED_ENTRY)	 /* to 21: a pointer */                                            \
	X(VERIFIED_ENTRY_OFFSET) /* u2, from the code */                                           \
	X(DEOPT_HANDLER)	 /* to 21: a pointer */                                            \
	X(DEOPT_HANDLER_OFFSET)	 /* from the blob */                                               \
	X(ORIG_PC_OFFSET)                                                                          \
	X(SCOPES_PCS)	   /* to 21 from the blob, then from the immutable data */                 \
	X(SCOPES_PCS_END)  /* to 21 */                                                             \
	X(SCOPES_DATA)	   /* to 21: a pointer; then an offset in the immutable data */            \
	X(METADATA_OFFSET) /* to 21: from the blob */                                              \
	X(IMMUTABLE_DATA)                                                                          \
	X(IMMUTABLE_SIZE)                                                                          \
	X(CONST_METHOD)                                                                            \
	X(CONSTANTS)                                                                               \
	X(NAME_INDEX)                                                                              \
	X(SIGNATURE_INDEX)                                                                         \
	X(CODE_SIZE)                                                                               \
	X(METHOD_FLAGS)                                                                            \
	X(CONST_METHOD_SIZE)                                                                       \
	X(POOL_HOLDER)                                                                             \
	X(POOL_FILE_INDEX)                                                                         \
	X(POOL_LENGTH)                                                                             \
	X(POOL_SIZE)                                                                               \
	X(KLASS_NAME)                                                                              \
	X(SYMBOL_REFERENCES)                                                                       \
	X(SYMBOL_LENGTH)                                                                           \
	X(SYMBOL_BODY)                                                                             \
	X(INTERPRETER)                                                                             \
	X(QUEUE_START)                                                                             \
	X(QUEUE_END)                                                                               \
	X(CODELET_SIZE)                                                                            \
	X(CODELET_DESCRIPTION)                                                                     \
	X(CODELET_TYPE_SIZE)                                                                       \
	X(SENDER_SP_OFFSET)                                                                        \
	X(CONT_ENTRY) /* 25 */                                                                     \
	X(CALL_STUB_RETURN)                                                                        \
	X(PERF_START)                                                                              \
	X(PERF_TOP)                                                                                \
	X(VM_MAJOR)                                                                                \
	X(FLAGS) /* JVMFlag, which was Flag up to JDK 8 */                                         \
	X(FLAG_COUNT)                                                                              \
	X(FLAG_SIZE)                                                                               \
	X(FLAG_NAME)                                                                               \
	X(FLAG_VALUE)

enum hotspot_fact {
#define X(name) HOTSPOT_##name,
	HOTSPOT_FACTS(X)
#undef X
		HOTSPOT_FACT_COUNT
};

/* The use of the published tables. */
enum hotspot_part {
	HOTSPOT_CAN_UNWIND, /* blobs, the interpreter */
	HOTSPOT_CAN_NAME,   /* methods, inlined ones too */
	HOTSPOT_CAN_LINE,
	HOTSPOT_CAN_COUNT, /* the counter of compiles: code is new */
	HOTSPOT_PARTS
};

/* A flag of the command line. */
enum hotspot_flag {
	HOTSPOT_FLAG_UNKNOWN, /* it cannot be read */
	HOTSPOT_FLAG_OFF,
	HOTSPOT_FLAG_ON,
};

#define HOTSPOT_MISSING_MAX 40
#define HOTSPOT_HEADER_MAX  512u /* bytes of a blob that are read at once */

struct hotspot_layout {
	uint64_t at[HOTSPOT_FACT_COUNT];
	bool known[HOTSPOT_FACT_COUNT];
	bool can[HOTSPOT_PARTS];
	char missing[HOTSPOT_PARTS]
		    [HOTSPOT_MISSING_MAX]; /* why not: the first name that it lacks */
	uint32_t major;			   /* of the JDK; 0: it does not say */
	uint32_t header_size;		   /* of a blob: all fields above end before it */
	/* -XX:+PreserveFramePointer. Final once the JVM has a code heap; before that it may not have parsed it */
	enum hotspot_flag frame_pointers;
	VEC(uint64_t)
	stub_entries; /* addresses of variables with entry points of stubs: most of them up to 21 */
};

/* The beginning of an object of the JVM. */
struct hotspot_object {
	const struct hotspot_layout *layout;
	const unsigned char *bytes;
	size_t size;
};

/* A number of 2, 4 or 8 bytes in it. 0: the layout does not have this field, or it lies behind these bytes. */
static inline uint64_t hotspot_number(const struct hotspot_object *o, enum hotspot_fact fact,
				      size_t size)
{
	const uint64_t at = o->layout->at[fact];
	uint64_t number = 0;

	if (o->layout->known[fact] && at + size <= o->size)
		memcpy(&number, o->bytes + at, size);
	return number;
}

/*
 * `exports`: their addresses in the process. 0; -ENODATA: they do not describe a HotSpot; -EDQUOT; -ENOMEM; else as reading fails.
 * That a part cannot be done is no error.
 */
int hotspot_layout__read(struct hotspot_layout *l, struct target_memory *memory,
			 const uint64_t exports[HOTSPOT_EXPORTS]);
void hotspot_layout__fini(struct hotspot_layout *l);

#endif
