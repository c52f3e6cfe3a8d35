/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces of JIT code with their CFI from a jitdump, in memory that a builder can read.
 */
#ifndef UNWIND_BUILD_PIECES_H
#define UNWIND_BUILD_PIECES_H

#include <stddef.h>

#include "unwind/unwind_table.h"

/* A memory file with them, the caller's. Sections are copied. -E2BIG: too many, or too long; or negative errno. */
int build_pieces__write(const struct unwind_piece *pieces, size_t count);
/* In a builder: unwind_table__build_pieces() of them. -EBADMSG: they are none. */
int build_pieces__build(int fd, size_t limit, struct unwind_table_image *image,
			enum table_refusal *refusal);

#endif
