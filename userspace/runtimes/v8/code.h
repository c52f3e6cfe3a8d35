/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that V8 has made, by an address in it: its function, and the functions that are inlined there.
 *
 * Code is thrown away and its memory used again within a second, so it has to be read right after the stack was
 * walked, or not at all; and it counts only if it is code of the frame's function.
 *
 * A return address is looked for by the byte before it. The caller does not pass addresses outside of V8's own code
 * (anonymous executable mappings), for which this is slow and finds nothing.
 */
#ifndef RUNTIMES_V8_CODE_H
#define RUNTIMES_V8_CODE_H

#include <stdbool.h>
#include <stdint.h>

struct v8_reader;

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
 * 0; -ENODATA: there is none any more, where the heap had code when it was looked at before; -ENOENT: no code was found
 * there; -ENOTSUP: where it keeps what is not known of this version; or as target_memory__read().
 */
int v8_code__at(struct v8_reader *r, uint64_t pc, struct v8_code *code);

enum v8_code_owner {
	V8_OWNER_SAME,	  /* code of the function at the SFI */
	V8_OWNER_OTHER,	  /* of another one: code->sfi or code->bytecode_array has it */
	V8_OWNER_UNKNOWN, /* not code of a function, or the function cannot be read */
};

/*
 * The owner of the code. If `pc` is the innermost address, V8_OWNER_OTHER means that the frame pointer is still, or
 * again, the caller's: the function with this SFI is the caller, and the innermost one is that of the code.
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
	/*
	 * The code was given up while it was called: the address is where V8 leaves it. The called function is
	 * unknown.
	 */
	bool is_deoptimized;
};

/*
 * The functions at a return address of optimized code. A call may have the position of one before it: in Maglev's code, and
 * where a function is inlined into itself. In code that was not made to be measured only calls have positions, so the only answer for an innermost address is that one of the code->inlined functions may run. 0;
 * -ENODATA: it is no optimized code; -EAGAIN: what is there is not what must be; -ENOMEM; or as
 * target_memory__read().
 */
int v8_code__chain(struct v8_reader *r, const struct v8_code *code, uint64_t return_address,
		   struct v8_chain *chain);

/*
 * The place of an address in code that V8 has made: the function, those that are inlined there, and the lines, if
 * they can be determined. code.h says when to read them.
 */

struct v8_bytecodes;
struct v8_reader;

/*
 * `sfi` is what the frame was noted with. `address`: where the thread was; else the byte before a return address.
 *
 * Where the thread was, in optimized code, another function may run that is inlined there: the chain is_blind, and has no
 * line. Code of another function than the frame's has no frame yet, or none any more: the chain is that function, and
 * the frame's as its caller. At a return address, where that cannot be, the words of the frame were not its own: the chain
 * is_blind.
 *
 * 0; -ENODATA: there is nothing but the function itself; -ENOENT, -ENOTSUP, -EAGAIN, -ENOMEM as v8_code__at() and
 * v8_code__chain().
 */
int v8_place__chain(struct v8_reader *r, const struct v8_bytecodes *bytecodes, uint64_t sfi,
		    uint64_t address, bool is_leaf, struct v8_chain *chain);

#endif
