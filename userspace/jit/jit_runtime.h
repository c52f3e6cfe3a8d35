/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runtimes that make code as they run, or interpret it: how to know them, and how to make them tell of it. The one table of
 * what the summary of a recording and `check -p` advise.
 */
#ifndef JIT_JIT_RUNTIME_H
#define JIT_JIT_RUNTIME_H

#include <stdbool.h>

/* Whose functions are read from the process's memory, where that can be done. */
enum jit_runtime_memory {
	JIT_MEMORY_NONE,
	JIT_MEMORY_V8,
	JIT_MEMORY_PYTHON,
	JIT_MEMORY_HOTSPOT,
	JIT_MEMORY_COUNT,
};

struct jit_runtime {
	const char *name;
	const char *remedy; /* how to start it so that it tells; NULL: it cannot */
	const char *lacks;  /* what a recording does not have as it was started: words for a list */
	enum jit_runtime_memory memory;
};

/* By the name of a file that a process has mapped, without its directories. NULL: it is none. */
const struct jit_runtime *jit_runtime_of_file(const char *name);
/* What stands for all of a kind, where the file's name tells nothing. NULL: none does. */
const struct jit_runtime *jit_runtime_by_memory(enum jit_runtime_memory memory);
/* Lower comes first where a process has several. */
unsigned int jit_runtime_rank(const struct jit_runtime *runtime);

#endif
