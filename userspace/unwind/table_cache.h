/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables on disk: one file a table, in a directory of base/disk_cache. Reading and verifying
 * a big library's table takes a twentieth of the time of building it.
 *
 * A table belongs to a file's device, inode, size and change time. Build-ids are not used, because
 * a process can give its file any.
 */
#ifndef UNWIND_TABLE_CACHE_H
#define UNWIND_TABLE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"
#include "unwind/unwind_table.h"

#define TABLE_CACHE_LIMIT (UINT64_C(256) << 20) /* bytes of all files on the disk */

struct table_cache;

/*
 * The directory is `path`, or the user's (NULL). `any_device`: the caller trusts files of all file
 * systems. NULL: no cache is available, which is no error.
 */
struct table_cache *table_cache__open(const char *path, uint64_t limit, bool any_device);
/* Do stamps identify files of this file system (f_type of statfs) and device (st_dev)? */
bool table_cache__is_stable(uint64_t device, unsigned int file_system);
/* Drops tables that are not written yet. */
void table_cache__free(struct table_cache *c);

/* The table of a file. 0; -ENOENT: none, or invalid; -EFBIG: more than `limit` bytes; -ENOMEM. */
int table_cache__read(struct table_cache *c, int fd, size_t limit,
		      struct unwind_table_image *image);

/*
 * keep() copies a table for the cache if that pays; `stamp` is the file's before the build. write()
 * writes one such table a call; false: nothing left to write.
 */
void table_cache__keep(struct table_cache *c, int fd, const struct file_stamp *stamp,
		       const struct unwind_table_image *image);
bool table_cache__write(struct table_cache *c);

/* The contents of a cache file, freed by the caller. 0, -ENOMEM. */
int table_cache__encode(const struct unwind_table_image *image, void **data, size_t *size);
/*
 * Always takes ownership of `data` (malloced). Checks the image, because the walk trusts its
 * offsets. 0; -EBADMSG; -EFBIG: more than `limit` bytes.
 */
int table_cache__decode(void *data, size_t size, size_t limit, struct unwind_table_image *image);

#endif
