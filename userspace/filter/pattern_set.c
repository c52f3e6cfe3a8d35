/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter/pattern_set.h"

#include <errno.h>
#include <string.h>

#include "base/order.h"

void pattern_set__add(struct pattern_set *set, uint32_t low, uint32_t high)
{
	if (low <= high && vec_push(&set->ranges, (struct pattern_range){low, high}))
		set->error = -ENOMEM;
}

/* The letters of ASCII that fold to others: K has the sign for kelvin, s the long one. */
static void fold_range(struct pattern_set *set, uint32_t low, uint32_t high)
{
	for (uint32_t rune = low; rune <= high && rune < 0x80; rune++) {
		if (pattern_fold(rune) != rune)
			pattern_set__add(set, pattern_fold(rune), pattern_fold(rune));
		if ((rune | 0x20) == 'k')
			pattern_set__add(set, 0x212a, 0x212a);
		if ((rune | 0x20) == 's')
			pattern_set__add(set, 0x17f, 0x17f);
	}
	if (low <= 0x212a && high >= 0x212a) {
		pattern_set__add(set, 'k', 'k');
		pattern_set__add(set, 'K', 'K');
	}
	if (low <= 0x17f && high >= 0x17f) {
		pattern_set__add(set, 's', 's');
		pattern_set__add(set, 'S', 'S');
	}
}

void pattern_set__add_folded(struct pattern_set *set, uint32_t low, uint32_t high)
{
	pattern_set__add(set, low, high);
	if (set->fold)
		fold_range(set, low, high);
}

DEFINE_ORDER(compare_ranges, struct pattern_range, ASCENDING(low) ?: ASCENDING(high));

/* In order, apart from each other. */
void pattern_set__settle(struct pattern_set *set)
{
	size_t count = 0;

	vec_sort(&set->ranges, compare_ranges);
	for (size_t i = 0; i < set->ranges.count; i++) {
		struct pattern_range range = set->ranges.data[i];
		struct pattern_range *last = count ? &set->ranges.data[count - 1] : NULL;

		if (last && range.low <= last->high + 1)
			last->high = last->high > range.high ? last->high : range.high;
		else
			set->ranges.data[count++] = range;
	}
	set->ranges.count = count;
}

/* What the set, from its range `first` on, does not have takes its place. */
void pattern_set__negate(struct pattern_set *set, size_t first)
{
	VEC(struct pattern_range) kept = {};
	uint32_t low = 0;

	if (vec_append(&kept, set->ranges.data, first)) {
		set->error = -ENOMEM;
		return;
	}
	vec_drop(&set->ranges, first);
	pattern_set__settle(set);
	for (size_t i = 0; i < set->ranges.count; i++) {
		struct pattern_range range = set->ranges.data[i];

		if (range.low > low && vec_push(&kept, (struct pattern_range){low, range.low - 1}))
			set->error = -ENOMEM;
		low = range.high + 1;
	}
	if (low <= PATTERN_RUNE_MAX &&
	    vec_push(&kept, (struct pattern_range){low, PATTERN_RUNE_MAX}))
		set->error = -ENOMEM;
	set->ranges.count = 0;
	if (vec_append(&set->ranges, kept.data, kept.count))
		set->error = -ENOMEM;
	vec_free(&kept);
}

/* Pairs of characters; NULL: there is no such class. */
const char *pattern_class(const char *name, size_t size)
{
	static const struct {
		const char *name, *ranges;
	} classes[] = {
		{"alnum", "09AZaz"},
		{"alpha", "AZaz"},
		{"ascii", "\0\x7f"},
		{"blank", "\t\t  "},
		{"cntrl", "\0\x1f\x7f\x7f"},
		{"digit", "09"},
		{"graph", "!~"},
		{"lower", "az"},
		{"print", " ~"},
		{"punct", "!/:@[`{~"},
		{"space", "\t\r  "},
		{"upper", "AZ"},
		{"word", "09AZaz__"},
		{"xdigit", "09AFaf"},
		/* \d, \s, \w */
		{"d", "09"},
		{"s", "\t\n\f\r  "},
		{"w", "09AZaz__"},
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
		if (strlen(classes[i].name) == size && !memcmp(classes[i].name, name, size))
			return classes[i].ranges;
	return NULL;
}

/* Two classes begin with NUL; none is longer than the pairs up to the next NUL behind those. */
void pattern_set__add_class(struct pattern_set *set, const char *ranges, bool negated)
{
	size_t first = set->ranges.count;

	do {
		pattern_set__add_folded(set, (unsigned char)ranges[0], (unsigned char)ranges[1]);
		ranges += 2;
	} while (*ranges);
	if (negated)
		pattern_set__negate(set, first);
}
