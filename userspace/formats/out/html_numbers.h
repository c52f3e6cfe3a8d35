/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in a page of .html: LEB128, differences zigzag-coded (docs/FORMATS.md). */
#ifndef FORMATS_OUT_HTML_NUMBERS_H
#define FORMATS_OUT_HTML_NUMBERS_H

#include <stdint.h>
#include <stdio.h>

static inline void put_uint(FILE *out, uint64_t value)
{
	while (value >= 0x80) {
		putc_unlocked((int)(value & 0x7f) | 0x80, out);
		value >>= 7;
	}
	putc_unlocked((int)value, out);
}

static inline void put_int(FILE *out, int64_t value)
{
	put_uint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

#endif
