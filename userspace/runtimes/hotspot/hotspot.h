/* SPDX-License-Identifier: BSD-2-Clause */
/* HotSpot in the memory of a process: layout, code heaps, methods, and what a reader has found. */
#ifndef RUNTIMES_HOTSPOT_HOTSPOT_H
#define RUNTIMES_HOTSPOT_HOTSPOT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <sysprof/event.h>
#include <sysprof/runtime_info.h>

#include "base/map.h"
#include "base/vec.h"
#include "runtimes/answers.h"
#include "runtimes/target_memory.h"

/* ---- layout ---------------------------------------------------------------------------------- */

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

/* ---- code heaps ------------------------------------------------------------------------------ */

/*
 * Where HotSpot keeps code: up to three heaps, in each of which blobs of any size follow one
 * another. A map with one byte for each 128 bytes of code leads from an address to its blob. A blob
 * begins with a header (CodeBlob); compiled methods are blobs with a longer one (nmethod).
 */

#define HOTSPOT_HEAPS_MAX 8u
#define HOTSPOT_HOPS_MAX  48u /* in the map; 18 have been seen */
#define HOTSPOT_BLOBS_MAX 65536u
#define HOTSPOT_CODE_MAX  (4u << 20) /* bytes of one blob */

enum hotspot_kind {
	HOTSPOT_NMETHOD,
	HOTSPOT_NATIVE,	       /* the wrapper of a native method, or a MethodHandle's intrinsic */
	HOTSPOT_BYTECODE,      /* the interpreter */
	HOTSPOT_STUBS,	       /* by their frame pointer; many in a blob */
	HOTSPOT_CONTINUATION,  /* those of virtual threads */
	HOTSPOT_ADAPTERS,      /* no frame, but what they move */
	HOTSPOT_NO_FRAME,      /* vtable chunks, inline caches */
	HOTSPOT_RUNTIME,       /* a frame of one size */
	HOTSPOT_UNCOMMON_TRAP, /* the same; does not return */
	HOTSPOT_EXCEPTION,     /* the same; entered by a jump */
	HOTSPOT_SAFEPOINT,
	HOTSPOT_DEOPT,
};

struct hotspot_blob {
	uint64_t address;
	uint64_t code, code_end;
	uint64_t method;			/* Method*, of nmethods; 0 */
	uint64_t name;				/* where it is */
	uint64_t verified_entry, deopt_handler; /* 0: none */
	uint32_t size;
	uint32_t frame_size;	 /* words, with the return address; 0: see its kind */
	uint32_t frame_complete; /* from the code: the frame is there */
	uint32_t compile_id;	 /* of nmethods; 0 */
	uint64_t check;		 /* as in a note, whatever kind of blob it is; 0: not known */
	int32_t orig_pc_offset;
	enum hotspot_kind kind;
};

struct hotspot_heap {
	uint64_t low, high; /* all that is reserved: it grows in place */
	uint64_t committed; /* code ends here for now */
	uint64_t map;	    /* the byte of `low` */
	uint64_t map_size;
};

#define HOTSPOT_NAMES_KNOWN 512u

struct hotspot_code {
	const struct hotspot_layout *layout;
	struct hotspot_heap heaps[HOTSPOT_HEAPS_MAX]; /* ascending */
	unsigned int count;
	unsigned int shift;		       /* of addresses to segments */
	uint64_t bytecode_start, bytecode_end; /* the interpreter's codelets */
	uint64_t call_return; /* where Java returns to in the call stub; 0: not known */
	/* kinds by the address of their name, modulo the number of entries: each is read once */
	struct {
		uint64_t name;
		enum hotspot_kind kind;
	} kinds[HOTSPOT_NAMES_KNOWN];
};

/* The heaps now. `layout` must outlive it. 0; -ENODATA: not understood; else as reading fails. */
int hotspot_code__read(struct hotspot_code *code, const struct hotspot_layout *layout,
		       struct target_memory *memory);
