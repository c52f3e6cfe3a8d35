/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Procedure linkage tables. GNU ld describes its own, lld does not.
 */
#ifndef UNWIND_PLT_H
#define UNWIND_PLT_H

#include <stdint.h>

#include "elf/elf_file.h"

#define PLT_ENTRY_SIZE 16
#define PLT_COUNT_MAX  3

struct plt {
	uint64_t start, end;	   /* ELF virtual addresses */
	unsigned int pushed_after; /* bytes of an entry, then a word has been pushed; 0: never */
};

/* The .plt, .plt.sec and .plt.got of the file, described or not: how many, or -ENOMEM. */
int plt_find(struct elf_file *file, struct plt tables[PLT_COUNT_MAX]);

#endif
