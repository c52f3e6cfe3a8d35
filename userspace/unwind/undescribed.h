/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows for code that no call frame information describes. */
#ifndef UNWIND_UNDESCRIBED_H
#define UNWIND_UNDESCRIBED_H

#include "elf/elf_file.h"
#include "unwind/unwind_rows.h"

/* Linkage tables and trampolines of signal handlers, known by their bytes. 0 or negative errno. */
int undescribed__add_known(struct elf_file *file, struct unwind_rows *rows);
/*
 * All other code, by its instructions; none where that would take too long, and none of Go's, which
 * describes itself in another way. 0 or negative errno.
 */
int undescribed__follow_code(struct elf_file *file, struct unwind_rows *rows);

#endif
