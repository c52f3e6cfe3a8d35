/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What runtimes call their code, taken apart: the function, where it is defined, and which of the
 * runtime's compilers made it. All tiers of one function are one function.
 */
#ifndef JIT_JIT_NAME_H
#define JIT_JIT_NAME_H

#include <stddef.h>
#include <stdint.h>

enum jit_tier {
	JIT_TIER_NONE, /* not told */
	JIT_TIER_INTERPRETED,
	JIT_TIER_BASELINE, /* V8: Sparkplug; .NET: tier 0; WebAssembly: Liftoff */
	JIT_TIER_MIDDLE,   /* V8: Maglev, Turboprop */
	JIT_TIER_OPTIMIZED,
	JIT_TIER_BUILTIN, /* code of the runtime itself */
	JIT_TIER_REGEXP,
	JIT_TIER_STUB,
	JIT_TIER_COUNT
};

/* Not ended by NUL: parts of the name that was parsed, or of a constant. */
struct jit_text {
	const char *text;
	size_t size;
};

struct jit_name {
	struct jit_text function; /* never empty */
	struct jit_text file;	  /* of the definition; empty: not told */
	uint32_t line, column;	  /* of the definition, from 1 on; 0: not told */
	enum jit_tier tier;
};

/* Never fails: what fits no grammar is a function's name. */
struct jit_name jit_name_parse(const char *name, size_t size);

const char *jit_tier_text(enum jit_tier tier);

#endif
