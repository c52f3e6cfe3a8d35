/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the unwind feed. */
#ifndef UNWIND_UNWIND_FEED_PRIVATE_H
#define UNWIND_UNWIND_FEED_PRIVATE_H

#include "base/map.h"
#include "base/quota.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "unwind/table_builder.h"
#include "unwind/unwind_feed.h"

enum table_state {
	FILE_UNREAD,
	FILE_REQUESTED, /* and not answered yet */
	FILE_PLAIN,	/* it has no table; frame pointers have to do */
	FILE_LATER,	/* not requested yet */
	FILE_BUILDING,	/* being built */
	FILE_THERE,	/* was put into the store, where it may have made room for others since */
	FILE_REFUSED,	/* there was no room for it */
};

struct fed_file {
	bool is_made;	      /* JIT code */
	struct elf_file *elf; /* its segments; it has no descriptor */
	uint64_t base;	      /* where it begins in the file */
	bool recent;	      /* it was used since the hand came by */
	bool pending;	      /* its descriptor was requested again, and has not come */
	struct table_number number;
	uint32_t requester; /* the process for which the table was requested */
	enum table_state state;
	bool not_cached;     /* the cache has been searched */
	unsigned int deaths; /* of builders that read it */
	uint64_t refused;    /* when; UINT64_MAX: for good */
};

/* The table of code that a process has made, by its jitdump. */
struct fed_made {
	uint32_t tgid;
	uint32_t ticket;	    /* of its last request, while that is being built; 0 */
	struct table_number number; /* {}: it has none */
};

MAP_TYPE(made_map, struct fed_made);

struct unwind_feed {
	struct unwind_feed_options options;
	struct place_store *places; /* of options.store */
	struct table_builder *builder;
	VEC(struct fed_file) files; /* by image */
	struct image_id open_image; /* the last file that was answered … */
	int open_fd;		    /* … and its descriptor; -1: none */
	size_t with_elf;	    /* files */
	size_t hand;		    /* the next file that is looked at for one to forget */
	VEC(struct unwind_placement) placements, pieces;
	VEC(struct made_area) areas;
	struct made_map mades;
	uint32_t tickets; /* of these */
	struct made_code *made_code;
	size_t building; /* tables requested and not taken yet */
	struct quota building_cpu;
	bool cached_only; /* nothing is built */
	bool ending;
	struct unwind_feed_stats stats;
};

/* ---- unwind_feed_files.c ---------------------------------------------------------------------- */

/* The file of an image; the first call requests it. Valid until the next one. 0, -ENOMEM. */
int unwind_feed__file(struct unwind_feed *f, const struct fed_process *process,
		      struct image_id image, struct fed_file **file);
/* The file that is mapped there; NULL: none that was ever placed. */
struct fed_file *unwind_feed__file_at(struct unwind_feed *f, const struct fed_process *process,
				      uint64_t address, struct image_id *image);
/* The descriptor of its file, until the next request; -EAGAIN: it may come later; -ENOENT; -ENOMEM. */
int unwind_feed__descriptor(struct unwind_feed *f, struct image_id image);
/* 0 or -ENOMEM; the result is in the file's state. */
int unwind_feed__request_table(struct unwind_feed *f, const struct fed_process *process,
			       struct fed_file *file, struct image_id image);
void unwind_feed__close_file(struct unwind_feed *f, struct fed_file *file);

/* ---- unwind_feed.c ---------------------------------------------------------------------------- */

/* A table of unwind_feed__describe() has been built. 0, or what options.described returned. */
int unwind_feed__put_made(struct unwind_feed *f, const struct built_table *built);

#endif