/* The heap of an address, or NULL. */
const struct hotspot_heap *hotspot_code__heap(const struct hotspot_code *code, uint64_t address);

/* The blob of an address. 0; -ENOENT: none; -ELOOP: map leads nowhere; else as reading fails. */
int hotspot_code__find(const struct hotspot_code *code, struct target_memory *memory,
		       uint64_t address, uint64_t *blob);
/* 0; -ENODATA: no blob, none yet, or it was freed and will be reused; else as reading fails. */
int hotspot_code__blob(struct hotspot_code *code, struct target_memory *memory, uint64_t address,
		       struct hotspot_blob *blob);
/* The same of a header that was read already, layout->header_size bytes of it. */
int hotspot_code__take(struct hotspot_code *code, struct target_memory *memory,
		       const unsigned char *bytes, uint64_t address, struct hotspot_blob *blob);
/*
 * All blobs of the interpreter's heap, by address, as far as they can be read; not those that the
 * JVM is changing. `visit` returns 0 to go on. 0, what `visit` returned, or as reading fails.
 */
int hotspot_code__each(struct hotspot_code *code, struct target_memory *memory,
		       int (*visit)(void *context, const struct hotspot_blob *blob), void *context);
/* The text of the blob's name, which is its kind, no method's. As target_memory__string(). */
int hotspot_blob__name(const struct hotspot_blob *blob, struct target_memory *memory, char *name,
		       size_t size);

/*
 * The words about a process's code heaps that the kernel's walk needs. With them alone, without a
 * table of rows, nearly all stacks are whole. 0; -E2BIG: they do not fit.
 */
int hotspot_words__make(struct runtime_hotspot *w, const struct hotspot_code *code);

/* ---- methods --------------------------------------------------------------------------------- */

/*
 * Names and lines of HotSpot's methods: of compiled ones with those inlined at an address, of
 * interpreted ones by the two words in their frame (Method*, the address of the bytecode).
 *
 * A method has the name that HotSpot writes into a perf map, "void a.b.Outer.run(int,
 * java.lang.String[])", but in that of hidden classes the address is left out, since it differs in
 * every run. Offsets of managed_function's rows are bytecode indices.
 */

/* Identity of a method: its class may be unloaded, and both be of something else then. */
struct hotspot_method {
	uint64_t method, const_method;
	uint64_t pool;	    /* ConstantPool* */
	uint32_t code_size; /* bytes of bytecode */
	uint16_t name_index;
	uint16_t signature_index; /* 0: not known */
	bool has_lines;
};

/* 0; -ENODATA: it is no method; else as reading fails. */
int hotspot_method__read(const struct hotspot_layout *layout, struct target_memory *memory,
			 uint64_t method, struct hotspot_method *m);
/* `f`: empty; the caller always frees it. 0, -ENODATA, -ENOMEM, or as reading fails. */
int hotspot_method__describe(const struct hotspot_layout *layout, struct target_memory *memory,
			     const struct hotspot_method *m, struct managed_function *f);
/* Is what is there now what was sampled? */
enum code_state hotspot_method__check(const struct hotspot_layout *layout,
				      struct target_memory *memory, const struct hotspot_method *m);

/* ---- between two bytecodes ------------------------------------------------------------------- */

#define HOTSPOT_WAY_CALLS 32u
#define HOTSPOT_WAY_LOOPS 8u

/* Ways in a method from one bytecode to another, without passing the first one again. */
struct hotspot_way {
	int32_t from;
	bool is_done;  /* `from` has run already: it is not on the way */
	bool is_place; /* `from` cannot be in a loop on the way */
	int32_t to;    /* -1: to any return */
	/* what is found */
	bool is_there;		 /* there is one */
	bool loops;		 /* … with a bytecode that leads back */
	unsigned int loop_count; /* of these, loops on it; all of them, */
	struct {
		uint32_t first, last;
	} loop[HOTSPOT_WAY_LOOPS];	   /* … of which these are kept */
	unsigned int length;		   /* bytecodes that can be on it */
	unsigned int call_count;	   /* of these, calls; all of them, */
	uint32_t calls[HOTSPOT_WAY_CALLS]; /* … of which these are kept */
	bool has_inlined;		   /* one of them may be inlined: between.c */
};

