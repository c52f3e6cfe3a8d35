/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens a source file that the debug information of a module names, for the owner of the module.
 *
 * The file must be readable, and each directory of its path searchable, for all users, or for the
 * owner because they are the owner's own. Groups do not count. So a module cannot have /etc/shadow
 * read by root. A module of root may be mapped by any user, so root's own files do not count either.
 * No link is followed, and files of /proc, /sys and their like are not opened.
 */
#ifndef SYMBOLIZE_SOURCE_FILE_H
#define SYMBOLIZE_SOURCE_FILE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * `path` is absolute. A descriptor of a regular file that is not empty; or -EACCES, -ELOOP, -ENOENT,
 * -ENOTSUP (not a regular file), -EFBIG (larger than the limit), …
 */
int source_file__open(int root_fd, const char *path, uid_t owner, uint64_t size_limit);

#endif
