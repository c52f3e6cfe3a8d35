/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a Go program, as rows of an unwind table: .gopclntab says how deep the stack is at each instruction. */
#ifndef UNWIND_GO_TABLE_H
#define UNWIND_GO_TABLE_H

#include "elf/elf_file.h"
#include "unwind/cfi.h"

/*
 * All rows in the order of their addresses, up to `limit` of them and some more. Code between functions gets
 * UNWIND_CFA_NONE. 0; -ENOENT: it is not a Go program, or cannot be read as one; -EFBIG: more than `limit`, or than
 * the budget allows (NULL: there is none); -ENOMEM; or what `row` returned.
 */
int go_table__each_row(struct elf_file *file, uint64_t limit, struct build_budget *budget,
		       cfi_row_fn row, void *context, struct cfi_counts *counts);

#endif
