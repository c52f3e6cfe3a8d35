/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and writing whole files, with every error returned. Descriptors are O_CLOEXEC. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Write everything, through EINTR and short writes. 0 or negative errno. */
int write_full(int fd, const void *data, size_t size);
/* A memory file with a copy of the bytes, for another process. Descriptor or negative errno. */
int memory_with(const char *name, const void *data, size_t size);
/* Like pread, through EINTR and short reads: bytes (fewer only at the end) or negative errno. */
ssize_t pread_full(int fd, void *data, size_t size, uint64_t offset);
/*
 * For this process and those it forks: data that pread_full() reads from the disk does not stay in
 * memory if it is much, and io_drop_pages() has an effect.
 */
void io_keep_no_pages(void);
/* Clean pages that no process has mapped; `size` 0: to the end of the file. */
void io_drop_pages(int fd, uint64_t start, uint64_t size);
/* All of them: 0, a negative errno, or -EBADMSG: the file ends before. */
int pread_exactly(int fd, void *data, size_t size, uint64_t offset);
/* Like pread_full, from the descriptor's position on. */
ssize_t read_full(int fd, void *data, size_t size);
/*
 * Reads a file of unknown size (as in /proc) into a new NUL-terminated buffer; the caller frees.
 * -EFBIG: more than `limit` bytes. `dirfd`, `path` as in openat.
 */
int read_file_at(int dirfd, const char *path, size_t limit, char **data, size_t *size);
/* The names in a directory (".": in `dirfd`), from the first one on. NULL: errno says why. */
DIR *open_names(int dirfd, const char *path);
/* First line of a small file, without newline; buffer undefined on failure. 0 or negative errno. */
int read_line(const char *path, char *buffer, size_t size);

/* A line of `size` bytes, then its newline; may be changed. Not 0: reading ends. */
typedef int (*line_fn)(void *context, char *line, size_t size);
/*
 * Reads large pieces and passes on lines that end in a newline; of one longer than `longest` only
 * its end. 0, what `take` returned, or negative errno.
 */
int read_lines(int fd, size_t longest, line_fn take, void *context);

static inline bool is_same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is it the user's, and can no other write to it? */
static inline bool only_writable_by(const struct stat *st, uid_t user)
{
	return st->st_uid == user && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* A directory that only we can write to. Descriptor; -EPERM: others can; negative errno. */
int open_own_directory(int dirfd, const char *path);
/*
 * Closes a file that was written, and renames it. `err`: writing failed. After errors the file is
 * removed. 0 or negative errno.
 */
int finish_temporary(int dirfd, int fd, const char *temporary, const char *name, int err);

/* Identity and state of a file: data derived from it is valid while its stamp is the same. */

/* Fixed fields, without holes: it is hashed, and kept in files. */
struct file_stamp {
	uint64_t device, inode, size;
	int64_t changed, changed_ns; /* st_ctim, which cannot be set, unlike st_mtim */
};

/* 0 or negative errno. */
int file_stamp__read(int fd, struct file_stamp *stamp);

#endif
