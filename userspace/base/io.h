/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and writing files whole, with every error told. Descriptors are O_CLOEXEC. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Write everything, through EINTR and short writes. 0 or negative errno. */
int write_full(int fd, const void *data, size_t size);
/* Like pread, through EINTR and short reads: bytes read (less than size only at the end), or errno. */
ssize_t pread_full(int fd, void *data, size_t size, uint64_t offset);
/*
 * A file of unknown size (as in /proc) into a fresh NUL-terminated buffer; at most `limit` bytes, else
 * -EFBIG. `dirfd`/`path` as openat. Caller frees.
 */
int read_file_at(int dirfd, const char *path, size_t limit, char **data, size_t *size);
/* First line of a small file, without its newline, into buffer. 0 or negative errno. */
int read_line(const char *path, char *buffer, size_t size);

/*
 * A result file: written under a temporary name beside its target and renamed when it is whole, mode
 * 0600, owned by SUDO_UID:SUDO_GID where those are set. "-" is standard output; what exists and is
 * not a regular file (a pipe, /dev/null) is written to as it is. Symbolic links: the file they point to is replaced.
 */
struct output_file;

/* 0, or negative errno: the directory is missing, not writable, … */
int output_file__open(const char *path, struct output_file **file);
FILE *output_file__stream(struct output_file *file);
/* The first error that a write met, which stdio forgets; 0: none so far. */
int output_file__error(const struct output_file *file);
/* Flush, check every write, sync the data, rename into place, free. On failure nothing is left behind. */
int output_file__commit(struct output_file *file);
/* Remove the temporary file and free. NULL is fine. */
void output_file__abort(struct output_file *file);
/*
 * For a file that is of use before it is whole: flush, rename it into place now and go on writing.
 * From then on commit only flushes, closes and looks whether the file is still there under its name,
 * and abort leaves it there. Where nothing would be renamed ("-", a pipe) it just flushes. 0 or
 * negative errno.
 */
int output_file__publish(struct output_file *file);
/* Path of its temporary name, for who must remove it in a hurry: 0, -ENOENT (there is none, or not
 * any more), -ENAMETOOLONG. */
int output_file__temporary(const struct output_file *file, char *path, size_t size);
/* The descriptor under the stream, for those who write past the stream. It stays the file's. */
int output_file__fd(const struct output_file *file);

/* Give an open file to SUDO_UID:SUDO_GID, if those are set. 0 or negative errno. */
int give_to_sudo_user(int fd);

#endif
