/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ELF_ELF_EXPORTS_H
#define ELF_ELF_EXPORTS_H

#include <stdint.h>

struct elf_exports;
struct elf_file;

/* 0; -ENODATA: no symbols with a DT_GNU_HASH; -EBADMSG: damaged; -ENOMEM; -EIO. */
int elf_exports__init(struct elf_exports *x, struct elf_file *file);
/*
 * Address of a defined symbol. 0; -ENOENT; -EBADMSG: unreadable; -EFBIG: over the limit of symbols
 * with hashes alike, or there is no end of them.
 */
int elf_exports__find(const struct elf_exports *x, const char *name, uint64_t *address);
/* The 32 bits at a symbol in our byte order, 0 for .bss. Errors of _find(), and -EIO. */
int elf_exports__u32(const struct elf_exports *x, const char *name, uint32_t *value);

#endif
