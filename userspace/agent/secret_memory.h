/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for what must not be found elsewhere: neither in a core dump nor in freed memory. libcurl
 * gets all of its memory here too, because it copies credentials into its send buffers.
 */
#ifndef AGENT_SECRET_MEMORY_H
#define AGENT_SECRET_MEMORY_H

#include <stddef.h>

/* As malloc() and its kin, from any thread. What is freed is overwritten first. */
void *secret_alloc(size_t size);
void *secret_calloc(size_t count, size_t size);
void *secret_realloc(void *p, size_t size);
char *secret_strdup(const char *text);
void secret_free(void *p); /* NULL is fine */

static inline void cleanup_secret(void *p)
{
	secret_free(*(void **)p);
}

#define _cleanup_secret_ __attribute__((cleanup(cleanup_secret)))

/*
 * For a function that copies or compares secrets: string functions leave pieces of them in vector
 * registers, which the next variadic function would save on its stack. Zeroes them on return.
 * Without the attribute (Clang 14, which builds the fuzzers) the pieces stay.
 */
#if __has_attribute(zero_call_used_regs)
#define _zero_registers_ __attribute__((zero_call_used_regs("all")))
#else
#define _zero_registers_
#endif

#endif
