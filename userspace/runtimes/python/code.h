/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A code object of CPython: its name, file and lines; and whether it still is the one that was sampled.
 *
 * Code that is dropped leaves its memory to other objects within milliseconds, its name's first. So what a frame had of
 * it (its identity) is compared, each object that is read must be alive, and the code's head is read again at the end: as
 * long as the code lives, so does what it refers to.
 */
#ifndef RUNTIMES_PYTHON_CODE_H
#define RUNTIMES_PYTHON_CODE_H

#include "runtimes/python/layout.h"
#include "runtimes/python/walk.h"
#include "runtimes/managed_function.h"
#include "runtimes/target_memory.h"

enum cpython_sureness {
	CPYTHON_CONFIRMED, /* it is the code of that identity */
	CPYTHON_STALE,	   /* it is gone, or going: nothing is reported */
	CPYTHON_UNKNOWN,   /* it could not be read: nothing is reported */
};

#define CPYTHON_LINETABLE_MAX (256u << 10) /* bytes; what is beyond has no lines */
/* Enough for any one code object. */
#define CPYTHON_CODE_READS 18u
#define CPYTHON_CODE_SPENT (CPYTHON_LINETABLE_MAX + (32u << 10))

/*
 * *f must be empty; whatever comes out, the caller ends it with managed_function__fini(). Rows: `offset` is in bytes from
 * the start of the bytecode (co_code_adaptive), line 0 is an instruction that has none.
 */
enum cpython_sureness cpython_code__read(const struct cpython *py, struct target_memory *m,
					 uint64_t code, const struct cpython_identity *identity,
					 struct managed_function *f);

/*
 * The line of a place in the function, as a frame has it (cpython_frame.instruction, from the start of the code object);
 * where there is none that of its definition. 0: unknown.
 */
uint32_t cpython_code__line(const struct cpython *py, const struct managed_function *f,
			    uint32_t instruction);

#endif
