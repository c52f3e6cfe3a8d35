/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Root directories of processes, identified by inode and mount. Reading both calls no file system,
 * which may be a tenant's program: O_PATH opens nothing, AT_STATX_DONT_SYNC returns what is cached.
 *
 * A root stays open, because a closed file may have to be reopened below it after its process
 * ended. An open root keeps its mount busy, so a root without files is closed after a while. If the
 * table is full, the least recently used root is closed, even with files: they stay known and get a
 * root again from the next process that maps them.
 */
#ifndef FILES_DSO_ROOTS_H
#define FILES_DSO_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "base/proc_task.h"
#include "base/vec.h"
#include "files/file_search.h"
#include "files/lru.h"

/* Never reused; invalid once the root is closed. */
struct root_id {
	uint64_t v; /* 0: none */
};

struct dso_root {
	struct root_id id; /* 0: a free place */
	uint32_t major, minor;
	uint64_t inode, mount;
	int fd;
	uint32_t files; /* that refer to it */
};

#define RECENT_ROOTS 64u

/* A process's root, by /proc. A root that is closed meanwhile is read again. */
struct recent_root {
	uint32_t pid;  /* 0: none */
	uint64_t read; /* CLOCK_MONOTONIC ns */
	struct root_id root;
};

#define NOTED_PROCESSES 1024u

/* What is needed of a process once it has ended. */
struct noted_process {
	uint32_t pid;	     /* 0: none */
	uint32_t user;	     /* tenant_user() */
	uint64_t directory;  /* /proc/PID's inode, which no other process has */
	uint64_t born;	     /* 0: unknown */
	uint64_t read, done; /* CLOCK_MONOTONIC ns: the reading was in between */
	struct root_id root;
};

/* Makes room for one more descriptor of this owner's, if something can be closed. */
typedef bool (*dso_make_fd_room_fn)(void *context, uint64_t owner);

struct dso_roots {
	VEC(struct dso_root) roots;
	struct lru order;
	uint32_t last_serial;
	uint64_t next_sweep;
	struct root_id own;
	struct recent_root
		recent[RECENT_ROOTS]; /* by pid: most have several mappings to search for */
	struct noted_process noted[NOTED_PROCESSES]; /* by pid */
	dso_make_fd_room_fn make_fd_room; /* descriptors have one limit, together with files */
	void *context;
};

void dso_roots__init(struct dso_roots *r, const struct lru_clock *clock, size_t max,
		     dso_make_fd_room_fn make_fd_room, void *context);
void dso_roots__fini(struct dso_roots *r);

/* The root of a live process (or thread), or none. */
struct root_id dso_roots__of(struct dso_roots *r, pid_t pid);
/* The root of the process with the mapping, read again if the mapping is newer than the reading. */
struct root_id dso_roots__of_event(struct dso_roots *r, const struct mmap_event *event);

/*
 * Notes the root of a process, and its user, for when it has ended: not at each mapping, because few
 * processes need it. Does nothing within a second of the last time.
 */
void dso_roots__note(struct dso_roots *r, pid_t pid);

/*
 * The root of a process, and its user: as it is, or if it has ended as last noted. None: it is unknown, or
 * it may be that of another process with its pid.
 */
struct root_id dso_roots__of_process(struct dso_roots *r, pid_t pid,
				     const struct process_times *times, uint32_t *user);

/* Its descriptor, or -1. */
int dso_roots__fd(const struct dso_roots *r, struct root_id id);
void dso_roots__use(struct dso_roots *r, struct root_id id);
/* While held, it stays open. */
void dso_roots__hold(struct dso_roots *r, struct root_id id);
void dso_roots__unhold(struct dso_roots *r, struct root_id id);
/* A file's reference becomes one to `to`. */
void dso_roots__refer(struct dso_roots *r, struct root_id *reference, struct root_id to);
/* Now and then, close roots without files that were not used for a while. */
void dso_roots__tick(struct dso_roots *r);

#endif
