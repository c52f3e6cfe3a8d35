/* SPDX-License-Identifier: BSD-2-Clause */
/* V8 in the memory of a process: layout, heap, scripts, functions, lines, code, findings. */
#ifndef RUNTIMES_V8_V8_H
#define RUNTIMES_V8_V8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wire.h"
#include "runtimes/answers.h"
#include "runtimes/target_memory.h"

struct elf_file;
struct v8_scripts;
struct v8_wasm;

/* ---- layout ---------------------------------------------------------------------------------- */

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

/* ---- heap ------------------------------------------------------------------------------------ */

/*
 * Objects of V8's heap, read as they are. A Smi has a number in its upper half and 0 in its lower
 * one, a pointer to an object is 1 more than its address. Nothing is trusted: an object may be
 * none, may have been moved (its first word then is an address), and may change while it is read.
 * Each link that is followed is checked by the object's type.
 */

#define V8_MAPS_KNOWN	64

#define V8_CHUNKS_KNOWN 512u /* 1 MB each: a power of two */

/*
 * A reader of the heaps of one process; one thread. The layout and the scripts are the caller's;
 * `memory` is the limit of one request, and may be another for each. The types of maps are kept for
 * kinds that are followed, because V8 never changes the memory of these maps.
 */
struct v8_reader {
	const struct v8_layout *layout;
	struct target_memory *memory;
	struct v8_scripts *scripts;
	struct {
		uint64_t map;
		uint16_t type;
	} maps[V8_MAPS_KNOWN];
	uint64_t stream_map; /* of InstructionStreams; 0: none was seen */
	/* By their low bits: parts of the address space that had heap code, their number + 1. */
	uint64_t code_chunks[V8_CHUNKS_KNOWN];
};

static inline void v8_reader__init(struct v8_reader *r, const struct v8_layout *layout,
				   struct v8_scripts *scripts)
{
	*r = (struct v8_reader){.layout = layout, .scripts = scripts};
}

static inline bool v8_is_object(uint64_t word)
{
	return (word & 3) == 1;
}

static inline bool v8_is_smi(uint64_t word)
{
	return (uint32_t)word == 0;
}

static inline int32_t v8_smi(uint64_t word)
{
	return (int32_t)(word >> 32);
}

#define V8_OBJECT_BYTES 128

/* The beginning of an object. */
struct v8_object {
	uint64_t tagged; /* the word by which it was read */
	int32_t type;	 /* of its map; -1: its first word is no map */
	uint16_t got;	 /* bytes; what is behind them reads as 0 */
	unsigned char bytes[V8_OBJECT_BYTES];
};

/*
 * 0; -EINVAL: the word is no pointer to an object; or as target_memory__read(). An object without a
 * map is no error: its type is -1.
 */
int v8_object__read(struct v8_reader *r, uint64_t tagged, struct v8_object *o);
static inline uint64_t v8_object__word(const struct v8_object *o, int32_t offset)
{
	return target_number(o->bytes, o->got, (uint64_t)offset, sizeof(uint64_t));
}
static inline uint32_t v8_object__u32(const struct v8_object *o, int32_t offset)
{
	return (uint32_t)target_number(o->bytes, o->got, (uint64_t)offset, sizeof(uint32_t));
}
/* Where the collector has moved it; 0: nowhere. */
uint64_t v8_object__moved_to(const struct v8_object *o);
static inline bool v8_object__is_string(const struct v8_reader *r, const struct v8_object *o)
{
	return o->type >= 0 && o->type < r->layout->first_nonstring;
}

/* The type that a map has. 0, -EINVAL, or as target_memory__read(). */
int v8_reader__type(struct v8_reader *r, uint64_t map, int32_t *type);

/* The elements of an array: bytes of a byte array, words of a fixed one. -EAGAIN: it is none. */
int v8_array__find(struct v8_reader *r, uint64_t tagged, uint32_t limit, uint64_t *address,
		   uint32_t *count);

/* ---- strings --------------------------------------------------------------------------------- */

/*
 * Strings of V8: in one piece (sequential, or outside of the heap), joined of two (cons), part of
 * another (sliced), or a stand-in for another (thin); in bytes of Latin-1 or in units of UTF-16.
 * They change from one into another while the program runs.
 */

/* `count` characters of 1 or 2 (`wide`) bytes; aligned for neither. 0, or what ends it. */
typedef int (*v8_chars_fn)(void *context, const unsigned char *chars, size_t count, bool wide);

/*
 * The first `limit` characters in order, in pieces. 0; -EAGAIN: a part is no string, or too short:
 * it may be changing; -ELOOP: more pieces than a name has; or as target_memory__read().
 */
