/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"

#define RULES_MAX (UINT16_MAX + 1u)
#define ROW_SIZE  2 /* bytes in the image, at least */

static bool equal_rules(const void *owner, uint32_t index, const void *key)
{
	return unwind_rows__is_rule(owner, index, key);
}

void unwind_rows__init(struct unwind_rows *r, size_t limit)
{
	*r = (struct unwind_rows){.rows_max = limit / ROW_SIZE};
	hashmap__init(&r->numbers, equal_rules, r);
}

void unwind_rows__fini(struct unwind_rows *r)
{
	vec_free(&r->rows);
	vec_free(&r->rules);
	hashmap__fini(&r->numbers);
}

void unwind_rows__clear(struct unwind_rows *r)
{
	r->rows.count = r->rules.count = 0;
	hashmap__clear(&r->numbers);
}

static int add_rule(struct unwind_rows *r, const struct unwind_rule *rule, uint64_t hash,
		    uint32_t *number)
{
	int err;

	*number = r->rules.count;
	if (*number == RULES_MAX)
		return -EFBIG;
	err = vec_push(&r->rules, (struct counted_rule){.rule = *rule, .number = *number});
	return err ? err : hashmap__add(&r->numbers, hash, *number);
}

int unwind_rows__number(struct unwind_rows *r, const struct unwind_rule *rule, uint32_t *number)
{
	uint64_t hash;

	/* most rows repeat the rule of a row shortly before them */
	if (r->rows.count > 1) {
		*number = r->rows.data[r->rows.count - 2].rule;
		if (unwind_rows__is_rule(r, *number, rule))
			return 0;
	}
	hash = hash_bytes(rule, sizeof(*rule));
	*number = hashmap__find(&r->numbers, hash, rule);
	return *number == HASHMAP_NONE ? add_rule(r, rule, hash, number) : 0;
}

int unwind_rows__add(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct unwind_rows *r = context;
	struct unwind_row *last = r->rows.count ? &r->rows.data[r->rows.count - 1] : NULL;
	uint32_t number;
	int err;

	if (last && address < last->address)
		return 0; /* it makes no sense */
	if (last && unwind_rows__is_rule(r, last->rule, rule))
		return 0;
	err = unwind_rows__number(r, rule, &number);
	if (err)
		return err;
	if (last && address == last->address) {
		last->rule = number;
		return 0;
	}
	if (r->rows.count >= r->rows_max)
		return -EFBIG;
	return vec_push(&r->rows, (struct unwind_row){.address = address, .rule = number});
}

size_t unwind_rows__up_to(const struct unwind_rows *r, uint64_t address)
{
	return partition_point(r->rows.data, r->rows.count, row, row->address <= address);
}

bool unwind_rows__says_nothing(const struct unwind_rows *r, const struct unwind_row *row)
{
	return r->rules.data[row->rule].rule.cfa == UNWIND_CFA_NONE;
}

int unwind_rows__add_to(struct unwind_rows *r, row_list *rows, uint64_t address,
			const struct unwind_rule *rule)
{
	struct unwind_row row = {.address = address};
	int err = rows->count < r->rows_max ? unwind_rows__number(r, rule, &row.rule) : -EFBIG;

	return err ? err : vec_push(rows, row);
}

/* Of two rows for one address the one that says something stays, else the added one: it may say why not. */
int unwind_rows__merge(struct unwind_rows *r, const row_list *added)
{
	row_list merged = {};
	size_t i = 0, j = 0;
	int err = vec_reserve(&merged, r->rows.count + added->count);

	while (!err && (i < r->rows.count || j < added->count)) {
		const struct unwind_row *x = i < r->rows.count ? &r->rows.data[i] : NULL;
		const struct unwind_row *y = j < added->count ? &added->data[j] : NULL;

		if (!y || (x && x->address < y->address)) {
			merged.data[merged.count++] = r->rows.data[i++];
			continue;
		}
		if (x && x->address == y->address) {
			i++;
			if (unwind_rows__says_nothing(r, y) && !unwind_rows__says_nothing(r, x))
				y = x;
		}
		merged.data[merged.count++] = *y;
		j++;
	}
	if (err)
		return err;
	free(r->rows.data);
	r->rows = merged;
	return 0;
}
