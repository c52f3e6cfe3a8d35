/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .gnu_debugdata: the symbol table that Fedora and others leave in stripped files, an ELF file in
 * an LZMA stream. The door to liblzma.
 */
#ifndef SYMBOLIZE_MINIDEBUG_H
#define SYMBOLIZE_MINIDEBUG_H

#include <stdint.h>

/* As much as any such section has ever inflated to, and more. */
#define MINIDEBUG_LIMIT (UINT64_C(256) << 20)

/*
 * The inflated ELF file of the .gnu_debugdata of the ELF file at `base` of `fd`, as a sealed memfd that the caller closes:
 * for symbol_table, in addition to the file's own tables. Its addresses are the file's. It opens
 * nothing: beside reading and memory it needs memfd_create and fcntl(F_ADD_SEALS).
 *
 * 0; -ENOENT: there is no such section (or fd is no ELF file); -EBADMSG: damaged;
 * -EFBIG: more than `limit` bytes, or a dictionary beyond all reason; -ENOMEM; -EIO.
 */
int minidebug_inflate(int fd, uint64_t base, uint64_t limit, int *inflated);

#endif
