/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for what must not be found anywhere else: in no core dump, and not in memory that was freed. libcurl gets
 * all of its memory here too, since it copies credentials into its send buffers.
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
 * For a function that copies or compares secrets. String functions leave pieces of them in vector registers, and the next
 * variadic function saves those registers on its stack: they are zero when the function returns. A compiler without the
 * attribute (Clang 14, which builds the fuzzers) leaves the pieces there.
 */
#if __has_attribute(zero_call_used_regs)
#define _zero_registers_ __attribute__((zero_call_used_regs("all")))
#else
#define _zero_registers_
#endif

#endif
