/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables of files: read from the cache, or built by processes without privileges (build.h), so that the
 * collector can read its rings meanwhile: the table of a big library takes a tenth of a second. Tables that may be in
 * the cache are read before any table is built. The cache is written when there is nothing else to do. Used by one
 * thread.
 */
#ifndef UNWIND_TABLE_BUILDER_H
#define UNWIND_TABLE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/build.h"
#include "unwind/unwind_table.h"

struct table_builder;
struct table_cache;

/*
 * Tables of at most `limit` bytes, built in a pool of builder_options, which outlives it. Owns the cache (NULL: none),
 * also on failure. 0 or negative errno.
 */
int table_builder__new(size_t limit, struct helper_pool *pool, struct table_cache *cache,
		       struct table_builder **builder);
/* Takes half a second for cache writes; drops all requests. */
void table_builder__free(struct table_builder *b);

enum table_effort {
	TABLE_READ,  /* from the cache, or not at all: -ENOENT */
	TABLE_BUILD, /* if it is not in the cache */
};

struct table_request {
	uint32_t id;   /* returned with the table */
	int fd;	       /* the caller's, and may be closed at once */
	uint64_t base; /* the ELF file begins at this offset of it; then the table is not cached */
	enum build_kind kind; /* only tables of files are cached */
	enum table_effort effort;
	uint32_t owner; /* the requesting user; users take turns */
};

/* Builders of large files count there (QUOTA_LARGE_CHILDREN), since others wait for them. */
void table_builder__count_large(struct table_builder *b, _Atomic int64_t *large);

/* 0 or negative errno. */
int table_builder__request(struct table_builder *b, const struct table_request *request);

/* Moves this file before all other requests of its user. */
void table_builder__hurry(struct table_builder *b, uint32_t id);

struct built_table {
	uint32_t id, owner;
	enum build_kind kind;
	int err; /* of unwind_table__build(); -EPIPE, -ETIMEDOUT, -EPROTO, -EPERM: as
				  * `refusal` says; -ENOENT, see TABLE_READ */
	enum table_refusal refusal;	 /* why, where it is for a limit or the builder */
	bool cached;			 /* it was read, not built */
	uint64_t cpu_ns;		 /* CPU time used, here and by the builder */
	uint64_t builder_ns;		 /* of that, by the builder */
	struct unwind_table_image image; /* owned by the receiver */
};

/* The next finished table. False: there is none; with `wait`: and no request is left. Without, does not sleep. */
bool table_builder__take(struct table_builder *b, bool wait, struct built_table *built);

/* How many files have no table, by the reason, since the start. */
struct table_refusals {
	uint64_t count[TABLE_REFUSAL_COUNT];
};
void table_builder__refusals(struct table_builder *b, struct table_refusals *refusals);

/* Readable when table_builder__take() has something to do; there may still be no table. */
int table_builder__fd(const struct table_builder *b);

#endif
