/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the symbolizer. */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>

#include <sysprof/symbolizer.h>

struct symbol_cache;

/* Where children are kept; NULL: they are not. */
struct sealed_pool;
struct sealed_pool *symbolize_pool(struct symbolizer *s);

/*
 * The cache that stays from call to call. Its directory is opened anew now and then, since it may be another one.
 * NULL: no memory.
 */
struct symbol_cache *symbolize_cache(struct symbolizer *s);

/* Report to the sink what kallsyms has about one address. What the sink returned. */
int symbolize_kernel_address(struct symbolizer *s, size_t index, uint64_t address,
			     symbol_sink_fn sink, void *context);
enum symbol_state symbolize_kernel_state(const struct symbolizer *s);
/* Is the address in the kernel's own image, not in a module? */
bool symbolize_in_kernel_image(struct symbolizer *s, uint64_t address);
/* Where that begins: 0 or -ENOENT. */
int symbolize_kernel_start(const struct symbolizer *s, uint64_t *address);

#endif
