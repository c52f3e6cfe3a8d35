/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of an unwind table while it is built: from which address on which rule applies. A row
 * equal to the one before it is dropped. Rules have numbers.
 */
#ifndef UNWIND_UNWIND_ROWS_H
#define UNWIND_UNWIND_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sysprof/unwind_table.h>

#include "base/map.h"
#include "base/vec.h"
#include "unwind/build_budget.h"

/* Packed, because there are millions. */
struct unwind_row {
	uint64_t address;
	uint32_t rule;
} __attribute__((packed, aligned(4)));

struct counted_rule {
	struct unwind_rule rule;
	uint32_t number; /* in the order of appearance */
	uint32_t uses;
};

MAP_TYPE(rule_map, struct counted_rule);

typedef VEC(struct unwind_row) row_list;

struct unwind_rows {
	row_list rows;
	struct rule_map rules;
	size_t rows_max; /* more do not fit into the image, or exceed the budget */
	struct build_budget *budget;
	uint64_t left; /* bytes of code that got no rules because of a limit */
};

/* `limit`: size of the image, bytes. `budget` may be NULL; the caller owns it. */
void unwind_rows__init(struct unwind_rows *r, size_t limit, struct build_budget *budget);
void unwind_rows__fini(struct unwind_rows *r);
/* Removes rows and rules, for another try. */
void unwind_rows__clear(struct unwind_rows *r);

/* A cfi_row_fn; `context` is a struct unwind_rows. 0, -EFBIG (reason in the budget) or -ENOMEM. */
int unwind_rows__add(void *context, uint64_t address, const struct unwind_rule *rule);
/* Adds to a list that is merged later. unwind_rows__drop() frees it. */
int unwind_rows__add_to(struct unwind_rows *r, row_list *rows, uint64_t address,
			const struct unwind_rule *rule);
/* Merges a sorted list into the rows. */
int unwind_rows__merge(struct unwind_rows *r, const row_list *added);
void unwind_rows__drop(struct unwind_rows *r, row_list *rows);

/* The number of a rule, which is added if it is new. */
int unwind_rows__number(struct unwind_rows *r, const struct unwind_rule *rule, uint32_t *number);
static inline bool unwind_rows__is_rule(const struct unwind_rows *r, uint32_t number,
					const struct unwind_rule *rule)
{
	return !memcmp(&r->rules.data[number].rule, rule, sizeof(*rule));
}

/* The number of rows at or before the address. */
size_t unwind_rows__up_to(const struct unwind_rows *r, uint64_t address);
bool unwind_rows__says_nothing(const struct unwind_rows *r, const struct unwind_row *row);

#endif
