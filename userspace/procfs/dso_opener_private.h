/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the opener share: its tables, and a search. dso_opener.c has the essay. */
#ifndef PROCFS_DSO_OPENER_PRIVATE_H
#define PROCFS_DSO_OPENER_PRIVATE_H

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hashmap.h"
#include "base/mapping_path.h"
#include "base/vec.h"
#include "procfs/dso_opener.h"
#include "procfs/lru.h"

#define NO_ROOT	     (-1)
#define PLAIN_KEPT   16u
#define VDSO_NAME    "[vdso]"
#define ARCHIVE_MARK "!/" /* between an archive's path and a name in there */

struct build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[BUILD_ID_SIZE];
};

struct root {
	uint32_t major, minor;
	uint64_t inode, mount;
	uint64_t serial; /* which root of all that were ever here; from 1 on */
	int fd;		 /* -1: a free place */
	uint32_t images; /* that refer to it */
	uint32_t held;	 /* so often; then it stays */
};

struct image {
	int fd;	  /* -1: closed */
	int root; /* the root below which `path` led to it, or NO_ROOT */
	char *path;
	struct build_id build_id;
	dev_t device; /* as stat tells */
	ino_t inode;
	off_t size;
	struct timespec modified;
	uint32_t sightings;    /* the first of its own, or LRU_NONE */
	uint32_t held;	       /* so often; then it stays, open */
	bool archive;	       /* a zip, and no ELF file */
	unsigned int sought;   /* times that its directory was read … */
	uint64_t sought_since; /* … in this minute */
};

/* A library that lies in an archive, and is mapped from there. */
struct member {
	uint32_t archive; /* image */
	uint64_t offset, size;
	struct build_id build_id;
	/* of the archive, as mappings tell it */
	uint32_t major, minor;
	uint64_t inode, generation;
	char *path; /* the archive's, and "!/" and the name in there; NULL: a free place */
};

struct sighting {
	uint64_t root; /* serial; 0: none */
	uint32_t major, minor;
	uint64_t inode, generation;
	char *path; /* without " (deleted)"; NULL: a free place */
	uint32_t image;
	uint32_t previous, next; /* of the same image, or LRU_NONE */
};

/* A memfd that holds no ELF file. */
struct plain_memory {
	uint32_t major, minor;
	uint64_t inode; /* 0: none */
	uint64_t time;	/* when it was read */
};

struct dso_opener {
	/* images: dso_images.c */
	VEC(struct image) images;
	struct lru image_order;
	struct lru fd_order; /* those that are open */
	struct hashmap by_build_id;
	struct hashmap by_inode; /* those without a build-id, by stat's device and inode */
	/* sightings: dso_sightings.c */
	VEC(struct sighting) sightings;
	struct lru sighting_order;
	struct hashmap by_sighting; /* all fields but the image; a generation of 0 equals any */
	struct hashmap by_identity; /* no root, and the very generation: there may be several */
	/* archives: dso_archives.c */
	VEC(struct member) members;
	struct lru member_order;
	int64_t archive_credit;	   /* ns of CPU */
	uint64_t archive_credited; /* when, CLOCK_MONOTONIC */
	/* roots: dso_roots.c */
	VEC(struct root) roots;
	struct lru root_order;
	struct hashmap by_root;
	uint64_t next_serial;
	uint64_t next_sweep;
	int own_root;
	/* /proc tells all mappings of a process in one go: its root, for that long */
	uint32_t last_pid;
	uint64_t last_time;
	int last_root; /* or negative errno */

	struct dso_opener_options caps;
	struct rlimit original_limit;
	size_t fds;
	uint64_t now;	     /* the latest time that was told */
	uint32_t vdso;	     /* image, or HASHMAP_NONE */
	uint64_t vdso_retry; /* not before */
	uint64_t vdso_length;
	struct plain_memory plain[PLAIN_KEPT]; /* the latest */
	unsigned int next_plain;
	uint64_t opens, evicted, forgotten, events;
};

/* The file looked for, and where it was mapped. */
struct wanted {
	const char *path;
	size_t path_length; /* without " (deleted)" */
	struct build_id build_id;
	uint32_t major, minor;
	uint64_t inode, generation;
	/* of a live process; pid 0: none */
	pid_t pid, tid, parent;
	uint64_t start, end;
	bool just_read; /* the mapping has just been read from /proc */
};

/* A file that was opened on the way, with the facts about it. */
struct found {
	int fd;
	int root;
	struct stat st;
	struct build_id build_id;
	bool elf, archive;
	const char *path; /* below the root; NULL: no name leads to it */
	size_t path_length;
};

/* An image that is asked for, and where in it the dso begins. */
struct located {
	uint32_t image; /* or HASHMAP_NONE */
	uint64_t base;
	int fd;	       /* or negative errno */
	bool reopened; /* it was closed before */
};

static inline bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static inline void build_id_set(struct build_id *id, const uint8_t *bytes, size_t size)
{
	id->size = size > BUILD_ID_SIZE ? BUILD_ID_SIZE : size;
	memset(id->bytes, 0, sizeof(id->bytes));
	if (id->size > 0)
		memcpy(id->bytes, bytes, id->size);
}

static inline bool begins_with(const char *path, const char *beginning)
{
	return !strncmp(path, beginning, strlen(beginning));
}

/* ---- dso_roots.c ----------------------------------------------------------------------------- */

