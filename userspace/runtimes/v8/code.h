/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_V8_CODE_H
#define RUNTIMES_V8_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct v8_reader;

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

#endif
