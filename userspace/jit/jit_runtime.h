/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runtimes that compile or interpret code: how to recognize them, and how to make them report it. The one table of
 * the advice in the summary of a recording and in `check -p`.
 */
#ifndef JIT_JIT_RUNTIME_H
#define JIT_JIT_RUNTIME_H

#include <stdbool.h>

/* Runtimes whose functions can be read from the process's memory. */
enum jit_runtime_memory {
	JIT_MEMORY_NONE,
	JIT_MEMORY_V8,
	JIT_MEMORY_PYTHON,
	JIT_MEMORY_HOTSPOT,
	JIT_MEMORY_COUNT,
};

struct jit_runtime {
	const char *name;
	const char *remedy; /* how to start it so that it reports its code; NULL: it cannot */
	const char *
		lacks; /* what a recording lacks if it was started without that: words for a list */
	enum jit_runtime_memory memory;
};

/* By the name of a file that a process has mapped, without its directories. NULL: it is none. */
const struct jit_runtime *jit_runtime_of_file(const char *name);
/* The entry for a whole kind, if the file's name is not known. NULL: there is none. */
const struct jit_runtime *jit_runtime_by_memory(enum jit_runtime_memory memory);
/* Lower comes first where a process has several. */
unsigned int jit_runtime_rank(const struct jit_runtime *runtime);

#endif
