/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the symbolizer; the table of the kernel's symbols. */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "tenants/quota.h"

struct symbolizer {
	struct kallsyms *kallsyms; /* the first reading */
	/* a later one of all but the image, which replaces what that has; or NULL */
	struct kallsyms *modules;
	struct kallsyms *incoming; /* the next of these, not complete; or NULL */
	unsigned int added;	   /* since the last reading */
	bool unknown;
	struct symbol_cache *cache; /* NULL: not wanted yet */
	unsigned int cache_uses;
	struct sealed_keeper *keeper; /* forks children; NULL: this process does */
	struct file_finder *finder;   /* that stays from call to call; NULL: none was needed yet */
	struct quota cpu;	      /* of the processes that read modules, in all calls */
};

/*
 * The cache that is kept between calls. Its directory is reopened now and then, because it may be
 * another one. NULL: no memory.
 */
struct symbol_cache *symbolize_cache(struct symbolizer *s);

/* Report to the sink what kallsyms has about one address. What the sink returned. */
int symbolize_kernel_address(struct symbolizer *s, size_t index, uint64_t address,
			     symbol_sink_fn sink, void *context);
enum symbol_state symbolize_kernel_state(const struct symbolizer *s);
/* Are there more symbols than are kept? */
bool symbolize_kernel_left(const struct symbolizer *s);
/* Is the address in the kernel's own image, not in a module? */
bool symbolize_in_kernel_image(struct symbolizer *s, uint64_t address);

#endif