int v8_string__each(struct v8_reader *r, uint64_t string, uint32_t limit, v8_chars_fn visit,
		    void *context);

/* As sanitized UTF-8, cut at `size`, 4096 at most; NUL is shown as \x00. On failure `to` is "". */
int v8_string__text(struct v8_reader *r, uint64_t string, char *to, size_t size);

/* ---- scripts --------------------------------------------------------------------------------- */

/*
 * Scripts of V8: their names, and the lines of places in their source. V8 itself computes lines
 * only on demand. So mostly they are counted in the source, once per script, and the ends of lines
 * are kept: of the last used scripts that fit into the cache (16 MB, beside one script).
 */

#define V8_SOURCE_MAX (16u << 20) /* characters; a longer one has no lines */

struct v8_script {
	uint64_t address, source; /* tagged. Its identity, with `id`, which each isolate counts */
	int32_t id;
	int32_t line_offset, column_offset; /* of what is before the source in its file */
	char *url;			    /* "": it has none */
	uint32_t *ends; /* positions of the ends of lines, ascending; NULL: not counted */
	uint32_t line_count;
	uint32_t last_line; /* that was looked up, from 0 on */
	uint8_t counted;    /* its lines are counted, or never will be */
	uint64_t last_use;
};

struct v8_scripts *v8_scripts__new(void); /* NULL: no memory */
void v8_scripts__free(struct v8_scripts *scripts);

/*
 * The script at this word. It is the cache's, and valid until the next look-up. 0; -ENODATA: none;
 * -EAGAIN: its name is just being changed; -ENOMEM; or as target_memory__read().
 */
int v8_script__find(struct v8_reader *r, uint64_t script, struct v8_script **found);

/*
 * The place of a position in its source: 1-based, columns in units of UTF-16 as V8 counts them; 0,
 * 0: unknown. 0; -ENOMEM, or what kept it from being counted now.
 */
int v8_script__place(struct v8_reader *r, struct v8_script *s, int32_t position, uint32_t *line,
		     uint32_t *column);

/* ---- functions ------------------------------------------------------------------------------- */

/*
 * Functions of JavaScript, by their SharedFunctionInfo ("SFI"): the one object that all closures
 * and all code of a function share, and that is seldom moved. All words here are tagged, as in
 * frames and in the heap. A walk of stacks notes the SFI of a frame. Soon after the first time
 * v8_function__read() reads it, and its number; later v8_function__number() is compared with that.
 */

struct v8_function {
	uint64_t sfi;	  /* where it was read: not where it was sought, if it was moved */
	uint64_t number;  /* v8_function__number() */
	int32_t start;	  /* position in its source; -1: unknown */
	bool is_builtin;  /* V8's own: it has no script, and never had */
	bool lost_script; /* the script could not be read: what is known is the name */
};

/*
 * Names the function at an SFI, without rows. 0; -ENODATA: none, or no more; -EAGAIN: it is
 * changing, even at the second look; or as target_memory__read(). A failure changes *f, but not
 * *about.
 */
int v8_function__read(struct v8_reader *r, uint64_t sfi, struct managed_function *f,
		      struct v8_function *about);

/*
 * A number that no other function at this address has: frame_note.check of a walk of stacks. Its
 * upper half is the number that V8 gives to each function of an isolate, or before it did (Node.js
 * 20) to each script; its lower half the function's number in its script. They never change, but
 * the collector may move what is beside them. 0: unknown. It is read as the walk reads it, whatever
 * is there. 0, or as target_memory__read().
 */
int v8_function__number(struct v8_reader *r, uint64_t sfi, uint64_t *number);

/* The script of an SFI; NULL where it has none, as V8's own. 0, or as v8_script__find(). */
int v8_function__script(struct v8_reader *r, uint64_t sfi, struct v8_script **script);

/* ---- lines ----------------------------------------------------------------------------------- */

/*
 * Lines of a function, by its bytecodes, as in V8 itself. Rows have offsets into the bytecodes,
 * from 0 on. In an interpreted function's frame, the upper half of the word at off_bytecode_offset
 * is v8_layout__bytecode_bias() more. In frames of other code it may be anything, a number as well:
 * the row counts only if the address is in no code that V8 has made, or in V8_CODE_OTHER.
 */

/*
 * The rows of the function at an SFI, in place of those in f->rows; none if its bytecodes are gone,
 * or have no positions yet. 0; -ENOTSUP: unknown version; -ENOMEM; or as v8_function__read().
 */
int v8_lines__read(struct v8_reader *r, uint64_t sfi, struct managed_function *f);

