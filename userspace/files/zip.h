/* SPDX-License-Identifier: BSD-2-Clause */
/* Uncompressed files in zip archives, which can be mapped: libraries in Android's packages. */
#ifndef FILES_ZIP_H
#define FILES_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#define ZIP_NAME_MAX 256

struct zip_entry {
	uint64_t offset, size; /* of its bytes in the archive */
	char name[ZIP_NAME_MAX];
};

/* Does it begin like an archive? */
bool zip_is_archive(int fd);

/*
 * The stored entry that has the byte at `offset`. Nothing in the archive is trusted: sizes are
 * bounded, and at most 4 MB of its directory are read. 0; -ENOENT: none; -EBADMSG: damaged, or a
 * 64-bit directory; -EFBIG: the directory or the name is too large; -ENOMEM; -EIO.
 */
int zip_find(int fd, uint64_t offset, struct zip_entry *entry);

/* The stored entry of this name; the same errors. */
int zip_find_name(int fd, const char *name, struct zip_entry *entry);

#endif