/* 0; -ENODATA: these are no bytecodes, or they are not understood. */
int hotspot_way__find(const unsigned char *code, uint32_t size, struct hotspot_way *way);

/* Calls that lead to one method, which the class's table of calls has. */
enum hotspot_call {
	HOTSPOT_CALL_OTHER,
	HOTSPOT_CALL_DIRECT,
	HOTSPOT_CALL_FINAL, /* or to a virtual method, which the table has no address of */
};

/* *index: in the table. */
enum hotspot_call hotspot_call__read(const unsigned char *code, uint32_t size, uint32_t at,
				     uint16_t *index);

/* ---- what is inlined ------------------------------------------------------------------------- */

#define HOTSPOT_SCOPES_MAX 128u

struct hotspot_scope {
	uint64_t method; /* Method* */
	int32_t index;	 /* of the bytecode; -1: not known */
};

/*
 * Innermost first. The JVM describes few places: calls that may stop there, polls. Between two of
 * them the scopes are those of the one that runs next; `sure` ones are also in the one before, and
 * the last of them makes no call on the way that may be inlined.
 */
struct hotspot_chain {
	struct hotspot_scope scopes[HOTSPOT_SCOPES_MAX];
	unsigned int count;
	unsigned int sure; /* of the outermost */
	bool is_cut;	   /* there are more, or they are not to be read */
};

enum hotspot_place_kind {
	HOTSPOT_PLACE_OTHER, /* a poll */
	HOTSPOT_PLACE_CALL,  /* behind a call of a method, or of the JVM */
	HOTSPOT_PLACE_TRAP,  /* behind a call that gives the code up, and does not return */
	HOTSPOT_PLACE_CHECK, /* an instruction that leads to such a call; the JVM has no PcDesc of it */
};

/* PcDesc; its flags are replaced by the kind. */
struct hotspot_pc_desc {
	int32_t pc_offset, scope, object, flags;
};

/* Instructions that run one after the other, up to the next block. */
struct hotspot_block {
	uint32_t start;
	int32_t target;	   /* the block that it jumps to; -1 */
	uint8_t last_size; /* bytes of its last instruction */
	bool falls : 1;	   /* it runs into the next one */
	bool returns : 1, traps : 1;
	bool is_open : 1; /* it leads to what is not known */
	bool pads : 1;	  /* it does nothing, and may be reached from nowhere */
};

struct hotspot_named {
	uint32_t number; /* in the JVM's list, from 1 on; 0: the nmethod's own method */
	uint32_t text;	 /* in known.texts, from 1 on; 0: not looked up yet */
	uint64_t method; /* Method* */
};

struct hotspot_bytecodes {
	uint64_t method;
	uint64_t pool;	     /* ConstantPool* */
	unsigned char *code; /* NULL: they are not to be read, or there are none */
	uint32_t size;
	bool is_native;	   /* … or abstract */
	bool is_intrinsic; /* … or it is not known whether it is */
};

/* The debug data of an nmethod. They do not change, and are read as a whole. */
struct hotspot_debug {
	struct hotspot_pc_desc *places; /* ascending; NULL: not read */
	size_t place_count;
	unsigned char *scopes;
	size_t scopes_size;
	uint64_t methods;     /* the address of the JVM's list */
	uint64_t null_checks; /* … of its table; 0: none */
	uint32_t code_size;
	VEC(struct hotspot_block) blocks;
	VEC(struct hotspot_named) named; /* methods that were needed so far */
	VEC(struct hotspot_bytecodes) bytecodes;
	size_t bytecode_bytes;
	enum hotspot_flag is_alone; /* the nmethod has no other method's code */
};

void hotspot_debug__fini(struct hotspot_debug *debug);

