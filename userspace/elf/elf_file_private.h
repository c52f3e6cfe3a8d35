/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ELF_ELF_FILE_PRIVATE_H
#define ELF_ELF_FILE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/elf_private.h"

/* pread_full() at an offset of the ELF file. */
ssize_t elf_file__read(const struct elf_file *file, void *buffer, size_t size, uint64_t offset);
/* The same through a window, which is moved if the bytes are not in it. NULL: there is none. */
ssize_t elf_file__read_window(const struct elf_file *file, struct elf_window *window, void *buffer,
			      size_t size, uint64_t offset);

/* 0; -ENOEXEC: not ELF, or too short; -EBADMSG: unknown class or byte order; or a read error. */
int elf_file__read_header(struct elf_file *file);
/* Section 0 holds numbers that are too large for the ELF header. 0, -ENOENT, or a read error. */
int elf_file__read_first_section(const struct elf_file *file, Elf64_Shdr *section);
/* Unless the header claims tables and none can be read. `segments`: how many were read. */
bool elf_file__is_useful(const struct elf_file *file, size_t segments);

/* Bytes of one record of this type in the file. */
size_t elf_file__record_size(const struct elf_file *file, Elf_Type type);

/*
 * Reads up to `count` consecutive records (ELF_T_EHDR, PHDR, SHDR, SYM, DYN: Elf64_*; ELF_T_WORD:
 * uint32_t) at `offset`. How many the file has there, or negative errno.
 */
ssize_t elf_file__read_records(const struct elf_file *file, uint64_t offset, Elf_Type type,
			       void *records, size_t count);

/* Reads the section headers unless they were read. 0, -ENOMEM, or a read error. */
int elf_file__load_sections(struct elf_file *file);

/* How many of `size` bytes from `offset` on are inside the file. */
uint64_t elf_file__available(const struct elf_file *file, uint64_t offset, uint64_t size);

#endif
