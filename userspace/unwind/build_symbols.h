/* SPDX-License-Identifier: BSD-2-Clause */
/* A few variables that a library exports, by name: where a runtime says how it works. */
#ifndef UNWIND_BUILD_SYMBOLS_H
#define UNWIND_BUILD_SYMBOLS_H

#include <stdint.h>

#include "unwind/build_budget.h"

#define BUILD_SYMBOLS_MAX 12

struct elf_file;

struct build_names {
	char name[BUILD_SYMBOLS_MAX][40]; /* "": there are no more */
};

struct build_symbols {
	uint64_t address[BUILD_SYMBOLS_MAX]; /* as in the file; 0: not exported */
};

/* 0 or negative errno of elf_file__each_object(); -EFBIG: it takes too long, see *refusal. */
int build_symbols__find(struct elf_file *file, const struct build_names *names,
			struct build_symbols *symbols, enum table_refusal *refusal);

#endif
