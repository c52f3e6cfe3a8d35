/* SPDX-License-Identifier: BSD-2-Clause */
/* The links of an ELF file to its debug information. */
#ifndef ELF_LINKS_H
#define ELF_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf_file.h"

/*
 * .gnu_debuglink: a file's name and the CRC-32 of that whole file. On failure `name` may hold
 * anything. 0; -ENOENT: there is no such section; -ENAMETOOLONG; -EBADMSG; -ENOMEM; -EIO.
 */
int elf_file__debug_link(struct elf_file *file, char *name, size_t size, uint32_t *crc);

/*
 * .gnu_debugaltlink, as dwz writes it: a file's name and its build-id. The size of the build-id
 * (≥ 1), or the same errors; -EFBIG: the build-id is longer than `id_size`.
 */
int elf_file__alternate_link(struct elf_file *file, char *name, size_t size, uint8_t *id,
			     size_t id_size);

#endif
