/* SPDX-License-Identifier: BSD-2-Clause */
/* The door to zlib: a FILE whose bytes come out compressed on another, deterministic (no time, no name). */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A stream to write to; fclose() finishes the gzip member and leaves `out` open. NULL + errno. */
FILE *gzip_writer(FILE *out);

/* CRC-32 (IEEE 802.3), as zlib's crc32(); start with 0. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t size);

#endif
