/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The builder thread: builds unwind tables, one file after the other, so that the collector can read its
 * rings meanwhile: the table of a big library takes a tenth of a second. Cached tables are read instead,
 * before any table is built. The cache is written when there is nothing else to do.
 */
#ifndef UNWIND_TABLE_BUILDER_H
#define UNWIND_TABLE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind_table.h"

struct table_builder;
struct table_cache;

/* Tables of at most `limit` bytes. Owns the cache (NULL: none), also on failure. 0 or negative errno. */
int table_builder__new(size_t limit, struct table_cache *cache, struct table_builder **builder);
/* Waits for the current file, and half a second for cache writes; drops all other requests. */
void table_builder__free(struct table_builder *b);

enum table_effort {
	TABLE_READ,  /* from the cache, or not at all: -ENOENT */
	TABLE_BUILD, /* if it is not in the cache */
};

/*
 * Requests the table of the ELF file at offset `base` of `fd`. The caller owns `fd` and may close it at once; `id`
 * is returned with the table. Tables of ELF files inside other files are not cached. 0 or negative errno.
 */
int table_builder__ask(struct table_builder *b, uint32_t id, int fd, uint64_t base,
		       enum table_effort effort);

/* Moves this file before all other requests. */
void table_builder__hurry(struct table_builder *b, uint32_t id);

struct built_table {
	uint32_t id;
	int err;			 /* of unwind_table__build(); -ENOENT, see TABLE_READ */
	bool cached;			 /* it was read, not built */
	uint64_t cpu_ns;		 /* CPU time used */
	struct unwind_table_image image; /* owned by the receiver */
};

/* The next finished table. False: there is none; with `wait`: and no request is left. */
bool table_builder__take(struct table_builder *b, bool wait, struct built_table *built);

/* Readable when a finished table can be taken. */
int table_builder__fd(const struct table_builder *b);

#endif
