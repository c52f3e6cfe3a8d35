/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens what is mapped, when it is first seen, and keeps it open beside the stream: so that a
 * binary that is deleted, replaced or whose process is gone can still be read when the recording
 * ends.
 */
#ifndef PROCFS_DSO_OPENER_H
#define PROCFS_DSO_OPENER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <sysprof/event.h>

struct dso_opener;

struct dso_opener_stats {
	size_t files;	 /* distinct images that were opened */
	size_t fds;	 /* descriptors kept */
	size_t fd_limit; /* at most so many */
	uint64_t opens;	 /* files opened so far: most events need none */
	uint64_t events;
};

/* Raises the soft limit of open files to the hard one. 0 or -ENOMEM. */
int dso_opener__new(struct dso_opener **opener);
/* Closes every descriptor it handed out. NULL is fine. */
void dso_opener__free(struct dso_opener *o);

/* The limit of open files as it was before: what a COMMAND should be started with. */
void dso_opener__original_limit(const struct dso_opener *o, struct rlimit *limit);

/*
 * A mapping is about to enter the queue: find and open its file, and fill build_id, build_id_size
 * (with EVENT_BUILD_ID) and file_state. Where the same file was seen before without a build-id,
 * inode_generation becomes what it was then (/proc does not tell it, perf does), so that one file
 * has one identity. `parent` is the pid of the parent process, 0 where it is unknown: its root is
 * tried when the process is gone. 0 or -ENOMEM: a file that cannot be had is a file_state, not an
 * error.
 */
int dso_opener__see(struct dso_opener *o, struct mmap_event *event, pid_t parent);

/* Room for an event with any path. */
struct mmap_event_space {
	union {
		struct mmap_event event;
		char space[sizeof(struct mmap_event) + EVENT_PATH_MAX + EVENT_ALIGN];
	};
};

/*
 * After dso_opener__see(): if the file is a zip archive and a library that lies in it uncompressed is what
 * is mapped, then *inner is the same event with the library as its file: "/x/app.apk!/lib/libx.so", its
 * build-id, and offsets that are its own. 1; 0: it is not; -ENOMEM.
 */
int dso_opener__enter(struct dso_opener *o, const struct mmap_event *event,
		      struct mmap_event_space *inner);

/* What tells one image from another: the build-id alone where it is known, else all the rest. */
struct dso_identity {
	const char *path; /* as mapped, with or without " (deleted)" */
	const uint8_t *build_id;
	uint8_t build_id_size; /* 0: none */
	uint32_t major, minor;
	uint64_t inode, inode_generation;
};

/*
 * The descriptor of a file seen before, or -1; *base is where the dso begins in it. It stays the opener's. A file for which there was no
 * descriptor left is opened again if its path still leads to it. *root_fd (NULL is fine) is the
 * root directory of the process that mapped it, or -1.
 */
int dso_opener__find(struct dso_opener *o, const struct dso_identity *identity, int *root_fd,
		     uint64_t *base);

/*
 * Without a live process (a recording that was cut short): open the path below our own root, if the
 * file there has this build-id, or, where none was recorded, this inode. "[vdso]" is our own, if
 * the build-id agrees. The opener's descriptor, or negative errno: -ENOENT; -ESTALE: another file
 * has the name now; what opening gave.
 */
int dso_opener__open_by_identity(struct dso_opener *o, const struct dso_identity *identity,
				 uint64_t *base);

void dso_opener__stats(const struct dso_opener *o, struct dso_opener_stats *stats);

#endif
