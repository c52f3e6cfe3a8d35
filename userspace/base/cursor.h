/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bounded reads of untrusted ELF and DWARF. After a failure `bad` is set and every read is 0. */
struct cursor {
	const uint8_t *at, *end;
	bool bad, big_endian;
};

static inline bool cursor__has(struct cursor *c, uint64_t size)
{
	if (c->bad || size > (uint64_t)(c->end - c->at))
		c->bad = true;
	return !c->bad;
}

static inline void cursor__skip(struct cursor *c, uint64_t size)
{
	if (cursor__has(c, size))
		c->at += size;
}

/* The next `size` bytes as a cursor of their own; empty and bad if there are fewer. */
static inline struct cursor cursor__take(struct cursor *c, uint64_t size)
{
	struct cursor part = {.at = c->at, .end = c->at};

	if (cursor__has(c, size)) {
		part.end += size;
		c->at += size;
	}
	part.bad = c->bad;
	return part;
}

static inline uint64_t cursor__fixed(struct cursor *c, size_t size)
{
	uint64_t value = 0;

	if (!cursor__has(c, size))
		return 0;
	memcpy(&value, c->at, size);
	c->at += size;
	return c->big_endian && size ? __builtin_bswap64(value) >> (64 - 8 * size) : value;
}

static inline uint8_t cursor__u8(struct cursor *c)
{
	return cursor__fixed(c, 1);
}

static inline uint16_t cursor__u16(struct cursor *c)
{
	return cursor__fixed(c, 2);
}

static inline uint32_t cursor__u32(struct cursor *c)
{
	return cursor__fixed(c, 4);
}

static inline uint64_t cursor__u64(struct cursor *c)
{
	return cursor__fixed(c, 8);
}

/* Bits beyond the 64th are dropped, as every reader does. */
static inline uint64_t cursor__uleb(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t byte = cursor__u8(c);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

static inline int64_t cursor__sleb(struct cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cursor__u8(c);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && byte & 0x40)
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

/* NULL: there is no NUL. */
static inline const char *cursor__string(struct cursor *c)
{
	const uint8_t *start = c->at, *end;

	if (c->bad)
		return NULL;
	end = memchr(start, '\0', c->end - start);
	if (!end) {
		c->bad = true;
		return NULL;
	}
	c->at = end + 1;
	return (const char *)start;
}

#endif
