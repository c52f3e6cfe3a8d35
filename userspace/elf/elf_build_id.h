/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The build-id of a file at a price that its author does not set: at most 64 KB are read, whatever its headers
 * promise. For those who ask of each file that anybody maps; who reads more of a file has an elf_file.
 */
#ifndef ELF_BUILD_ID_H
#define ELF_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>

/*
 * The build-id of the ELF file that begins at offset `base` of `fd`: its size (1..`size`, longer ones are
 * cut). Looks in PT_NOTE segments first, then in SHT_NOTE sections. -ENOENT: an ELF file that has none
 * within these bounds; -ENOEXEC: not ELF (or too short to be); -EBADMSG: ELF, but damaged beyond use; or
 * what reading met.
 */
int elf_read_build_id(int fd, uint64_t base, uint8_t *id, size_t size);

#endif
