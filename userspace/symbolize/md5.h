/* SPDX-License-Identifier: BSD-2-Clause */
/* MD5 (RFC 1321), with which DWARF 5 identifies source files. Not for anything that must be safe. */
#ifndef SYMBOLIZE_MD5_H
#define SYMBOLIZE_MD5_H

#include <stddef.h>
#include <stdint.h>

#define MD5_SIZE 16

void md5(const void *data, size_t size, uint8_t digest[MD5_SIZE]);

#endif
