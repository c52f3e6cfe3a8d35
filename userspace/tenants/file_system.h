/* SPDX-License-Identifier: BSD-2-Clause */
/* Is an open file served by the kernel alone, or by a process or host that may not answer? */
#ifndef TENANTS_FILE_SYSTEM_H
#define TENANTS_FILE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Does every call on this descriptor return, whatever users do? True for disks, memory, and an
 * overlayfs that the administrator mounted (`pid`: a process with the file in a mount of its own;
 * 0: none). False for FUSE, network and unknown file systems. May itself sleep for ever.
 */
bool file_system__answers(int fd, pid_t pid);

/* Did the administrator mount it? If not, owners, modes and numbers prove nothing. May sleep. */
bool file_system__is_administrators(int fd, pid_t pid);

/*
 * Makes every call on *fd return: keeps it, or replaces it by a copy in memory of at most
 * `copy_max` bytes of data. *copied: bytes of the copy; 0: kept. 0; -EFBIG: too large; other read
 * errors. On failure *fd is unchanged. May sleep.
 */
int file_system__make_safe(int *fd, pid_t pid, uint64_t copy_max, uint64_t *copied);

/* A sealed copy of an open file of `size` bytes, or negative errno; as above. */
int file_system__copy(int fd, uint64_t size, uint64_t copy_max, uint64_t *copied);

/* Is a file system of this number mounted, by the text of a mountinfo? */
bool mountinfo__has_device(const char *mounts, unsigned int major, unsigned int minor);

#endif
