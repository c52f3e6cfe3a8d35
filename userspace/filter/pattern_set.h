/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of characters, as ranges: the classes of regular expressions. */
#ifndef FILTER_PATTERN_SET_H
#define FILTER_PATTERN_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "filter/pattern_private.h"

struct pattern_set {
	VEC(struct pattern_range) ranges;
	bool fold; /* letters of ASCII come in both cases, and with those that fold to them */
	int error; /* -ENOMEM */
};

/* The same letter of ASCII in the other case; any other character itself. */
static inline uint32_t pattern_fold(uint32_t rune)
{
	return (rune >= 'a' && rune <= 'z') || (rune >= 'A' && rune <= 'Z') ? rune ^ 0x20 : rune;
}

void pattern_set__add(struct pattern_set *set, uint32_t low, uint32_t high);
void pattern_set__add_folded(struct pattern_set *set, uint32_t low, uint32_t high);
/* "alpha", or "d" of \d; NULL: there is no such class. */
const char *pattern_class(const char *name, size_t size);
void pattern_set__add_class(struct pattern_set *set, const char *ranges, bool negated);
/* What it does not have, from its range `first` on, takes its place. */
void pattern_set__negate(struct pattern_set *set, size_t first);
/* Ranges in order, apart from each other. */
void pattern_set__settle(struct pattern_set *set);

#endif
