/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of the opener: its tables, and a search. dso_opener.c has the essay. */
#ifndef PROCFS_DSO_OPENER_PRIVATE_H
#define PROCFS_DSO_OPENER_PRIVATE_H

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hashmap.h"
#include "base/mapping_path.h"
#include "base/quota.h"
#include "base/vec.h"
#include "procfs/dso_opener.h"
#include "procfs/file_search.h"
#include "procfs/lru.h"

#define NO_ROOT	     (-1)
#define PLAIN_KEPT   16u
#define COPIES_LEFT  256u
#define VDSO_NAME    "[vdso]"
#define ARCHIVE_MARK "!/" /* between an archive's path and a name in there */

struct root {
	uint32_t major, minor;
	uint64_t inode, mount;
	uint64_t serial; /* which root of all that were ever here; from 1 on */
	int fd;		 /* -1: a free place */
	uint32_t images; /* that refer to it */
	uint32_t held;	 /* so often; then it stays */
	uint64_t owner;	 /* of the process that was first seen with it */
};

struct dso_image {
	int fd;	  /* -1: closed */
	int root; /* the root below which `path` led to it, or NO_ROOT */
	char *path;
	struct build_id build_id;
	bool shared;		/* it stands for all files with its build-id: see dso_images.c */
	uint64_t device, inode; /* of the file, from stat */
	uint64_t state;		/* of its size and times */
	off_t size;		/* of what the descriptor leads to */
	struct timespec modified;
	uint32_t sightings;    /* the first of its own, or LRU_NONE */
	uint32_t held;	       /* so often; then it stays, open */
	uint64_t copied;       /* bytes, if the descriptor is that of a copy in memory … */
	uint32_t copied_for;   /* … of a file of this user */
	uint64_t owner;	       /* of the process that mapped it first; 0 if it is `shared` */
	bool archive;	       /* a zip, and no ELF file */
	struct meter readings; /* of its directory */
};

/* A library that lies in an archive, and is mapped from there. */
struct member {
	uint32_t archive; /* image */
	uint64_t offset, size;
	struct build_id build_id;
	/* of the archive, from its mapping */
	uint32_t major, minor;
	uint64_t inode, generation;
	char *path; /* the archive's, and "!/" and the name in there; NULL: a free place */
};

struct sighting {
	uint64_t root;		  /* serial; 0: none */
	struct build_id build_id; /* then the numbers are 0 */
	uint32_t major, minor;
	uint64_t inode, generation;
	char *path; /* without " (deleted)"; NULL: a free place */
	uint32_t image;
	uint32_t previous, next; /* of the same image, or LRU_NONE */
};

/* An event that comes after mappings which wait. */
struct passed_event {
	struct event_header *event; /* owned */
	event_push_fn push;
	void *context;
};

/* A memfd that holds no ELF file. */
struct plain_memory {
	uint32_t major, minor;
	uint64_t inode; /* 0: none */
	uint64_t time;	/* when it was read */
};

struct dso_opener {
	/* images: dso_images.c */
	VEC(struct dso_image) images;
	struct lru image_order;
	struct lru fd_order;	    /* those that are open */
	struct hashmap by_build_id; /* those that stand for it */
	struct hashmap by_inode;    /* the others, by stat's device and inode */
	/* copies of files */
	struct {
		struct quota quota;
		uint64_t left[COPIES_LEFT]; /* files that were: each is counted once */
		unsigned int next_left;
	} copies;
	/* sightings: dso_sightings.c */
	VEC(struct sighting) sightings;
	struct lru sighting_order;
	struct hashmap by_numbers; /* sightings */
	/* archives: dso_archives.c */
	VEC(struct member) members;
	struct lru member_order;
	struct meter archive_cpu;
	/* roots: dso_roots.c */
	VEC(struct root) roots;
	struct lru root_order;
	struct hashmap by_root;
	uint64_t next_serial;
	uint64_t next_sweep;
	int own_root;
	/* the root of the last process: /proc lists the mappings of a process one after the other */
	uint32_t last_pid;
	uint64_t last_time;
	int last_root; /* or negative errno */

	/* searches: dso_searches.c */
	struct helper_pool *pool; /* NULL: files are searched for in place */
	/* for searches that are under way: dso_waits.c */
	struct dso_wait *waits;
	VEC(struct passed_event) passed; /* until they end */
	int err;			 /* of an answer that came outside of a call */

	struct dso_opener_options caps;
	struct rlimit original_limit;
	size_t fds;
	struct quota root_quota, image_quota, fd_quota; /* the last: of images alone */
	uint64_t now;					/* the latest time of an event */
	uint32_t vdso;					/* image, or HASHMAP_NONE */
	uint64_t vdso_retry;				/* not before */
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
	bool unshared;	/* EVENT_UNSHARED: with a build-id, the numbers count as well */
};

/* A file that was opened on the way, with the facts about it. */
struct found {
	int fd;
	int root;
	uint64_t owner; /* the search was charged to */
	struct file_finding facts;
	const char *path; /* below the root; NULL: no name leads to it */
	size_t path_length;
	uint64_t copied; /* bytes, if it is a copy in memory */
	uint32_t user;	 /* of the process */
};

/* The result of a search: 0 and the finding, whose descriptor is the callee's; or the reason why there is none. */
typedef void (*search_done_fn)(struct dso_opener *o, void *context, const struct found *found,
			       enum file_state state);

/* The requested image, and where in it the dso begins. */
struct located {
	uint32_t image; /* or HASHMAP_NONE */
	uint64_t base;
	int fd; /* or negative errno */
};

