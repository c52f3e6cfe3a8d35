/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All use of zlib: a FILE whose bytes come out compressed on another, deterministic (no time, no name); and zlib
 * streams in files, inflated within bounds.
 */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A stream to write to; fclose() finishes the gzip member and leaves `out` open. NULL + errno. *written (may be
 * NULL) says until then how many bytes came in.
 */
FILE *gzip_writer(FILE *out, uint64_t *written);

/*
 * Compress bytes into a fresh buffer, as a gzip file; equal input, equal bytes. Smaller and slower than
 * gzip_writer(): for uploads. At `cuts` (offsets, ascending) a block ends: the bytes that follow are of another kind
 * and get a code of their own. 0, -ENOMEM; -EFBIG: more than 2 GiB. Caller frees.
 */
int gzip_bytes(const uint8_t *bytes, size_t size, const size_t *cuts, size_t cut_count,
	       uint8_t **out, size_t *out_size);

/*
 * Inflate the zlib streams that lie in `compressed` bytes at `offset` of a file into `out`, which has
 * room for `size` bytes and never gets more. *inflated says how many came out, on failure too. 0;
 * -EBADMSG: damaged, or cut short; -EFBIG: more would come; -ENOMEM; -EIO.
 */
int inflate_at(int fd, uint64_t offset, uint64_t compressed, void *out, uint64_t size,
	       uint64_t *inflated);

/* Are these the first bytes of a gzip file? */
bool is_gzip(const uint8_t *bytes, size_t size);

/*
 * Unpack a gzip file (all its members; zeros may follow) into a fresh buffer, at most `limit` bytes. 0;
 * -EBADMSG: damaged, cut short, or something follows: *offset is where in `bytes`; -EFBIG: more would come;
 * -ENOMEM. Caller frees.
 */
int gunzip_bytes(const uint8_t *bytes, size_t size, uint64_t limit, uint8_t **out, size_t *out_size,
		 uint64_t *offset);

/* CRC-32 (IEEE 802.3), as zlib's crc32(); start with 0. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t size);
/* The same for `count` bytes that are all 0, without looking at them. */
uint32_t crc32_zeros(uint32_t crc, uint64_t count);

#endif
