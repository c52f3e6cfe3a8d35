/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables of files, read from the cache or built by unprivileged processes (build.h), so that
 * the collector can read its rings meanwhile: a big library's table takes a tenth of a second. The
 * cache is searched before anything is built, and written when there is nothing else to do. Used by
 * one thread.
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
 * Tables have at most `limit` bytes, and are built in a pool of builder_options, which outlives it.
 * Owns the cache (NULL: none), also on failure. 0 or negative errno.
 */
int table_builder__new(size_t limit, struct helper_pool *pool, struct table_cache *cache,
		       struct table_builder **builder);
/* Takes half a second for cache writes; drops all requests. */
void table_builder__free(struct table_builder *b);

enum table_effort {
	TABLE_READ,  /* only from the cache, else -ENOENT */
	TABLE_BUILD, /* unless it is in the cache */
};

struct table_request {
	uint32_t id;	      /* returned with the table */
	int fd;		      /* the caller's, who may close it at once */
	uint64_t base;	      /* offset of the ELF file in it; if not 0, the table is not cached */
	enum build_kind kind; /* only tables of files are cached */
	enum table_effort effort;
	uint32_t owner; /* the requesting user; users take turns */
};

/* Where builders of large files are counted (QUOTA_LARGE_CHILDREN): others wait for them. */
void table_builder__count_large(struct table_builder *b, _Atomic int64_t *large);

/* 0 or negative errno. */
int table_builder__request(struct table_builder *b, const struct table_request *request);

/* Moves this file before all other requests of its user. */
void table_builder__hurry(struct table_builder *b, uint32_t id);
/* Drops a request of BUILD_PIECES that no builder has yet. False: there is none. */
bool table_builder__cancel_pieces(struct table_builder *b, uint32_t id);

struct built_table {
	uint32_t id, owner;
	enum build_kind kind;
	int err; /* of unwind_table__build(); -EPIPE, -ETIMEDOUT, -EPROTO, -EPERM: see
				  * `refusal`; -ENOENT: see TABLE_READ */
	enum table_refusal refusal;	 /* the reason, if a limit or the builder is one */
	bool cached;			 /* read, not built */
	uint64_t cpu_ns;		 /* CPU time, here and in the builder */
	struct unwind_table_image image; /* owned by the receiver */
};

/* The next finished table. False: none; with `wait`: and no request is left. Else never sleeps. */
bool table_builder__take(struct table_builder *b, bool wait, struct built_table *built);

/* Files without a table since the start, by reason. */
struct table_refusals {
	uint64_t count[TABLE_REFUSAL_COUNT];
};
void table_builder__refusals(struct table_builder *b, struct table_refusals *refusals);

/* Readable when table_builder__take() has work; there may still be no table. */
int table_builder__fd(const struct table_builder *b);

#endif
