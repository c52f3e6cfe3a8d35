/* SPDX-License-Identifier: BSD-2-Clause */
/* Who serves an open file: the kernel by itself, or somebody who may not answer. */
#ifndef BASE_FILE_SYSTEM_H
#define BASE_FILE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Does every call on this descriptor come back, whatever users do? True for disks and memory, and for an overlayfs
 * that was mounted by the machine's administrator (`pid`: a process that has the file in a mount of its own; 0:
 * none). False for FUSE, network file systems and what is not known. May itself sleep for ever.
 */
bool file_system__answers(int fd, pid_t pid);

/* Did the administrator mount it, so that an owner, a mode and a number there mean what they say? May sleep. */
bool file_system__is_administrators(int fd, pid_t pid);

/*
 * *fd becomes one of which every call comes back: it stays what it is, or it is closed and replaced by that of a copy in
 * memory, of so many bytes of data at most; *copied is how many, 0: it is what it was. 0; -EFBIG: too many; other errors
 * of reading. Then *fd is what it was. May sleep.
 */
int file_system__make_safe(int *fd, pid_t pid, uint64_t copy_max, uint64_t *copied);

#endif
