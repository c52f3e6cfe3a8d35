/* SPDX-License-Identifier: BSD-2-Clause */
/* The program of an expression: made by pattern_parse.c, run by pattern.c. */
#ifndef FILTER_PATTERN_PRIVATE_H
#define FILTER_PATTERN_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "filter/pattern.h"

#define PATTERN_RUNE_MAX 0x10ffffu

enum pattern_assertion {
	ASSERT_TEXT_BEGIN,
	ASSERT_TEXT_END,
	ASSERT_LINE_BEGIN,
	ASSERT_LINE_END,
	ASSERT_WORD_EDGE,
	ASSERT_NO_WORD_EDGE,
};

enum pattern_op {
	PATTERN_RUNES,	/* one of the ranges first .. first + count - 1 */
	PATTERN_ASSERT, /* `first` is an enum pattern_assertion */
	PATTERN_FORK,	/* next and other */
	PATTERN_DONE,
};

struct pattern_range {
	uint32_t low, high;
};

struct pattern_step {
	enum pattern_op op;
	uint32_t first, count;
	uint32_t next, other;
};

struct pattern_program {
	VEC(struct pattern_step) steps;
	VEC(struct pattern_range) ranges; /* of a step: in order, apart */
	uint32_t start;
};

#endif
