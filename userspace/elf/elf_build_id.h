/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The build-id of a file at a bounded cost: at most 64 KB are read, whatever its headers promise. For callers that
 * need it of every mapped file; callers that read more of a file use elf_file.h.
 */
#ifndef ELF_BUILD_ID_H
#define ELF_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>

/*
 * The build-id of the ELF file that begins at offset `base` of `fd`: its size (1..`size`, longer ones are cut). Looks
 * in PT_NOTE segments first, then in SHT_NOTE sections. -ENOENT: an ELF file that has none within these bounds;
 * -ENOEXEC: not ELF (or too short to be); -EBADMSG: ELF, but damaged beyond use; or an error of reading.
 */
int elf_read_build_id(int fd, uint64_t base, uint8_t *id, size_t size);

#endif
