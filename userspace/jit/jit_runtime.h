/* SPDX-License-Identifier: BSD-2-Clause */
/* Runtimes that make code as they run: how to know them, and how to make them tell of it. */
#ifndef JIT_JIT_RUNTIME_H
#define JIT_JIT_RUNTIME_H

#include <stdbool.h>

struct jit_runtime {
	const char *name;
	const char *remedy; /* how to start it so that it tells; NULL: it cannot */
};

/* By the name of a file that a process has mapped, without its directories. NULL: it is none. */
const struct jit_runtime *jit_runtime_of_file(const char *name);

#endif
