/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/positions.h"

#define NOWHERE (-1)

bool v8_varint(const unsigned char **next, const unsigned char *end, uint64_t *value)
{
	uint64_t read = 0;

	for (unsigned int shift = 0; *next < end && shift < 64; shift += 7) {
		unsigned char byte = *(*next)++;

		read |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*value = read;
			return true;
		}
	}
	return false;
}

static int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ -(value & 1));
}

void v8_positions__init(struct v8_positions *p, enum v8_position_encoding encoding,
			const void *bytes, size_t size)
{
	*p = (struct v8_positions){.next = bytes,
				   .end = (const unsigned char *)bytes + size,
				   .encoding = encoding,
				   .code = -1};
}

static int64_t code_delta(const struct v8_positions *p, uint64_t value)
{
	int64_t delta;

	if (p->encoding == V8_POSITIONS_BREAKABLE)
		return value >> 2;
	delta = unzigzag(value);
	return delta < 0 ? -(delta + 1) : delta;
}

bool v8_positions__next(struct v8_positions *p)
{
	uint64_t code, source;
	int64_t delta;

	if (p->encoding == V8_POSITIONS_UNKNOWN || !v8_varint(&p->next, p->end, &code) ||
	    !v8_varint(&p->next, p->end, &source))
		return false;
	delta = code_delta(p, code);
	if (delta > UINT32_MAX || p->code + delta > UINT32_MAX)
		return false;
	p->code += delta;
	p->word = (uint64_t)p->word + (uint64_t)unzigzag(source);
	return true;
}

int32_t v8_position__source(uint64_t word)
{
	return (int32_t)(word >> 1 & 0x3fffffff) + NOWHERE;
}

uint32_t v8_position__inlining(uint64_t word)
{
	return word >> 31 & 0xffff;
}
