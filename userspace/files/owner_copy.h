/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of mapped files that their file system shows to one user alone: FUSE without allow_other
 * (AppImage, rootless podman, sshfs) answers only to processes with all ids of the user who mounted
 * it, or that are in that user's namespace. Capabilities do not help.
 *
 * A child takes the ids of the process that has mapped the file, without any capability, and if that
 * is in a user namespace of its own, those of the namespace's owner, and enters it. So it can read
 * nothing that this user cannot read. It hangs if the file does, and ends with its parent.
 */
#ifndef FILES_OWNER_COPY_H
#define FILES_OWNER_COPY_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * The file that the process has mapped at [start, end). A sealed copy in memory, of *copied bytes,
 * `size_max` at most, and the file's *st; -EACCES: not so either; or another negative errno. Needs
 * CAP_SETUID and CAP_SETGID, and one thread. May sleep for ever.
 */
int owner_copy__of_mapping(pid_t pid, uint64_t start, uint64_t end, uint64_t size_max,
			   struct stat *st, uint64_t *copied);

#endif
