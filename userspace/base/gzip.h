/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door to zlib: a FILE whose bytes come out compressed on another, deterministic (no time, no
 * name); and zlib streams in files, inflated within bounds.
 */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A stream to write to; fclose() finishes the gzip member and leaves `out` open. NULL + errno. *written (may be
 * NULL) says until then how many bytes came in.
 */
FILE *gzip_writer(FILE *out, uint64_t *written);

/*
 * Inflate the zlib streams that lie in `compressed` bytes at `offset` of a file into `out`, which has
 * room for `size` bytes and never gets more. *inflated says how many came out, on failure too. 0;
 * -EBADMSG: damaged, or cut short; -EFBIG: more would come; -ENOMEM; -EIO.
 */
int inflate_at(int fd, uint64_t offset, uint64_t compressed, void *out, uint64_t size,
	       uint64_t *inflated);

/* CRC-32 (IEEE 802.3), as zlib's crc32(); start with 0. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t size);

#endif
