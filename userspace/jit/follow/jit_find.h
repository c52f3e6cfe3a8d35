/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a process, and its rights to open them. */
#ifndef JIT_FOLLOW_JIT_FIND_H
#define JIT_FOLLOW_JIT_FIND_H

#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "jit/follow/jit_owner.h"

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * Finds the perf map and jitdump of a process. A perf map is /tmp/perf-PID.map: by the process's
 * own pid in its own root, by our pid for it there, or by our pid on the host.
 *
 * The process may be hostile. The file must be a regular file of its user, no link, no mount point,
 * on a file system that holds data. All of this is checked on the found file before it is opened,
 * with the process's rights (above).
 */

/* The identity of a process, as needed to find its files. */
struct jit_owner {
	pid_t pid;     /* in our namespace */
	pid_t own_pid; /* in its innermost pid namespace */
	uid_t uid;     /* real */
	uid_t euid;    /* effective */
	gid_t egid;
	uint64_t start;	       /* CLOCK_MONOTONIC ns, 10 ms grain */
	bool apart;	       /* in another user namespace: its root is not root here */
	bool has_quit_handler; /* catches SIGQUIT */
	/*
	 * The user to charge: its real uid here. In another user namespace the creator's uid, or
	 * the namespace's number if that is root.
	 */
	uint32_t user;
	struct jit_rights rights;
};

struct jit_found {
	int fd;			   /* -1: not to be read, see `state` */
	enum jit_file_state state; /* FOLLOWED, or why not; OUTDATED has a descriptor */
	struct stat st;
	uint64_t modified;   /* CLOCK_MONOTONIC ns; 0: before boot */
	char path[PATH_MAX]; /* as the process sees it */
};

/* The perf map. 0: see `found`; -ENOENT: none; negative errno. The caller closes found->fd. */
int jit_find_map(const struct jit_owner *owner, struct jit_found *found);

/* The jitdump mapped at [start, end), deleted or not. As jit_find_map(); found->path is `path`. */
int jit_open_dump(const struct jit_owner *owner, const char *path, uint64_t start, uint64_t end,
		  struct jit_found *found);

/* From CLOCK_MONOTONIC to CLOCK_REALTIME, the clock of files, ns. False: not exact to 2 us. */
bool jit_clock_offset(int64_t *offset);

/* Has the process the file open? 1, 0; -EFBIG: it is none of the first 4,096 open files. */
int jit_has_open(pid_t pid, const struct stat *file);

/* The path is that of a jitdump: ".../jit-NUMBER[-NUMBER].dump", perhaps with " (deleted)". */
bool jit_is_dump(const char *path);

#endif