static inline bool begins_with(const char *path, const char *beginning)
{
	return !strncmp(path, beginning, strlen(beginning));
}

/* ---- dso_roots.c ----------------------------------------------------------------------------- */

void dso_roots__init(struct dso_opener *o);
void dso_roots__fini(struct dso_opener *o);
/* The root of a live process (or thread), or negative errno. Valid until the next call. */
int dso_roots__of(struct dso_opener *o, pid_t pid);
/* The root of the process that has the mapping; remembered as long as /proc is read. */
int dso_roots__of_event(struct dso_opener *o, const struct wanted *w,
			const struct mmap_event *event);
/* A number that no other root at its place ever had; 0 for NO_ROOT and errors. */
uint64_t dso_roots__serial(const struct dso_opener *o, int root);
void dso_roots__use(struct dso_opener *o, int root);
void dso_roots__hold(struct dso_opener *o, int root);
void dso_roots__unhold(struct dso_opener *o, int root);
/* Close those that no image refers to and nothing has used for a while. */
void dso_roots__sweep(struct dso_opener *o);

/* ---- dso_searches.c -------------------------------------------------------------------------- */

/*
 * Search for the file of a live process's mapping, below its root, or that of a process that is gone. `done` is
 * called exactly once: before this returns, if there are no readers. 0, or -ENOMEM and it is not.
 */
int dso_searches__mapping(struct dso_opener *o, const struct wanted *w, int root,
			  search_done_fn done, void *context);
/* The same at once, in this process, below our own root: for replays. 0 or negative errno. */
int dso_searches__own(struct dso_opener *o, const struct wanted *w, struct found *found);

/* ---- dso_waits.c ----------------------------------------------------------------------------- */

/*
 * The event is answered when its file was searched for: later, with a copy of it, or before this returns. Events
 * of one file wait for one search. 0 or -ENOMEM.
 */
int dso_waits__event(struct dso_opener *o, const struct mmap_event *event, const struct wanted *w,
		     int root, mapping_answer_fn answer, void *context);
/* dso_opener__pass(). */
int dso_waits__pass(struct dso_opener *o, struct event_header *event, event_push_fn push,
		    void *context);
/* Passes on what waits for nothing any more. An error is left in o->err. */
void dso_waits__pass_on(struct dso_opener *o);
/* The time of the oldest event that waits, or UINT64_MAX. */
uint64_t dso_waits__since(const struct dso_opener *o);
void dso_waits__fini(struct dso_opener *o);

/* ---- dso_images.c ---------------------------------------------------------------------------- */

void dso_images__init(struct dso_opener *o);
void dso_images__fini(struct dso_opener *o);
/* The image that stands for a build-id, or HASHMAP_NONE. */
uint32_t dso_images__with_build_id(const struct dso_opener *o, const struct build_id *id);
/* The image of one file by its events; HASHMAP_NONE: it is not known, or has changed. */
uint32_t dso_images__of_file(const struct dso_opener *o, const struct wanted *w);
/* Its identity in an event. */
void dso_images__report(const struct dso_opener *o, uint32_t index, struct mmap_event *event);
void dso_images__use(struct dso_opener *o, uint32_t index);
/* As long as it is held it is neither closed nor forgotten. */
void dso_images__hold(struct dso_opener *o, uint32_t index);
void dso_images__unhold(struct dso_opener *o, uint32_t index);
/* Is there room for one descriptor more of this owner's? Makes it, if something can be closed. */
bool dso_images__make_fd_room(struct dso_opener *o, uint64_t owner);
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
 * located->base; or negative errno. -EAGAIN: it was closed, see dso_images__reopen().
 */
void dso_images__locate(struct dso_opener *o, struct located *located,
			const struct build_id *build_id);
/* Search for it at its place. 0; -ENOENT: it has none; -ENOMEM. */
int dso_images__reopen(struct dso_opener *o, uint32_t index, search_done_fn done, void *context);
/* What that has found is the image's again, be there room or not; false: it is another file, and closed. */
bool dso_images__reopened(struct dso_opener *o, uint32_t index, const struct found *found);
/* The name below a root by which it is opened again. Without memory it stays what it was. */
void dso_images__set_place(struct dso_opener *o, uint32_t index, int root, const char *path,
			   size_t path_length);
/* The root is about to be closed. */
void dso_images__forget_root(struct dso_opener *o, int root);
/* How many of the `wanted` bytes a copy for this user may have. Makes room, if what is idle can be closed. */
uint64_t dso_images__copy_room(struct dso_opener *o, uint32_t user, uint64_t wanted);
/*
 * Enter a file of the user that was left out into the books of the outside: there is no room, or (`by_itself`) never
 * will be. It may be requested again and again.
 */
void dso_images__note_copy(struct dso_opener *o, uint32_t user, const struct file_finding *facts,
			   bool by_itself);

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
/* The event shows this image. */
void dso_event__set_image(struct dso_opener *o, struct mmap_event *event, uint32_t index);
/* Completes an event by a finding, whose descriptor is taken; *image as in dso_event__answer(). 0 or -ENOMEM. */
int dso_event__complete(struct dso_opener *o, struct mmap_event *event, const struct wanted *w,
			int root, const struct found *found, uint32_t *image);
/* Nothing was found. */
void dso_event__give_up(struct mmap_event *event, enum file_state state);
/* The answer about a complete event; `image`: of its file, or HASHMAP_NONE. What `answer` returned, or -ENOMEM. */
int dso_event__answer(struct dso_opener *o, struct mmap_event *event, const struct wanted *w,
		      uint32_t image, mapping_answer_fn answer, void *context);

#endif
