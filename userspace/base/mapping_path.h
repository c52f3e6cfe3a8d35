/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about a mapping from the name that the kernel gives it. */
#ifndef BASE_MAPPING_PATH_H
#define BASE_MAPPING_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define MAPPING_ANONYMOUS "//anon"

/*
 * Memory without an ELF file behind it (anonymous, heap, stack, shared memory, a memfd without a build-id, a deleted
 * file that is no ELF file: `has_file` is false then): if it is executable, it can only be JIT code.
 */
bool mapping_is_run_time_code(const char *path, bool has_build_id, bool has_file);

/* Without " (deleted)". */
size_t mapping_path_length(const char *path);
/* Is it called "… (deleted)"? */
bool mapping_is_deleted(const char *path);

#endif
