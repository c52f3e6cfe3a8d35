/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * V8's tables of source positions: for places in code, ascending, which place of the source is run there. Each entry
 * is two differences to the one before, as integers of variable length. Up to V8 13.6 the sign of the code's
 * difference says whether a statement begins; from 14.1 on it has two bits for that below it.
 */
#ifndef RUNTIMES_V8_POSITIONS_H
#define RUNTIMES_V8_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/v8/layout.h"

#define V8_POSITIONS_MAX (1u << 20) /* bytes of a table */

struct v8_positions {
	const unsigned char *next, *end; /* the caller's */
	enum v8_position_encoding encoding;
	/* the entry */
	int64_t code; /* offset, never less than that of the entry before */
	int64_t word;
};

/* The place in the source that a word has: from 0 on; -1: none. */
int32_t v8_position__source(uint64_t word);
/* Which of the inlined functions it is in, counted from 1 on; 0: in none. */
uint32_t v8_position__inlining(uint64_t word);

void v8_positions__init(struct v8_positions *p, enum v8_position_encoding encoding,
			const void *bytes, size_t size);
/* false: there are no more, or what comes is none. */
bool v8_positions__next(struct v8_positions *p);

/* An unsigned integer of variable length (7 bits, low ones first), as in other tables of V8. false: it does not end. */
bool v8_varint(const unsigned char **next, const unsigned char *end, uint64_t *value);

#endif
