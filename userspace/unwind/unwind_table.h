/* SPDX-License-Identifier: BSD-2-Clause */
/* The unwind table of an ELF file: its call frame information, compiled (sysprof/unwind_table.h). */
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

/* table_cache keeps it on disk as it is, all but `bytes`: another pointer would have to be cleared there. */
struct unwind_table_image {
	struct unwind_table table; /* offsets from the start of `bytes` */
	void *bytes;		   /* 8-aligned; the holder's */
	size_t size;		   /* a multiple of 64 */
	uint64_t rows;
	struct cfi_counts counts;
};

/*
 * From .eh_frame; from .debug_frame where the former describes next to nothing. 0; -ENODATA: the
 * file describes no code; -ENOTSUP: not of this machine, or compressed; -EFBIG: it would have more
 * than `limit` bytes, or building it takes more than BUILD_LIMITS; -EBADMSG; -ENOMEM; -EIO.
 */
int unwind_table__build(struct elf_file *file, size_t limit, struct unwind_table_image *image);
/* The same with other limits; *refusal is the reason of -EFBIG. */
int unwind_table__build_within(struct elf_file *file, size_t limit,
			       const struct build_limits *limits, struct unwind_table_image *image,
			       enum table_refusal *refusal);

/* One piece of code that was made as it ran, at [start, end), and its .eh_frame. */
struct unwind_piece {
	uint64_t start, end;
	struct cfi_section section;
};

/*
 * The same for such pieces, which are sorted and do not overlap; rows for addresses outside of their piece are left
 * out. -ENODATA, -EFBIG, -ENOMEM.
 */
int unwind_table__build_pieces(const struct unwind_piece *pieces, size_t count, size_t limit,
			       struct unwind_table_image *image);

/* The same for frames of one size each. Code between them is UNWIND_CFA_LATER. */
int unwind_table__build_frames(const struct made_frame *frames, size_t count, size_t limit,
			       struct unwind_table_image *image);

void unwind_table_image__fini(struct unwind_table_image *image);

/*
 * Is this a table as it is built here, whatever wrote it? For tables from a file on disk or from another process,
 * which a tenant may control. `bytes` is private memory of the caller that no other thread or process writes, with
 * `size` bytes, of which the check does not leave any. Sizes and offsets follow from one another, rows are sorted,
 * every index is within its bounds, every rule is one that a builder can make. Whether the rules are those of the
 * file is not known. Takes time in proportion to the size. 0 or -EBADMSG.
 */
int unwind_table_image__check(const struct unwind_table_image *image);

#endif
