/* SPDX-License-Identifier: BSD-2-Clause */
/* One file of the table cache: an unwind table, and which file it is of. */
#ifndef UNWIND_TABLE_FILE_H
#define UNWIND_TABLE_FILE_H

#include <stddef.h>

#include "base/file_stamp.h"
#include "unwind/unwind_table.h"

/* Its bytes; the caller frees. 0, -ENOMEM. */
int table_file__make(const struct file_stamp *stamp, const struct unwind_table_image *image,
		     void **data, size_t *size);

/*
 * Read and verify a file of `size` bytes. 0; -EBADMSG: damaged, of another file, or made by other
 * sources; -EFBIG: the table has more than `limit` bytes; -ENOMEM; -EIO.
 */
int table_file__read(int fd, size_t size, const struct file_stamp *stamp, size_t limit,
		     struct unwind_table_image *image);

#endif
