/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of a function, by its bytecodes, as in V8 itself.
 *
 * The offset of a row is one into the bytecodes, from 0 on. In the frame of an interpreted function, the upper half of the
 * word at off_bytecode_offset is v8_layout__bytecode_bias() more than it. In frames of other code there may be anything,
 * numbers as well: the row counts only where the address is in none that V8 has made (code.h), or in one of V8_CODE_OTHER.
 */
#ifndef RUNTIMES_V8_LINES_H
#define RUNTIMES_V8_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/v8/layout.h"

struct managed_function;
struct v8_reader;

/*
 * The rows of the function at an SFI; none where its bytecodes are gone, or V8 has not made its positions. What was
 * in f->rows is replaced. 0; -ENOTSUP: positions of this version are not known; -ENOMEM; or as v8_function__read().
 */
int v8_lines__read(struct v8_reader *r, uint64_t sfi, struct managed_function *f);

/* The bytecodes of an SFI, the word by which code made of them refers to them; 0: it has none now. 0, or as above. */
int v8_lines__bytecode_array(struct v8_reader *r, uint64_t sfi, uint64_t *bytecode_array);

/* Follows the word that Code, or a function, has for its bytecodes. 0 and 0: it leads to none. */
int v8_lines__follow_bytecodes(struct v8_reader *r, uint64_t word, uint64_t *bytecode_array);

/* Where a position in the script of an SFI is; 0, 0: unknown. 0, or as v8_function__script(). */
int v8_lines__place(struct v8_reader *r, uint64_t sfi, int32_t position, uint32_t *line,
		    uint32_t *column);

/*
 * A table of positions, read whole; the caller frees. -ENODATA: there is none, because V8 makes them on demand;
 * -EAGAIN: what is there is none; -ENOMEM; or as target_memory__read().
 */
int v8_lines__table(struct v8_reader *r, uint64_t word, unsigned char **bytes, uint32_t *size);

/* ---- tables of positions ---------------------------------------------------------------------- */

/*
 * V8's tables of source positions: for places in code, ascending, which place of the source is run there. Each entry
 * is two differences to the one before, as integers of variable length. Up to V8 13.6 the sign of the code's
 * difference says whether a statement begins; from 14.1 on it has two bits for that below it.
 */

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
