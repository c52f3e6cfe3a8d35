/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ELF_GOPCLNTAB_OPEN_H
#define ELF_GOPCLNTAB_OPEN_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct gopclntab;

/*
 * `file` must outlive the table. 0; -ENOENT: not Go; -ENOTSUP: another version or machine;
 * -EBADMSG; -EFBIG: the search read too much; -E2BIG: table too large; -ENOMEM; -EIO.
 */
int gopclntab__open(struct elf_file *file, struct gopclntab **table);
/* -E2BIG for a table of more than `size_max` bytes. */
int gopclntab__open_within(struct elf_file *file, uint64_t size_max, struct gopclntab **table);
/* Bytes in memory. */
size_t gopclntab__size(const struct gopclntab *t);
void gopclntab__free(struct gopclntab *t);

#endif
