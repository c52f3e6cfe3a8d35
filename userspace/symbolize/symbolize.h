/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the symbolizer; the table of the kernel's symbols. */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "base/vec.h"
#include "symbolize/kernel_history.h"
#include "tenants/quota.h"

/* All symbols but the image's. */
struct kernel_reading {
	struct kallsyms *symbols;
	uint64_t time; /* when it began */
};

struct symbolizer {
	struct kallsyms *kallsyms;	      /* the first reading, of everything */
	VEC(struct kernel_reading) readings;  /* later ones */
	struct kernel_reading incoming;	      /* the next of these, not complete; or NULL */
	struct kernel_history kernel_history; /* what was reported of code that comes and goes */
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

enum symbol_state symbolize_kernel_state(const struct symbolizer *s);
/* Are there more symbols than are kept? */
bool symbolize_kernel_left(const struct symbolizer *s);
/* Is the address in the kernel's own image, not in a module? */
bool symbolize_in_kernel_image(struct symbolizer *s, uint64_t address);

#endif