void dso_roots__init(struct dso_opener *o);
void dso_roots__fini(struct dso_opener *o);
/* The root of a live process (or thread), or negative errno. Valid as long as nothing later is told. */
int dso_roots__of(struct dso_opener *o, pid_t pid);
/* The root of the process that has the mapping; remembered as long as /proc is read. */
int dso_roots__of_event(struct dso_opener *o, const struct wanted *w,
			const struct mmap_event *event);
/* What tells a root from all that were ever at its place; 0 for NO_ROOT and errors. */
uint64_t dso_roots__serial(const struct dso_opener *o, int root);
void dso_roots__use(struct dso_opener *o, int root);
void dso_roots__hold(struct dso_opener *o, int root);
void dso_roots__unhold(struct dso_opener *o, int root);
/* Close those that no image refers to and nothing has used for a while. */
void dso_roots__sweep(struct dso_opener *o);

/* ---- dso_search.c ---------------------------------------------------------------------------- */

/* False: no ELF file begins there. */
bool dso_search__read_build_id(int fd, uint64_t base, struct build_id *id);
/* A file that no path leads to. */
bool dso_search__is_nameless(const char *path);
/* 0 and *found, with a descriptor of the caller's; or what is to be said about the file in *state. */
int dso_search__mapping(struct dso_opener *o, const struct wanted *w, int root, struct found *found,
			enum file_state *state);
/* The path below this root alone: as it is, and, if no file has that very name, without " (deleted)". */
int dso_search__below(struct dso_opener *o, const struct wanted *w, int root, struct found *found,
		      enum file_state *state);
/* `path` in the place of the wanted one's, just so. 0 or negative errno. */
int dso_search__path(struct dso_opener *o, const struct wanted *w, int root, const char *path,
		     struct found *found);

/* ---- dso_images.c ---------------------------------------------------------------------------- */

void dso_images__init(struct dso_opener *o);
void dso_images__fini(struct dso_opener *o);
/* HASHMAP_NONE: none has it. */
uint32_t dso_images__with_build_id(const struct dso_opener *o, const struct build_id *id);
void dso_images__use(struct dso_opener *o, uint32_t index);
/* As long as it is held it is neither closed nor forgotten. */
void dso_images__hold(struct dso_opener *o, uint32_t index);
void dso_images__unhold(struct dso_opener *o, uint32_t index);
/* Is there room for one descriptor more? Makes it, if something can be closed. */
bool dso_images__make_fd_room(struct dso_opener *o);
/* Close its descriptor, if it is open and not held. */
void dso_images__close(struct dso_opener *o, uint32_t index);
/* Open, and as it was when it was opened? */
bool dso_images__is_unchanged(const struct dso_opener *o, uint32_t index);
/*
 * Take over what was found, whose descriptor is kept if there is room, else closed. 0; -ENOMEM; -ENOSPC:
 * no room for another image.
 */
int dso_images__adopt(struct dso_opener *o, const struct found *found, uint32_t *index);
/*
 * located->fd becomes the descriptor of located->image, if that is what it was and has this build-id at
 * located->base; or negative errno. Opens it again, be there room or not.
 */
void dso_images__locate(struct dso_opener *o, struct located *located,
			const struct build_id *build_id);
/* The name below a root by which it is opened again. Without memory it stays what it was. */
void dso_images__set_place(struct dso_opener *o, uint32_t index, int root, const char *path,
			   size_t path_length);
/* The root is about to be closed. */
void dso_images__forget_root(struct dso_opener *o, int root);

/* ---- dso_sightings.c ------------------------------------------------------------------------- */

void dso_sightings__init(struct dso_opener *o);
void dso_sightings__fini(struct dso_opener *o);
/* The image that these numbers have shown before, if it is still what it was, and the generation it had then. */
uint32_t dso_sightings__image(struct dso_opener *o, const struct wanted *w, int root,
			      uint64_t *generation);
/* The same by the identity, whether open or not. */
uint32_t dso_sightings__image_by_identity(struct dso_opener *o, const struct wanted *w);
/* Remember under which numbers the image shows. Without it, it will just be opened again. 0 or -ENOMEM. */
int dso_sightings__add(struct dso_opener *o, const struct wanted *w, int root, uint32_t image);
void dso_sightings__forget_image(struct dso_opener *o, uint32_t image);

/* ---- dso_archives.c -------------------------------------------------------------------------- */

/* Room for an event with any path. */
struct mmap_event_space {
	union {
		struct mmap_event event;
		char space[sizeof(struct mmap_event) + EVENT_PATH_MAX + EVENT_ALIGN];
	};
};

void dso_archives__init(struct dso_opener *o);
void dso_archives__fini(struct dso_opener *o);
/* A mapping of an open archive: 1 and the event of the library in there; 0: it is of none; -ENOMEM. */
int dso_archives__enter(struct dso_opener *o, uint32_t archive, const struct wanted *w,
			const struct mmap_event *event, struct mmap_event_space *inner);
void dso_archives__locate(struct dso_opener *o, const struct wanted *w, struct located *located);
/* A library below our own root by a name like "/x/app.apk!/lib/libx.so". 0 or negative errno. */
int dso_archives__open_by_name(struct dso_opener *o, const struct wanted *w);
void dso_archives__forget_image(struct dso_opener *o, uint32_t archive);

/* ---- dso_opener.c ---------------------------------------------------------------------------- */

void dso_event__set_build_id(struct mmap_event *event, const struct build_id *id);

#endif
