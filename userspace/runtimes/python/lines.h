/* SPDX-License-Identifier: BSD-2-Clause */
/* The line table of a code object (co_linetable of 3.11 to 3.15). Part of cpython_code.h. */
#ifndef RUNTIMES_PYTHON_LINES_H
#define RUNTIMES_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/managed_function.h"

/*
 * Adds the rows of a table to f->rows: `offset` is in bytes from the start of the bytecode, line 0 is an instruction without
 * a line. Neighbours of one line are one row; columns are left out. The last row has line 0 and begins where the table
 * ends, is damaged, or has more rows than there is room for. 0 or -ENOMEM.
 */
int cpython_lines__read(const uint8_t *table, size_t size, uint32_t firstline,
			struct managed_function *f);

#endif
