/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a process, and its rights to open them. */
#ifndef JITWATCH_JIT_FIND_H
#define JITWATCH_JIT_FIND_H

#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <sysprof/event.h>

/* ---- rights ---------------------------------------------------------------------------------- */

/*
 * The rights of a process, borrowed for the moment in which one of its files is opened.
 *
 * A user chooses which file lies at such a name: a hard link to a file of root's, or one that was mounted over the
 * name in a private namespace. A check of owner and mode can be circumvented; the kernel's own check, with the
 * process's own identity, cannot. So no file is read that the process could not read itself.
 *
 * It is the real user's identity: a setuid program runs for the user who started it. Capabilities over files count
 * only where the process has them in our user namespace.
 */

#define JIT_GROUPS_MAX 64 /* further ones are left out: they can only add rights */

struct jit_rights {
	uid_t uid;
	gid_t gid;
	unsigned int group_count;
	gid_t groups[JIT_GROUPS_MAX];
	uint64_t capabilities; /* in our user namespace */
};

/* Our own, while others are borrowed. */
struct jit_own_rights {
	bool borrowed, identity; /* identity: not only capabilities were left */
	gid_t gid;
	int group_count;
	gid_t groups[JIT_GROUPS_MAX];
	struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
};

/*
 * For the calling thread, until jit_rights__give_back(). 0; -EPERM: that is not allowed to us, and nothing has
 * changed. Without root the identity stays, without capabilities that the process does not have.
 */
int jit_rights__borrow(const struct jit_rights *rights, struct jit_own_rights *own);
void jit_rights__give_back(const struct jit_own_rights *own);

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * Finds the perf map and jitdump of a process. A perf map is /tmp/perf-PID.map: by the process's own pid in
 * its own root, by our pid for it there, or by our pid on the host.
 *
 * The process may be hostile. So the file must be a regular file of its own user, not a link, not mounted there by
 * itself, on a file system that holds data; and it is opened with what the process may read (above). All of
 * that is checked on the file that was found, before anything is opened.
 */

/* The identity of a process, as needed to find its files. */
struct jit_owner {
	pid_t pid;     /* for us */
	pid_t own_pid; /* for itself, in the innermost pid namespace */
	uid_t uid;     /* real */
	uid_t euid;    /* effective */
	gid_t egid;
	uint64_t start;	       /* CLOCK_MONOTONIC ns, 10 ms grain */
	bool apart;	       /* it is in another user namespace: its root is not root here */
	bool has_quit_handler; /* it catches SIGQUIT */
	/*
	 * The user to charge: its real uid here. In another user namespace the uid of its creator, or, if that is
	 * root, the number of the namespace.
	 */
	uint32_t user;
	struct jit_rights rights;
};

/* Have both the same number and start, as far as that can be measured? */
bool jit_owner__is_process(const struct jit_owner *a, const struct jit_owner *b);
/* … and may they open the same files? */
bool jit_owner__is_same(const struct jit_owner *a, const struct jit_owner *b);

/* 0 or negative errno: -ESRCH, … */
int jit_owner__read(pid_t pid, struct jit_owner *owner);
/* If its users have changed since, everything is read again: a daemon may have become another user's. As above. */
int jit_owner__refresh(struct jit_owner *owner);

struct jit_found {
	int fd;			   /* -1: it must not be read, for the reason in `state` */
	enum jit_file_state state; /* FOLLOWED, or why not; OUTDATED has a descriptor */
	struct stat st;
	uint64_t modified;   /* CLOCK_MONOTONIC ns; 0: before that began */
	char path[PATH_MAX]; /* as the process names it */
};

/*
 * Its perf map. 0: there is something of that name, see `found`; -ENOENT: there is none; or another
 * negative errno. The caller closes found->fd.
 */
int jit_find_map(const struct jit_owner *owner, struct jit_found *found);

/*
 * The jitdump that it has mapped at [start, end), deleted or not. The same, with the path as given.
 */
int jit_open_dump(const struct jit_owner *owner, const char *path, uint64_t start, uint64_t end,
		  struct jit_found *found);

/* From CLOCK_MONOTONIC to CLOCK_REALTIME, which files have, ns: correct to 2 us, or false. */
bool jit_clock_offset(int64_t *offset);

/* Has the process the file open? */
bool jit_has_open(pid_t pid, const struct stat *file);

/* Is this what the kernel calls the mapping of a jitdump's first page: ".../jit-NUMBER[-NUMBER].dump"? */
bool jit_is_dump(const char *path);

#endif
