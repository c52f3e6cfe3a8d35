/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 by the table of well-formed byte sequences (Unicode, table 3-7). */
#include "base/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool in_range(unsigned char byte, unsigned char first, unsigned char last)
{
	return byte >= first && byte <= last;
}

size_t utf8_sequence(const char *s, size_t available)
{
	const unsigned char *b = (const unsigned char *)s;
	unsigned char low = 0x80, high = 0xbf; /* what the second byte may be */
	size_t size;

	if (!available)
		return 0;
	if (b[0] < 0x80)
		return 1;
	if (b[0] < 0xc2 || b[0] > 0xf4) /* stray, overlong (c0, c1), above U+10FFFF */
		return 0;
	size = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	if (b[0] == 0xe0)
		low = 0xa0; /* overlong */
	else if (b[0] == 0xed)
		high = 0x9f; /* surrogates */
	else if (b[0] == 0xf0)
		low = 0x90; /* overlong */
	else if (b[0] == 0xf4)
		high = 0x8f; /* above U+10FFFF */
	if (available < size || !in_range(b[1], low, high))
		return 0;
	for (size_t i = 2; i < size; i++) {
		if (!in_range(b[i], 0x80, 0xbf))
			return 0;
	}
	return size;
}

size_t utf8_cut(const char *s, size_t limit)
{
	size_t length = strnlen(s, limit);
	size_t whole;

	if (length < limit)
		return length;
	whole = limit - 1;
	/* step back over the bytes of a character that does not fit whole */
	for (size_t back = 1; back <= 3 && back <= whole; back++) {
		size_t sequence = utf8_sequence(s + whole - back, strnlen(s + whole - back, 4));

		if (sequence > 0)
			return sequence > back ? whole - back : whole;
	}
	return whole;
}

size_t utf8_put(char to[4], uint32_t c)
{
	if (!c) {
		memcpy(to, "\\x00", 4);
		return 4;
	}
	if (c < 0x80) {
		to[0] = c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = 0xc0 | c >> 6;
		to[1] = 0x80 | (c & 63);
		return 2;
	}
	if (c > 0x10ffff)
		c = 0xfffd;
	if (c < 0x10000) {
		to[0] = 0xe0 | c >> 12;
		to[1] = 0x80 | (c >> 6 & 63);
		to[2] = 0x80 | (c & 63);
		return 3;
	}
	to[0] = 0xf0 | c >> 18;
	to[1] = 0x80 | (c >> 12 & 63);
	to[2] = 0x80 | (c >> 6 & 63);
	to[3] = 0x80 | (c & 63);
	return 4;
}

uint32_t utf8_code_point(const char *s, size_t length)
{
	const unsigned char *b = (const unsigned char *)s;
	uint32_t code = length == 1 ? *b : *b & (0x7f >> length);

	for (size_t i = 1; i < length; i++)
		code = code << 6 | (b[i] & 0x3f);
	return code;
}

/* Terminals execute C1 (U+0080..U+009F) like ESC sequences. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

/* Does it turn the text, end a line for some readers, or is it a BOM? */
static bool turns(uint32_t c)
{
	return c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

char *utf8_sanitize(char *buffer, size_t size, const char *text)
{
	char escape[sizeof("\\u0000")];
	size_t left = strlen(text), used = 0;

	if (!size)
		return buffer;
	while (left) {
		size_t taken = utf8_sequence(text, left);
		uint32_t c = utf8_code_point(text, taken ?: 1);
		bool plain = taken && !is_control(c), turning = plain && turns(c);
		size_t written = turning ? 6 : plain ? taken : 4;

		if (written >= size - used)
			break;
		if (turning)
			snprintf(escape, sizeof(escape), "\\u%04x", c & 0xffff);
		else if (!plain)
			snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*text);
		memcpy(buffer + used, plain && !turning ? text : escape, written);
		/* the second byte of a C1 is stray by itself */
		taken = plain ? taken : 1;
		used += written;
		text += taken;
		left -= taken;
	}
	buffer[used] = '\0';
	return buffer;
}