/* The word for the bytecodes of an SFI, as their code has it; 0: none now. 0, or as above. */
int v8_lines__bytecode_array(struct v8_reader *r, uint64_t sfi, uint64_t *bytecode_array);

/* Follows the word that Code, or a function, has for its bytecodes. 0 and 0: it leads to none. */
int v8_lines__follow_bytecodes(struct v8_reader *r, uint64_t word, uint64_t *bytecode_array);

/* Where a position in the script of an SFI is; 0, 0: unknown. 0, or as v8_function__script(). */
int v8_lines__place(struct v8_reader *r, uint64_t sfi, int32_t position, uint32_t *line,
		    uint32_t *column);

/*
 * A table of positions, read whole; the caller frees. -ENODATA: none, because V8 makes them on
 * demand; -ENOMEM; or as target_memory__read().
 */
int v8_lines__table(struct v8_reader *r, uint64_t word, unsigned char **bytes, uint32_t *size);

/* ---- tables of positions --------------------------------------------------------------------- */

/*
 * V8's tables of source positions: for places in code, ascending, the place of the source. Each
 * entry is two differences to the one before, as integers of variable length. Up to V8 13.6 the
 * sign of the code's says whether a statement begins; from 14.1 on it has two low bits for that.
 */

#define V8_POSITIONS_MAX (1u << 20) /* bytes of a table */

struct v8_positions {
	struct wire bytes; /* the caller's, from the next entry on */
	enum v8_position_encoding encoding;
	/* the entry */
	int64_t code; /* offset, never less than that of the entry before */
	int64_t word;
};

/* The place in the source that a word has: from 0 on; -1: none. */
int32_t v8_position__source(uint64_t word);
/* Which of the inlined functions it is in, counted from 1 on; 0: in none. */
uint32_t v8_position__inlining(uint64_t word);

void v8_positions__init(struct v8_positions *p, enum v8_position_encoding encoding,
			const void *bytes, size_t size);
/* false: there are no more, or what comes is none. */
bool v8_positions__next(struct v8_positions *p);

/* ---- bytecodes ------------------------------------------------------------------------------- */

/*
 * The lengths of V8's bytecodes: from V8's own table, which is not exported and differs between
 * versions. It is recognized by its contents: the bytecodes that all versions begin with, and
 * operands that can be widened, which are twice and four times as long behind a prefix.
 */

#define V8_BYTECODES	256u
#define V8_SCALES	3u
#define V8_BYTECODE_MAX 64u /* bytes of one */

struct v8_bytecodes {
	uint32_t count; /* 0: the table was not found */
	unsigned char size[V8_SCALES][V8_BYTECODES];
};

/* Looks for it in some bytes. False: it does not begin in them, or is cut off. */
bool v8_bytecodes__find(const unsigned char *bytes, size_t size, struct v8_bytecodes *table);
/* The same in the constants of a file. */
bool v8_bytecodes__read(struct elf_file *file, struct v8_bytecodes *table);

/* The length of the bytecode at `at`, with its prefix. 0: there is none, or it is cut off. */
size_t v8_bytecodes__length(const struct v8_bytecodes *table, const unsigned char *at, size_t left);

/* ---- code ------------------------------------------------------------------------------------ */

/*
 * Code that V8 has made, by an address in it: its function, and the functions inlined there.
 *
 * Code is dropped and its memory reused within a second. So it must be read right after the stack
 * was walked, and counts only if it is code of the frame's function. A return address is looked up
 * by the byte before it. The caller passes only addresses of V8's own code (anonymous executable
 * mappings): for others this is slow and finds nothing.
 */

#define V8_CODE_MAX    (256u << 10) /* bytes, that code is looked for in */
#define V8_INLINED_MAX 32	    /* functions in one frame */

enum v8_code_kind { V8_CODE_OTHER, V8_CODE_BASELINE, V8_CODE_MAGLEV, V8_CODE_TURBOFAN };

struct v8_code {
	uint64_t start, size; /* of its instructions */
	enum v8_code_kind kind;
	uint64_t sfi;		 /* of optimized code; 0: not known */
	uint64_t bytecode_array; /* of baseline code; 0: not known */
	uint32_t inlined;	 /* functions that have been inlined somewhere in it */
	uint64_t deopt, positions;
};

/*
 * 0; -ENODATA: none any more, where the heap had code at an earlier look; -ENOENT: no code was
 * found; -ENOTSUP: this version's place for it is not known; or as target_memory__read().
 */
int v8_code__at(struct v8_reader *r, uint64_t pc, struct v8_code *code);

enum v8_code_owner {
	V8_OWNER_SAME,	  /* code of the function at the SFI */
	V8_OWNER_OTHER,	  /* of another one: code->sfi or code->bytecode_array has it */
	V8_OWNER_UNKNOWN, /* not code of a function, or the function cannot be read */
};

