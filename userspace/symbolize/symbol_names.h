/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOLIZE_SYMBOL_NAMES_H
#define SYMBOLIZE_SYMBOL_NAMES_H

#include <stddef.h>

/* Of at most NAMES_BLOCK bytes, into NAMES_PACKED_MAX. The size. */
size_t names_pack(const char *names, size_t size, unsigned char *to);
/* Until the name at `wanted` ends, and a NUL, into NAMES_UNPACKED_MAX. Its size; 0: damaged. */
size_t names_unpack(const unsigned char *at, size_t size, char *to, size_t wanted);

#endif
