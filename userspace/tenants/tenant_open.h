/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens files that another process named, without being led elsewhere.
 *
 * The name is resolved inside that process's root (openat2: RESOLVE_IN_ROOT,
 * RESOLVE_NO_MAGICLINKS), opening never blocks (O_NONBLOCK), and only a regular file within a size
 * limit is returned. Never mmap such a file: its owner can truncate it.
 */
#ifndef TENANTS_TENANT_OPEN_H
#define TENANTS_TENANT_OPEN_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* An O_PATH descriptor of the process's root directory, or negative errno. */
int tenant_root(pid_t pid);

/*
 * Open `path` (absolute or not) below `root_fd` for reading. `flags`: O_NOFOLLOW or 0. Fills *st.
 * Returns the descriptor, or -ENOENT, -EACCES, -ENOTSUP (not a regular file), -EFBIG, -ELOOP, …
 */
int tenant_open(int root_fd, const char *path, int flags, uint64_t size_limit, struct stat *st);

/* The same for /proc/PID/map_files/START-END: the file that is mapped, deleted or not. */
int tenant_open_mapped(pid_t pid, uint64_t start, uint64_t end, uint64_t size_limit,
		       struct stat *st);
/* The name that the mapped file has, as in maps. 0 or negative errno. */
int tenant_mapped_name(pid_t pid, uint64_t start, uint64_t end, char *name, size_t size);

/*
 * The two steps of these, for a caller that checks the file in between. Pinning resolves the name
 * to an O_PATH descriptor, or negative errno; no driver or file system opens anything.
 */
int tenant_pin(int root_fd, const char *path, int flags);
int tenant_pin_mapped(pid_t pid, uint64_t start, uint64_t end);
/* Opens what is pinned. As tenant_open(). */
int tenant_open_pinned(int path_fd, uint64_t size_limit, struct stat *st);

#endif
