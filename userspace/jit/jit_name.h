/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses names of JIT code: the function, where it is defined, and which of the runtime's compilers made it. All
 * tiers of one function are one function.
 */
#ifndef JIT_JIT_NAME_H
#define JIT_JIT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

/* Not ended by NUL: parts of the name that was parsed, or of a constant. */
struct jit_text {
	const char *text;
	size_t size;
};

struct jit_name {
	struct jit_text function; /* never empty */
	struct jit_text file;	  /* of the definition; empty: unknown */
	uint32_t line, column;	  /* of the definition, from 1 on; 0: unknown */
	enum code_tier tier;
};

/* Never fails: a text that fits no grammar is a function's name. */
struct jit_name jit_name_parse(const char *name, size_t size);
/* Is it one of V8's? */
bool jit_name_is_js(const char *name, size_t size);

#endif
