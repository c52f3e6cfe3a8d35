/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds a table in a helper process (tenants/pool.h) and checks the result.
 *
 * A builder serves one request, so a file that takes it over gets no other file. It has no
 * capabilities, no file system, its own uid, a seccomp filter, and three descriptors: socket, file,
 * memory for the table. Its reply is untrusted: the table is copied from memory that no process can
 * write any more, then checked.
 */
#ifndef UNWIND_BUILD_H
#define UNWIND_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "tenants/pool.h"
#include "unwind/unwind_table.h"

enum build_kind {
	BUILD_FILE,   /* the table of an ELF file */
	BUILD_PIECES, /* from the memory file of build_pieces__write() */
};

/* To a builder, with two descriptors: the input, and the memory for the table's bytes. */
struct build_question {
	uint64_t base;	/* offset of the ELF file in the input */
	uint64_t limit; /* bytes of a table */
	uint32_t kind;	/* enum build_kind */
	uint32_t reserved;
};

/* From a builder. */
struct build_reply {
	int32_t err;			 /* 0, or negative errno */
	uint32_t refusal;		 /* enum table_refusal */
	struct unwind_table_image image; /* without its bytes */
};

/* For helper_pool__new(): one builder works (two, if one is slow), one waits. Service 0. */
extern const struct helper_pool_options builder_options;
/* In a builder. */
void build__serve(struct helper_job *job);

/*
 * Checks a reply of `size` bytes. `memory` (`limit` bytes) was sealed against growing and shrinking
 * before the builder got it. 0 and the image, owned by the caller; or the builder's error, with the
 * refusal; -EPROTO: invalid reply; -ENOMEM.
 */
int build_reply__take(const void *reply, size_t size, int memory, uint64_t limit,
		      struct unwind_table_image *image, enum table_refusal *refusal);

/*
 * Copies pieces of JIT code and their CFI into a memory file for a builder. Returns the file, owned
 * by the caller; -E2BIG: too many pieces or bytes; or negative errno.
 */
int build_pieces__write(const struct unwind_piece *pieces, size_t count);

#endif
