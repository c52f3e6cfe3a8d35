/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses names of JIT code: function, place of its definition, tier (the compiler that made it). */
#ifndef JIT_JIT_NAME_H
#define JIT_JIT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile.h>

/* Part of the parsed name, or of a constant; not NUL-terminated. */
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

/* Never fails: a text that fits no grammar is the function's name. */
struct jit_name jit_name_parse(const char *name, size_t size);
/* Is it a name of V8? */
bool jit_name_is_js(const char *name, size_t size);

#endif
