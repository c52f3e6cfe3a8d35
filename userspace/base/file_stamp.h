/* SPDX-License-Identifier: BSD-2-Clause */
/* Identity and state of a file: data derived from the file is valid as long as its stamp is the same. */
#ifndef BASE_FILE_STAMP_H
#define BASE_FILE_STAMP_H

#include <stdint.h>

/* Fixed fields, without holes: it is hashed, and kept in files. */
struct file_stamp {
	uint64_t device, inode, size;
	int64_t changed, changed_ns; /* st_ctim, which cannot be set, unlike st_mtim */
};

/* 0 or negative errno. */
int file_stamp__read(int fd, struct file_stamp *stamp);

#endif
