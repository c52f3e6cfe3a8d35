/* SPDX-License-Identifier: BSD-2-Clause */
/* All use of zlib: a FILE that gzips to another, deterministic; inflating within bounds. */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A stream to write to; fclose() finishes the gzip member and leaves `out` open. NULL + errno.
 * *written (may be NULL) counts the bytes so far.
 */
FILE *gzip_writer(FILE *out, uint64_t *written);

/*
 * Compresses into a new buffer as a gzip file, deterministic; the caller frees. Smaller and slower
 * than gzip_writer(): for uploads. At `cuts` (ascending offsets) a block ends, because bytes of
 * another kind follow and get a code of their own. 0, -ENOMEM; -EFBIG: more than 2 GiB.
 */
int gzip_bytes(const uint8_t *bytes, size_t size, const size_t *cuts, size_t cut_count,
	       uint8_t **out, size_t *out_size);

/*
 * Inflates the zlib streams in `compressed` bytes at `offset` of a file into `out`, at most `size`
 * bytes. *inflated is their number, on failure too. 0; -EBADMSG: damaged, or cut short; -EFBIG:
 * more than `size`; -ENOMEM; -EIO.
 */
int inflate_at(int fd, uint64_t offset, uint64_t compressed, void *out, uint64_t size,
	       uint64_t *inflated);

/* Are these the first bytes of a gzip file? */
bool is_gzip(const uint8_t *bytes, size_t size);

/*
 * Unpacks a gzip file (all its members; zeros may follow) into a new buffer; the caller frees. 0;
 * -ENODATA: cut short, with what is before; -EBADMSG: damaged, or something follows, at *offset;
 * -EFBIG: more than `limit` bytes; -ENOMEM.
 */
int gunzip_bytes(const uint8_t *bytes, size_t size, uint64_t limit, uint8_t **out, size_t *out_size,
		 uint64_t *offset);

/* CRC-32 (IEEE 802.3), as zlib's crc32(); start with 0. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t size);
/* The same for `count` bytes that are all 0, without looking at them. */
uint32_t crc32_zeros(uint32_t crc, uint64_t count);

#endif
