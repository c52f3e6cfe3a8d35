/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the unwind feed. */
#ifndef UNWIND_UNWIND_FEED_PRIVATE_H
#define UNWIND_UNWIND_FEED_PRIVATE_H

#include "base/map.h"
#include "base/vec.h"
#include "tenants/quota.h"
#include "unwind/table_builder.h"
#include "unwind/unwind_feed.h"

enum table_state {
	FILE_UNREAD,
	FILE_REQUESTED, /* not answered yet */
	FILE_PLAIN,	/* it has no table: unwind by frame pointers */
	FILE_LATER,	/* its table is not requested yet */
	FILE_BUILDING,	/* its table is being built */
	FILE_THERE,	/* its table was put into the store, and may have been evicted since */
	FILE_REFUSED,	/* there is no room for its table, or it cannot be built */
};

struct fed_file {
	bool is_made;	      /* JIT code */
	struct elf_file *elf; /* its segments; without a descriptor */
	uint64_t base;	      /* offset of the image in the file */
	bool recent;	      /* used since the hand passed */
	bool pending;	      /* its descriptor was requested again, without an answer yet */
	struct table_number number;
	uint32_t requester; /* the process for which the table was requested */
	enum table_state state;
	bool not_cached;     /* the cache has no table of it */
	bool left_counted;   /* code without rules is in the books */
	unsigned int deaths; /* of builders that read it */
	uint64_t refused;    /* when; UINT64_MAX: permanently */
};

/* The table of a process's JIT code, from its jitdump. */
struct fed_made {
	uint32_t tgid;
	uint32_t ticket;	    /* of its request, until that is built; then 0 */
	struct table_number number; /* {}: it has no table */
};

MAP_TYPE(made_map, struct fed_made);

struct unwind_feed {
	struct unwind_feed_options options;
	struct place_store *places; /* of options.store */
	struct table_builder *builder;
	VEC(struct fed_file) files; /* by image */
	struct image_id open_image; /* the file answered last … */
	int open_fd;		    /* … and its descriptor; -1: none */
	size_t with_elf;	    /* files with `elf` */
	size_t hand;		    /* the next file to consider for eviction */
	VEC(struct unwind_placement) placements, pieces;
	VEC(struct made_area) areas;
	struct made_map mades;
	uint32_t tickets; /* of `mades` */
	struct made_code *made_code;
	size_t building; /* tables requested and not taken yet */
	struct quota building_cpu;
	bool cached_only; /* see unwind_feed__set_cached_only() */
	bool ending;
	struct unwind_feed_stats stats;
};

/* ---- unwind_feed.c --------------------------------------------------------------------------- */

/* Takes a table of unwind_feed__describe(). 0, or the result of options.described. */
int unwind_feed__put_made(struct unwind_feed *f, const struct built_table *built);

#endif
