/* SPDX-License-Identifier: BSD-2-Clause */
/* A FILE whose bytes come out as base64 (RFC 4648, one line) on another, and back. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Four characters for three bytes, of which the first `count` are data. */
void base64_group(char text[4], uint32_t group, unsigned int count);

/* A stream to write to; fclose() writes the padding and leaves `out` open. NULL + errno. */
FILE *base64_writer(FILE *out);

/* Decodes into a new buffer; the caller frees. 0; -EBADMSG: not whole groups of four; -ENOMEM. */
int base64_decode(const char *text, size_t size, uint8_t **bytes, size_t *count);

#endif
