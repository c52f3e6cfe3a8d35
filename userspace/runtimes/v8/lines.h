/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIMES_V8_LINES_H
#define RUNTIMES_V8_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wire.h"
#include "runtimes/v8/layout.h"

struct managed_function;
struct v8_reader;

/*
 * Lines of a function, by its bytecodes, as in V8 itself. Rows have offsets into the bytecodes,
 * from 0 on. In an interpreted function's frame, the upper half of the word at off_bytecode_offset
 * is v8_layout__bytecode_bias() more. In frames of other code it may be anything, a number as well:
 * the row counts only if the address is in no code that V8 has made, or in V8_CODE_OTHER.
 */

/*
 * The rows of the function at an SFI, in place of those in f->rows; none if its bytecodes are gone,
 * or have no positions yet. 0; -ENOTSUP: unknown version; -ENOMEM; or as v8_function__read().
 */
int v8_lines__read(struct v8_reader *r, uint64_t sfi, struct managed_function *f);

/* The word for the bytecodes of an SFI, as their code has it; 0: none now. 0, or as above. */
int v8_lines__bytecode_array(struct v8_reader *r, uint64_t sfi, uint64_t *bytecode_array);

/* Follows the word that Code, or a function, has for its bytecodes. 0 and 0: it leads to none. */
int v8_lines__follow_bytecodes(struct v8_reader *r, uint64_t word, uint64_t *bytecode_array);

/* Where a position in the script of an SFI is; 0, 0: unknown. 0, or as v8_function__script(). */
int v8_lines__place(struct v8_reader *r, uint64_t sfi, int32_t position, uint32_t *line,
		    uint32_t *column);

/*
 * A table of positions, read whole; the caller frees. -ENODATA: none, because V8 makes them on
 * demand; -ENOMEM; or as target_memory__read().
 */
int v8_lines__table(struct v8_reader *r, uint64_t word, unsigned char **bytes, uint32_t *size);

/*
 * V8's tables of source positions: for places in code, ascending, the place of the source. Each
 * entry is two differences to the one before, as integers of variable length. Up to V8 13.6 the
 * sign of the code's says whether a statement begins; from 14.1 on it has two low bits for that.
 */

#define V8_POSITIONS_MAX (1u << 20) /* bytes of a table */

struct v8_positions {
	struct wire bytes; /* the caller's, from the next entry on */
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

#endif