/*
 * The owner of the code. If `pc` is the innermost address, V8_OWNER_OTHER means that the frame
 * pointer is still, or again, the caller's: this SFI is the caller, the code is the callee's.
 */
enum v8_code_owner v8_code__owner(struct v8_reader *r, const struct v8_code *code, uint64_t sfi);

struct v8_chain {
	struct {
		uint64_t sfi;
		int32_t position; /* in its script: -1 unknown */
	} at[V8_INLINED_MAX];	  /* innermost first; the last is the function whose code it is */
	unsigned int count;
	bool is_blind; /* functions are inlined in it, and it does not say where */
	bool is_cut;   /* deeper than can be reported */
	/* given up during the call: V8 leaves it at this address, the callee is unknown */
	bool is_deoptimized;
};

/*
 * The functions at a return address of optimized code. In Maglev's code, and if a function is
 * inlined into itself, a call may have the position of one before. Unless code was made to be
 * measured only calls have positions: the innermost address may be in any of the code->inlined. 0;
 * -ENODATA: no optimized code; -EAGAIN: unexpected contents; -ENOMEM; or as target_memory__read().
 */
int v8_code__chain(struct v8_reader *r, const struct v8_code *code, uint64_t return_address,
		   struct v8_chain *chain);

/*
 * The functions, inlined ones as well, at an address in code that V8 has made, and their lines, if
 * they can be determined. `sfi`: of the frame's note. `address`: where the thread was (`is_leaf`);
 * else the byte before a return address.
 *
 * In a leaf of optimized code an inlined function may run: the chain is_blind, and has no line.
 * Code of another function than the frame's has no frame yet, or none any more: the chain is that
 * function, and the frame's as its caller. At a return address that cannot be: the words were not
 * this frame's, and the chain is_blind. 0; -ENODATA: there is nothing but the function itself;
 * -ENOENT, -ENOTSUP, -EAGAIN, -ENOMEM as v8_code__at() and v8_code__chain().
 */
int v8_place__chain(struct v8_reader *r, const struct v8_bytecodes *bytecodes, uint64_t sfi,
		    uint64_t address, bool is_leaf, struct v8_chain *chain);

/* ---- what a reader has found ----------------------------------------------------------------- */

/* V8 in a process and answers about its frames: shared by the files of this folder. */

/*
 * Do the constants fit this process? Of the first words of frames that should be
 * SharedFunctionInfos, nine of ten must lead to a plausible one. Otherwise nothing of this process
 * is named: wrong constants would give everything wrong names.
 */

#define V8_TRUST_CANDIDATES 50u
#define V8_TRUST_PERCENT    90u

enum v8_trust_state { V8_TRUST_OPEN, V8_TRUSTED, V8_REFUSED };

struct v8_trust {
	uint32_t seen, bad;
	enum v8_trust_state state;
};

/*
 * Checks one more candidate while the state is open; returns the state. The caller leaves out words
 * seen before, and those of frames that may be native code's: they are saved registers. What could
 * not be read for lack of time or rights does not count.
 */
enum v8_trust_state v8_trust__see(struct v8_trust *t, struct v8_reader *r, uint64_t sfi);

extern const struct runtime node_runtime;

#define V8_FUNCTIONS_REPORTED 1024u /* a power of two */

/* A function that was reported completely. */
struct v8_reported {
	uint64_t sfi, number; /* 0: none */
};

struct v8_found {
	bool is_read;
	bool was_looked_for;	 /* else `verdict` is none */
	enum v8_verdict verdict; /* of the V8 that was found; ABSENT: of none */
	struct v8_layout layout;
	struct v8_bytecodes bytecodes;
	struct v8_scripts *scripts;
	struct v8_reader reader;
	struct v8_trust trust;
	uint64_t seen[V8_TRUST_CANDIDATES]; /* what it was tried on */
	struct v8_reported *reported; /* V8_FUNCTIONS_REPORTED, by a few bits of their address */
	struct v8_wasm *wasm;	      /* NULL: it was not needed */
};

/* As runtime_memory.answer. found->reader.memory is set. */
int v8_answers__function(struct code_answers *answers, struct v8_found *found,
			 const struct code_question *q);
int v8_answers__wasm(struct code_answers *answers, struct v8_found *found,
		     const struct code_question *q);
int v8_answers__frame(struct code_answers *answers, struct v8_found *found,
		      const struct code_question *q);

/* The offsets by which the kernel reads its frames. */
struct runtime_v8 v8_info(const struct v8_layout *v8);

#endif
