/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that ends or begins a stack and that some C libraries do not describe: musl above all. */
#ifndef UNWIND_TRAMPOLINE_H
#define UNWIND_TRAMPOLINE_H

#include <stdint.h>

#include <sysprof/unwind_table.h>

#include "elf/elf_file.h"

#define TRAMPOLINES_MAX 8

struct trampoline {
	uint64_t start, end; /* ELF virtual addresses */
	enum unwind_cfa cfa; /* UNWIND_CFA_SIGNAL: return from a signal; _ROOT: a program's entry */
};

/* By their bytes, described or not: how many, or -ENOMEM. */
int trampolines_find(struct elf_file *file, struct trampoline found[TRAMPOLINES_MAX]);

#endif
