/* SPDX-License-Identifier: BSD-2-Clause */
/* The unwind table of an ELF file: its CFI, compiled (sysprof/unwind_table.h). */
#ifndef UNWIND_UNWIND_TABLE_H
#define UNWIND_UNWIND_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <sysprof/made_frames.h>
#include <sysprof/unwind_table.h>

#include "elf/elf_file.h"
#include "unwind/build_budget.h"
#include "unwind/cfi.h"

#define UNWIND_IMAGE_ALIGNMENT 64

/* table_cache writes it to disk with `bytes` cleared; a further pointer must be cleared, too. */
struct unwind_table_image {
	struct unwind_table table; /* offsets from the start of `bytes` */
	void *bytes;		   /* 8-aligned; owned by the holder */
	size_t size;		   /* a multiple of 64 */
	uint64_t rows;
	uint64_t left; /* bytes of code that got no rules because of a limit */
	struct cfi_counts counts;
};

/*
 * Builds from .eh_frame, or from .debug_frame if .eh_frame covers next to nothing. 0; -ENODATA: no
 * code is described; -ENOTSUP: another machine, or compressed; -EFBIG: more than `limit` bytes, or
 * beyond BUILD_LIMITS; -EBADMSG; -ENOMEM; -EIO.
 */
int unwind_table__build(struct elf_file *file, size_t limit, struct unwind_table_image *image);
/* The same with other limits; *refusal is the reason of -EFBIG. */
int unwind_table__build_within(struct elf_file *file, size_t limit,
			       const struct build_limits *limits, struct unwind_table_image *image,
			       enum table_refusal *refusal);

/* One piece of JIT code at [start, end), with its CFI. */
struct unwind_piece {
	uint64_t start, end;
	struct cfi_section section;
};

/*
 * The same for sorted, disjoint pieces. Rows outside of their piece are dropped. -ENODATA, -EFBIG,
 * -ENOMEM.
 */
int unwind_table__build_pieces(const struct unwind_piece *pieces, size_t count, size_t limit,
			       struct unwind_table_image *image);

/* The same for frames of fixed size. Code between them is UNWIND_CFA_LATER. */
int unwind_table__build_frames(const struct made_frame *frames, size_t count, size_t limit,
			       struct unwind_table_image *image);

void unwind_table_image__fini(struct unwind_table_image *image);

#endif
