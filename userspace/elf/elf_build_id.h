/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ELF_ELF_BUILD_ID_H
#define ELF_ELF_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>

/*
 * The build-id of the ELF file at offset `base` of `fd`, from PT_NOTE segments, else SHT_NOTE
 * sections. At most 64 KB are read, so it can be called for every mapped file. Its size (1..`size`,
 * longer ones are cut); -ENOENT: there is none; -EFBIG: none within these bounds; -ENOEXEC: not
 * ELF, or too short; -EBADMSG: damaged beyond use; or a read error.
 */
int elf_read_build_id(int fd, uint64_t base, uint8_t *id, size_t size);

#endif
