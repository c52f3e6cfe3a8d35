/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the reader of the entries (cfi.c) and the machine that runs their instructions. */
#ifndef UNWIND_CFI_PRIVATE_H
#define UNWIND_CFI_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "unwind/cfi.h"

/*
 * Reads little-endian bytes from an untrusted source: it never goes beyond its end, and once a read has failed `bad`
 * is set and everything reads as 0.
 */

struct cursor {
	const uint8_t *at, *end;
	bool bad;
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

/* The next `size` bytes by themselves; none of them, and bad, where there are not so many. */
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

	if (cursor__has(c, size)) {
		memcpy(&value, c->at, size);
		c->at += size;
	}
	return value;
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

#define CFI_REMEMBERED_MAX 32 /* compilers nest these 2 deep */

/* Where the caller's rbx is. */
struct rbx {
	enum unwind_rbx how;
	int16_t offset;
};

/* The common part of several functions. */
struct cie {
	uint64_t offset; /* of its length field in the section: its name */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_register;
	uint8_t encoding; /* DW_EH_PE_* of its functions' addresses */
	bool supported, has_augmentation, is_signal_frame;
	const uint8_t *instructions, *end;
	struct unwind_rule initial;
	struct rbx initial_rbx;
};

struct cfi_machine {
	const struct cfi_section *section;
	const struct cie *cie;
	struct unwind_rule rule, remembered[CFI_REMEMBERED_MAX];
	struct rbx rbx, remembered_rbx[CFI_REMEMBERED_MAX];
	unsigned int depth;
	uint64_t location, end;
	cfi_row_fn row; /* NULL: a CIE's, which has no locations */
	void *context;
	bool failed;	    /* what follows is not known */
	bool signal_return; /* takes all registers from the stack */
};

/* An encoded address; "indirect" ones and those relative to what is not known here are refused. */
uint64_t cfi_read_encoded(const struct cfi_section *section, struct cursor *c, uint8_t encoding);

/* Up to the end, or to what makes no sense. 0, or what `row` returned. */
int cfi_machine__run(struct cfi_machine *m, const uint8_t *instructions, const uint8_t *end);
/* The row of the location that was reached, to `row`. */
int cfi_machine__emit_row(struct cfi_machine *m);

#endif
