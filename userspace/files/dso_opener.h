/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens mapped files when they are first seen and keeps them open, so that a binary can be read
 * after it was deleted or replaced, or its process has ended. Every table has a cap; at the cap the
 * least recently used entry is evicted.
 *
 * Mappings and files are requests with a callback for the answer. Known files are answered before
 * the call returns. With readers (see the options) others are answered later, by
 * dso_opener__step(): other processes make the system calls that a file's owner can block, and one
 * that hangs is answered after a second. Without readers the calls are made in place.
 */
#ifndef FILES_DSO_OPENER_H
#define FILES_DSO_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "base/proc_task.h"
#include "stream/event_queue.h"

struct dso_opener;

/* Caps; 0: the default. */
struct dso_opener_options {
	size_t images_max; /* files that are known, open or not: 8,192 */
	size_t fds_max;	   /* descriptors: 4,096, or fewer where the limit of open files is low */
	size_t roots_max;  /* root directories: 1,024 */
	size_t sightings_max; /* ways in which files without a build-id show in mappings: 32,768 */
	size_t members_max;   /* libraries inside archives: 4,096 */
	uint64_t idle;	      /* ns: what was used since then is not evicted: 30 s, 1 s at least */
	/* Files are opened by this service of the pool, file_search__serve. NULL: in place. */
	struct helper_pool *readers;
	unsigned int service;
	uint64_t copies_user,
		copies_all;	     /* bytes of copies in memory: 256 MB a user, 512 MB in all */
	struct outside_books *books; /* counts what is left out; NULL: nowhere */
};

struct dso_opener_stats {
	size_t files;	    /* images that are known */
	size_t fds;	    /* descriptors kept */
	size_t fd_limit;    /* at most so many */
	size_t roots;	    /* those of them that are root directories */
	uint64_t opens;	    /* files opened so far: most events need none */
	uint64_t evicted;   /* descriptors closed to make room */
	uint64_t forgotten; /* images forgotten to make room */
	uint64_t events;
};

/*
 * Raises the soft limit of open files to the hard one. `options` may be NULL. Readers outlive the
 * opener. 0 or -ENOMEM.
 */
int dso_opener__new(const struct dso_opener_options *options, struct dso_opener **opener);
/* NULL is fine. */
void dso_opener__free(struct dso_opener *o);

/* ---- mappings -------------------------------------------------------------------------------- */

/* The completed event, valid until this returns. 0 or negative errno. */
typedef int (*mapping_answer_fn)(void *context, struct mmap_event *event);

/*
 * A mapping is about to enter the queue: find and open its file, and fill build_id, build_id_size
 * (with EVENT_BUILD_ID), file_state and file. A file seen before without a build-id keeps the
 * inode_generation from then, because perf reports it and /proc does not, and a file has one
 * identity. If the mapping is of a library stored uncompressed in a zip archive, the answer is the
 * event with the library as its file: "/x/app.apk!/lib/libx.so", its build-id and own offsets.
 *
 * `event` is the caller's. `parent`: pid of the parent process, 0: unknown; its root is tried if
 * the process is gone. 0, -ENOMEM, or what `answer` returned; a missing file is only a file_state.
 */
int dso_opener__see(struct dso_opener *o, struct mmap_event *event, pid_t parent,
		    mapping_answer_fn answer, void *context);

/* Passes on an event (EVENT_MAPS_READ) after all earlier mappings. `push`'s result or -ENOMEM. */
int dso_opener__pass(struct dso_opener *o, struct event_header *event, event_push_fn push,
		     void *context);

/* Time of the oldest event that waits, or UINT64_MAX. Events from then on must stay queued. */
uint64_t dso_opener__pending_since(const struct dso_opener *o);

/* ---- readers --------------------------------------------------------------------------------- */

/* Takes what readers found. Does not sleep. 0, -ENOMEM, or what an answer's callback returned. */
int dso_opener__step(struct dso_opener *o);
/* The same until no answer is pending, or for `patience` ns. */
int dso_opener__settle(struct dso_opener *o, uint64_t patience);
/* The same; then answers all requests, also later ones, from the cache and ends the readers. */
int dso_opener__finish(struct dso_opener *o, uint64_t patience);
/* ---- files ----------------------------------------------------------------------------------- */

/*
 * A file is a number: event->file of an answered mapping, and of dso_opener__find() in a replay. It
 * is valid for this opener alone, and never means another file. 0: none.
 */

/* Both descriptors are the opener's, valid until the callback returns: dup one to keep it. */
struct file_answer {
	int fd;	     /* or negative errno: -ENOENT: unknown, gone; -ESTALE: replaced; … */
	int root_fd; /* root directory of the process that mapped it, or -1; possible without fd */
	uint64_t base;	     /* where the dso begins in the file */
	uint32_t copied_for; /* fd is a copy in memory of this user's file; 0: none, or root's */
};

/* A request for a file. The callback gets the context and the key, which are the caller's. */
struct file_request {
	int (*answer)(void *context, uint32_t key, const struct file_answer *answer);
	void *context;
	uint32_t key;
};

/* A file seen before; if closed, reopened by its path. The result of the answer, or -ENOMEM. */
int dso_opener__request(struct dso_opener *o, uint64_t file, const struct file_request *request);

/* As dso_roots__note(). */
void dso_opener__note_process(struct dso_opener *o, pid_t pid);
/* As dso_roots__of_process(). Its descriptor is valid until the next call; -1: unknown. */
int dso_opener__root_of(struct dso_opener *o, pid_t pid, const struct process_times *times,
			uint32_t *user);

/* Is the file open and without a name? Its space on the disk is free only after it is closed. */
bool dso_opener__is_deleted(struct dso_opener *o, uint64_t file);
/* The file has no mapping, and no request will come: close it, unless a request is pending. */
void dso_opener__release(struct dso_opener *o, uint64_t file);

/*
 * The file of a recorded mapping, into event->file: the path below our own root, if the file there
 * has this build-id, or, where none was recorded, this inode. "[vdso]" is our own, if the build-id
 * agrees. 0; -ESTALE: another file has the name now; -ENOENT, …
 */
int dso_opener__find(struct dso_opener *o, struct mmap_event *event);

void dso_opener__stats(const struct dso_opener *o, struct dso_opener_stats *stats);

#endif
