/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_GO_TABLE_H
#define UNWIND_GO_TABLE_H

#include <stdint.h>

#include "unwind/cfi.h"

struct elf_file;

/*
 * Reports the functions of a Go program as rows, in the order of their addresses, from the stack
 * depths in .gopclntab. Code between functions gets UNWIND_CFA_NONE. 0; -ENOENT: not a Go program,
 * or not readable as one; -EFBIG: the table would have more than `limit` bytes, or exceeds the
 * budget (NULL: none); -ENOMEM; or the result of `row`.
 */
int go_table__each_row(struct elf_file *file, uint64_t limit, struct build_budget *budget,
		       cfi_row_fn row, void *context, struct cfi_counts *counts);

#endif