#define HOTSPOT_ENDS_MAX    8u
#define HOTSPOT_END_OUTSIDE (-1) /* the compiled method begins or returns */

struct hotspot_ends {
	int32_t place[HOTSPOT_ENDS_MAX]; /* number in debug.places */
	unsigned int count;
	bool is_open; /* there may be others */
};

/* The next places on any way to an address, and from it. */
struct hotspot_around {
	struct hotspot_ends before, behind;
	uint32_t at;   /* the address */
	uint32_t size; /* bytes of code between them */
	bool loops;    /* code runs from the address to itself without a place */
};

/* Reads the code: adds checks to the places, makes the blocks. 0; -ENOMEM; else as reading fails. */
int hotspot_flow__read(struct hotspot_code *code, struct target_memory *memory,
		       const struct hotspot_blob *blob, struct hotspot_debug *debug);
/* The number of the block that this byte of the code is in; that of all blocks: in none. */
size_t hotspot_flow__block(const struct hotspot_debug *d, uint32_t at);
/* False: it is not in the code. */
bool hotspot_flow__around(const struct hotspot_debug *d, uint32_t at,
			  struct hotspot_around *around);

/* Is the byte of the code in the innermost loop that a place is in? False: or it is not known. */
bool hotspot_loop__has(const struct hotspot_debug *d, uint32_t at, int32_t place);

/* The scopes of one place, of which all are sure; the nmethod's own method: it has none. */
int hotspot_place__read(const struct hotspot_layout *l, struct target_memory *memory,
			const struct hotspot_blob *blob, struct hotspot_debug *d, int32_t place,
			struct hotspot_chain *chain);
struct hotspot_scope_record {
	uint32_t sender, method, index; /* of the bytecode, + 1 */
};
int hotspot_scope__read(const struct hotspot_layout *l, const struct hotspot_debug *d, uint32_t at,
			struct hotspot_scope_record *s);
/* The methods between places: `around` the address. */
int hotspot_between__read(struct hotspot_code *code, struct target_memory *memory,
			  const struct hotspot_blob *blob, struct hotspot_debug *debug,
			  const struct hotspot_around *around, struct hotspot_chain *chain);

/*
 * The methods at an address in an nmethod: the innermost frame's place, or the byte before a return
 * address, because what is described behind that returns there. If nothing is known of it: the
 * nmethod's own method, index -1. Reads `debug` (the caller's) once. -ENODATA: no nmethod; -ENOMEM.
 */
int hotspot_chain__read(struct hotspot_code *code, struct target_memory *memory,
			const struct hotspot_blob *blob, struct hotspot_debug *debug,
			uint64_t address, struct hotspot_chain *chain);

/* Values that no byte of a number has: 0 to JDK 19, then 1. */
static inline unsigned int hotspot_excluded(const struct hotspot_layout *l)
{
	return l->major >= 20;
}

/* A number of 1 to 5 bytes at *at, which moves; false: cut off. */
bool hotspot_unsigned5(const unsigned char *bytes, size_t size, size_t *at, unsigned int excluded,
		       uint32_t *number);

/* ---- classes that were unloaded -------------------------------------------------------------- */

/*
 * Have classes been unloaded since a sample? If not, a Method is still the same: its memory is
 * reused only after its class has gone, and the JVM counts that before.
 */

/*
 * The address of an 8-byte counter in a JVM's PerfMemory, which jstat reads. "sun.ci.totalCompiles"
 * counts nmethods, not native wrappers. 0; -ENOENT: none (-XX:-UsePerfData); or as reading fails.
 */
int hotspot_counter__find(const struct hotspot_layout *layout, struct target_memory *memory,
			  const char *name, uint64_t *address);

/* Begins as {}. */
struct hotspot_unloads {
	uint64_t counter; /* its address; 0: there is none */
	bool was_searched, is_known;
	uint64_t count;
	uint64_t since; /* CLOCK_MONOTONIC ns: unchanged since then, at least */
};

