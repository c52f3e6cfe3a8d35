/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that is known by its bytes: procedure linkage tables, returns from signals, entries of programs. */
#ifndef UNWIND_KNOWN_CODE_H
#define UNWIND_KNOWN_CODE_H

#include <stdint.h>

#include <sysprof/unwind_table.h>

#include "elf/elf_file.h"

#define PLT_ENTRY_SIZE 16
#define KNOWN_CODE_MAX 11 /* of one file */

struct known_code {
	uint64_t start, end; /* ELF virtual addresses */
	enum unwind_cfa
		cfa; /* UNWIND_CFA_PLT; _SIGNAL: return from a signal; _ROOT: a program's entry */
	unsigned int
		pushed_after; /* bytes of an entry of a linkage table, then a word has been pushed; 0: never */
};

/* All of it, described or not: how many, or -ENOMEM. */
int known_code__find(struct elf_file *file, struct known_code found[KNOWN_CODE_MAX]);

#endif
