/* SPDX-License-Identifier: BSD-2-Clause */
/* Sections by name; links to other files in .gnu_debuglink and .gnu_debugaltlink. */
#ifndef ELF_ELF_SECTIONS_H
#define ELF_ELF_SECTIONS_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct elf_section;

/* The first section of this name. 0, -ENOENT, -EBADMSG (the names are damaged), -ENOMEM, -EIO. */
int elf_file__find_section(struct elf_file *file, const char *name, struct elf_section *section);

/*
 * The bytes of the first section of this name, and a NUL that `size` does not count; the caller
 * frees. -ENOENT: no such section, or SHT_NOBITS; -ENOTSUP: compressed; -EFBIG: larger than
 * `limit`; -EBADMSG: cut short, or the names are damaged; -ENOMEM; -EIO.
 */
int elf_file__section_data(struct elf_file *file, const char *name, size_t limit, void **data,
			   size_t *size);

/*
 * .gnu_debuglink: a file's name and the CRC-32 of that whole file. On failure `name` is undefined.
 * 0; -ENOENT: no such section; -ENAMETOOLONG; -EBADMSG; -ENOMEM; -EIO.
 */
int elf_file__debug_link(struct elf_file *file, char *name, size_t size, uint32_t *crc);

/*
 * .gnu_debugaltlink, written by dwz: a file's name and its build-id. Size of the build-id (≥ 1),
 * or the same errors; -EFBIG: the build-id is longer than `id_size`.
 */
int elf_file__alternate_link(struct elf_file *file, char *name, size_t size, uint8_t *id,
			     size_t id_size);

#endif
