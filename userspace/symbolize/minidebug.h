/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_MINIDEBUG_H
#define SYMBOLIZE_MINIDEBUG_H

#include <stdint.h>

struct elf_file;

/*
 * Inflates an ELF file's .gnu_debugdata, into a sealed memfd that the caller closes: for
 * symbol_table, beside the file's own tables. Its addresses are the file's. It opens nothing:
 * besides reading and memory it needs memfd_create and fcntl(F_ADD_SEALS).
 *
 * 0; -ENOENT: there is no such section; -EBADMSG: damaged;
 * -EFBIG: more than `limit` bytes, or a dictionary beyond all reason; -ENOMEM; -EIO.
 */
int minidebug_inflate(struct elf_file *file, uint64_t limit, int *inflated);

#endif
