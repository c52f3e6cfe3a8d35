/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of source files, as compilers write them, made into one form. */
#ifndef SYMBOLIZE_SOURCE_PATH_H
#define SYMBOLIZE_SOURCE_PATH_H

#include <stddef.h>

#define SOURCE_PATH_SIZE 4096

/*
 * `name` in `directory` (NULL: not known) without ".", ".." and doubled slashes: "/a/b/../c" is "/a/c". A path
 * that stays relative is not changed. 0, -ENAMETOOLONG.
 */
int source_path(const char *directory, const char *name, char *buffer, size_t size);

#endif
