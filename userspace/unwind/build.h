/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building a table in a helper (helpers/pool.h), and checking what comes back.
 *
 * A builder serves one request, so a file that takes it over gets no other file. It has no capabilities, no file
 * system, a user of its own and a system call filter, and three descriptors: its socket, the file, and memory for the
 * table. Nothing that it sends is used before it was checked: the table is copied from memory that no process can
 * write any more.
 */
#ifndef UNWIND_BUILD_H
#define UNWIND_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "helpers/pool.h"
#include "unwind/unwind_table.h"

enum build_kind {
	BUILD_FILE,   /* the table of an ELF file */
	BUILD_PIECES, /* that of build_pieces__write() */
};

/* To a builder, with two descriptors: what is read, and where the bytes of the table go. */
struct build_question {
	uint64_t base;	/* where in the file the ELF file begins */
	uint64_t limit; /* bytes of a table */
	uint32_t kind;	/* enum build_kind */
	uint32_t reserved;
};

/* From a builder. */
struct build_reply {
	int32_t err;			 /* 0, or negative errno */
	uint32_t refusal;		 /* enum table_refusal */
	struct unwind_table_image image; /* but for its bytes */
};

/* For helper_pool__new(): one builder at work (two, if one is slow), and one that waits. Requests use service 0. */
extern const struct helper_pool_options builder_options;
/* In a builder. */
void build__serve(struct helper_job *job);

/*
 * Checks a reply of `size` bytes. `memory` was sealed against growing and shrinking before the builder got it, with `limit`
 * bytes. 0 and the image, which is the caller's; or the builder's error, one of those that building has, with the refusal;
 * -EPROTO: no builder sends that; -ENOMEM.
 */
int build_reply__take(const void *reply, size_t size, int memory, uint64_t limit,
		      struct unwind_table_image *image, enum table_refusal *refusal);

/*
 * Pieces of JIT code with their CFI from a jitdump, in memory that a builder can read: a memory file with them, the caller's. Sections are copied. -E2BIG: too many, or too long; or negative errno.
 */
int build_pieces__write(const struct unwind_piece *pieces, size_t count);

#endif
