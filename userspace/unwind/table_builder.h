/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that builds unwind tables, one file after the other, so that nobody waits for them who has
 * rings to read: a table of a big library takes a tenth of a second. Tables that were kept from former
 * recordings are read instead, and before anything is built; what is to be kept is written when nothing
 * else is left to do, so that nobody waits for the disk.
 */
#ifndef UNWIND_TABLE_BUILDER_H
#define UNWIND_TABLE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind_table.h"

struct table_builder;
struct table_cache;

/* Tables of `limit` bytes at most. The cache is taken over, whatever is returned; NULL: none. 0 or negative errno. */
int table_builder__new(size_t limit, struct table_cache *cache, struct table_builder **builder);
/* Waits for the file at hand, and half a second for what is to be written; what else was asked for is forgotten. */
void table_builder__free(struct table_builder *b);

enum table_effort {
	TABLE_READ,  /* from the cache, or not at all: -ENOENT */
	TABLE_BUILD, /* if it is not in the cache */
};

/*
 * The ELF file lies at `base` of `fd`, which stays the caller's and may be closed at once; `id` comes back with
 * the table. Those within other files are not cached. 0 or negative errno.
 */
int table_builder__ask(struct table_builder *b, uint32_t id, int fd, uint64_t base,
		       enum table_effort effort);

/* That file is wanted before all others that were asked for. */
void table_builder__hurry(struct table_builder *b, uint32_t id);

struct built_table {
	uint32_t id;
	int err;			 /* of unwind_table__build(); -ENOENT, see TABLE_READ */
	bool cached;			 /* it was read, not built */
	uint64_t cpu_ns;		 /* that it took */
	struct unwind_table_image image; /* the receiver's */
};

/* The next one that is done. False: none is; with `wait`: and none is asked for. */
bool table_builder__take(struct table_builder *b, bool wait, struct built_table *built);

/* Readable when there is something to take. */
int table_builder__fd(const struct table_builder *b);

#endif
