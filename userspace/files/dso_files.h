/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that processes map, each as it was when opened: its identity and a descriptor.
 *
 * There are two caps, each with a list in order of last use. At the cap of descriptors the least
 * recently used file is closed; its build-id stays, and its next mapping or a request reopens it.
 * At the cap of files a file is forgotten with all references and its slot is reused. Held files
 * are in neither list.
 *
 * Any file can contain any build-id, so a build-id identifies a file only if only the administrator
 * can have put it there. Such files with one build-id are one file, in all containers. Any other
 * file is identified by device, inode, size and times.
 *
 * A file that a user's program serves is kept as a copy in memory (file_search.c). Copies are
 * limited for each user and in total; idle ones are closed to make room.
 *
 * In files/, a file is a place (HASHMAP_NONE: none), valid until the next is adopted or while it is
 * held. Elsewhere it is a number, as is a library in an archive: the place, and a serial number of 32
 * bits. So the number of a forgotten file leads to none, until four billion files later at least.
 */
#ifndef FILES_DSO_FILES_H
#define FILES_DSO_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hashmap.h"
#include "base/vec.h"
#include "files/dso_archives.h"
#include "files/dso_opener.h"
#include "files/dso_roots.h"
#include "files/dso_sightings.h"
#include "files/file_search.h"
#include "files/lru.h"
#include "tenants/quota.h"

#define PLAIN_KEPT  16u
#define COPIES_LEFT 256u
#define VDSO_NAME   "[vdso]"

struct dso_search;

struct dso_file {
	uint64_t number;     /* to others; 0: a free place */
	int fd;		     /* -1: closed */
	struct root_id root; /* below which `path` led to it, or none */
	char *path;
	struct build_id build_id;
	bool shared;		/* it stands for all files with its build-id */
	bool archive;		/* a zip, and no ELF file */
	uint64_t device, inode; /* of the file, from stat */
	uint64_t state;		/* of its size and times */
	off_t size;		/* of what the descriptor leads to */
	struct timespec modified;
	uint64_t unchanged;    /* CLOCK_MONOTONIC ns when it still was so; 0: it is unknown */
	uint64_t copied;       /* bytes, if the descriptor is that of a copy in memory … */
	uint32_t copied_for;   /* … of a file of this user */
	struct meter readings; /* of its directory, if it is an archive */
};

/* A memfd that holds no ELF file. */
struct plain_memory {
	struct file_numbers numbers; /* inode 0: none */
	uint64_t time;		     /* when it was read */
};

struct dso_files {
	VEC(struct dso_file) files;
	struct lru order;
	struct lru open; /* those with a descriptor; its max is that of files and roots */
	struct hashmap by_build_id; /* those that stand for it */
	struct hashmap by_inode;    /* the others, by stat's device and inode */
	struct dso_sightings sightings;
	struct dso_archives archives;
	struct dso_roots *roots;
	/* copies of files */
	struct quota copies;
	uint64_t left_copies[COPIES_LEFT]; /* files that were: each is counted once */
	unsigned int next_left_copy;
	uint32_t vdso;	     /* HASHMAP_NONE: not there */
	uint64_t vdso_retry; /* not before */
	uint64_t vdso_length;
	struct plain_memory plain[PLAIN_KEPT]; /* the latest */
	unsigned int next_plain;
	struct outside_books *books;
	uint64_t evicted, forgotten;
	uint32_t serial; /* of the last number */
};

/* All caps of the options are set. */
void dso_files__init(struct dso_files *f, const struct dso_opener_options *caps,
		     const struct lru_clock *clock, struct dso_roots *roots);
void dso_files__fini(struct dso_files *f);

/* ---- one file -------------------------------------------------------------------------------- */

void dso_files__use(struct dso_files *f, uint32_t file);
/* While held, it is neither closed nor forgotten. */
void dso_files__hold(struct dso_files *f, uint32_t file);
void dso_files__unhold(struct dso_files *f, uint32_t file);
/* Close its descriptor, if it is open and not held. */
void dso_files__close(struct dso_files *f, uint32_t file);
/* The name below a root by which it is reopened. Without memory it stays the old one. */
void dso_files__set_path(struct dso_files *f, uint32_t file, struct root_id root, const char *path,
			 size_t path_length);

/* ---- look-ups -------------------------------------------------------------------------------- */

/* The file that a mapping shows, if known and unchanged. *generation: as it was first seen. */
uint32_t dso_files__of_mapping(struct dso_files *f, const struct mmap_event *mapping,
			       struct root_id root, uint64_t *generation);
/* The file of a number; HASHMAP_NONE: it was forgotten, or the number is that of a library. */
uint32_t dso_files__numbered(const struct dso_files *f, uint64_t number);
/*
 * The file of a number, also of a library in an archive, and its answer, which lacks the root. Its
 * fd may be -EAGAIN: the file is closed; -ESTALE: it was overwritten and has another build-id;
 * -ENOENT: it was forgotten, and *file is HASHMAP_NONE.
 */
struct file_answer dso_files__locate(struct dso_files *f, uint64_t number, uint32_t *file);
/* Returns the result of `answer`. The descriptors do not change until it returns. */
int dso_files__answer(struct dso_files *f, uint32_t file, struct file_answer located,
		      const struct file_request *request);

/* ---- findings -------------------------------------------------------------------------------- */

/* Takes what was found; keeps its descriptor if there is room. 0, -ENOMEM; -ENOSPC: too many. */
int dso_files__adopt(struct dso_files *f, const struct dso_search *found, uint32_t *file);
/* The file was found again and is open now, room or not; false: it is another file, and closed. */
bool dso_files__reopen(struct dso_files *f, uint32_t file, const struct dso_search *found);
/* A dso_make_fd_room_fn; the context is the files. */
bool dso_files__make_fd_room(void *files, uint64_t owner);
/* Close the file if there are more descriptors than there may be. */
void dso_files__close_surplus(struct dso_files *f, uint32_t file);
/* How many of `wanted` bytes a copy for this user may have. Closes idle copies to make room. */
uint64_t dso_files__copy_room(struct dso_files *f, uint32_t user, uint64_t wanted);
/* Counts a file of the user, once, as left out: no room, or (`by_itself`) never room. */
void dso_files__note_copy(struct dso_files *f, uint32_t user, const struct file_finding *facts,
			  bool by_itself);

#endif