/* Reads the counter. Where there is none nothing will be known. */
void hotspot_unloads__look(struct hotspot_unloads *u, const struct hotspot_layout *layout,
			   struct target_memory *memory);

/* ---- what was read already ------------------------------------------------------------------- */

/*
 * Kept while it is certain to be the same. An nmethod is identified by its address and its number,
 * which the JVM gives to no other; its methods exist as long as it does. Any other method is the
 * same if it ran when the JVM had counted as many unloaded classes as now, and its words are the
 * same. What was read of one that ran before may be an unloaded class's remains.
 */

#define HOTSPOT_KNOWN_MAX (512u << 10) /* bytes of one process; then all is read anew */
#define HOTSPOT_KNOWN_ALL (2u << 20)   /* of all processes: then it is HOTSPOT_KNOWN_FEW */
#define HOTSPOT_KNOWN_FEW (64u << 10)
#define HOTSPOT_DEBUG_MAX (128u << 10) /* of one nmethod; larger ones are not kept */

struct hotspot_text {
	struct hotspot_method method;
	struct code_function_event *event;
	uint64_t unloads; /* the JVM's count before it was read */
	bool is_shared;	  /* the method ran at that count: other nmethods may have it, too */
};

struct hotspot_nmethod {
	uint64_t address, check;
	size_t bytes;
	unsigned int text_count; /* of its methods: those looked up */
	struct hotspot_debug debug;
};

struct hotspot_latest {
	uint64_t method;
	uint32_t text; /* number of its last text */
};

struct hotspot_known {
	MAP_TYPE(hotspot_nmethods, struct hotspot_nmethod) nmethods; /* by address */
	MAP_TYPE(hotspot_latest_map, struct hotspot_latest) latest;
	VEC(struct hotspot_text) texts;
	size_t bytes;
};

struct hotspot_found;

/* Before a question: drops all if it is too much. */
void hotspot_known__limit(struct hotspot_known *known);
void hotspot_known__fini(struct hotspot_known *known);

/* The known data of an nmethod that was found. NULL: no memory. Valid until the next one. */
struct hotspot_nmethod *hotspot_known__nmethod(struct hotspot_known *known,
					       const struct hotspot_blob *blob);
/* More of it was read: keeps it, if it `is_sure` that it was there all the time. */
void hotspot_known__keep(struct hotspot_known *known, struct hotspot_nmethod *nmethod,
			 bool is_sure);

/*
 * *text, if CONFIRMED: the number of the text of a method that ran at `time`, CLOCK_MONOTONIC ns;
 * reads it if it is not known. `check`: its ConstMethod*; 0: any. found->unloads is that of after the
 * reading: a known text counts only if no class has been unloaded up to now.
 */
enum code_state hotspot_known__text(struct code_answers *answers, struct hotspot_found *found,
				    uint64_t method, uint64_t check, uint64_t time, uint32_t *text);
/* -ENODATA: is not what was sampled; else it is not known. */
enum code_state hotspot_state_of_error(int err);

/* ---- what a reader has found ----------------------------------------------------------------- */

/* HotSpot in a process and answers about its frames: shared by the files of this folder. */

extern const struct runtime java_runtime;

/* runtime_finding.flags: enum hotspot_flag of the frame pointers, and … */
#define HOTSPOT_FOUND_POINTERS 3u
#define HOTSPOT_FOUND_METHODS  4u /* methods are named */
#define HOTSPOT_FOUND_GAPS     8u /* only calls and polls are described */

struct hotspot_found {
	bool is_read;		      /* layout, and code, which refers to it */
	struct target_memory *memory; /* of the request */
	struct hotspot_layout layout;
	struct hotspot_code code;
	struct hotspot_unloads unloads;
	struct hotspot_known known;
	struct runtime_hotspot words;
};

/* As runtime_memory.answer. found->memory is set. */
int hotspot_answers__method(struct code_answers *answers, struct hotspot_found *found,
			    const struct code_question *q);
int hotspot_answers__code(struct code_answers *answers, struct hotspot_found *found,
			  const struct code_question *q);

#endif
