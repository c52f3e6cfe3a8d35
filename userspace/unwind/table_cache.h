/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables on disk: one file a table, in a directory of base/disk_cache. Reading and verifying the
 * table of a big library takes a twentieth of the time that building it does.
 *
 * A table is that of a file with this device, inode, size and time of last change. Build-ids are not
 * used: a process can give its file any.
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
 * In a directory of the caller's choice, or that of the user (NULL); with `any_device` it takes files of all file systems,
 * which the caller trusts. NULL: no cache can be had; everything works without.
 */
struct table_cache *table_cache__open(const char *path, uint64_t limit, bool any_device);
/* Do stamps identify the files of such a file system (f_type of statfs) on this device (st_dev)? */
bool table_cache__is_stable(uint64_t device, unsigned int file_system);
/* Tables that are not written yet are dropped. */
void table_cache__free(struct table_cache *c);

/*
 * The table of this file. 0; -ENOENT: it is not there, or of no use; -EFBIG: it has more than `limit`
 * bytes; -ENOMEM.
 */
int table_cache__read(struct table_cache *c, int fd, size_t limit,
		      struct unwind_table_image *image);

/*
 * Keep a table that was built from this file, if that pays; `stamp` is from before it was built. It is
 * copied here, and written by table_cache__write(), one table a call. False: there was nothing to write.
 */
void table_cache__keep(struct table_cache *c, int fd, const struct file_stamp *stamp,
		       const struct unwind_table_image *image);
bool table_cache__write(struct table_cache *c);

/* The content of a file, which the caller frees. 0, -ENOMEM. */
int table_cache__encode(const struct unwind_table_image *image, void **data, size_t *size);
/*
 * Takes `data` over (malloced), whatever it returns. The walk trusts the offsets of a table, so the image is checked: 0;
 * -EBADMSG; -EFBIG: it has more than `limit` bytes.
 */
int table_cache__decode(void *data, size_t size, size_t limit, struct unwind_table_image *image);

#endif
