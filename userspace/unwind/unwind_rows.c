/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind_rows.h"

#include "base/minmax.h"
#include "base/order.h"

#define ROW_SIZE  2 /* bytes in the image, at least */
#define ROW_STEPS 2

MAP_FUNCTIONS_BY_BYTES(rule_map, struct counted_rule, struct unwind_rule, rule);

void unwind_rows__init(struct unwind_rows *r, size_t limit, struct build_budget *budget)
{
	*r = (struct unwind_rows){.rows_max = limit / ROW_SIZE, .budget = budget};
	if (budget)
		r->rows_max = min_u64(r->rows_max, budget->limits.rows);
}

void unwind_rows__drop(struct unwind_rows *r, row_list *rows)
{
	build_budget__give_back(r->budget, rows->count * sizeof(struct unwind_row));
	vec_free(rows);
}

void unwind_rows__fini(struct unwind_rows *r)
{
	unwind_rows__drop(r, &r->rows);
	rule_map__fini(&r->rules);
}

void unwind_rows__clear(struct unwind_rows *r)
{
	build_budget__give_back(r->budget, r->rows.count * sizeof(struct unwind_row));
	r->rows.count = 0;
	rule_map__clear(&r->rules);
}

int unwind_rows__number(struct unwind_rows *r, const struct unwind_rule *rule, uint32_t *number)
{
	struct counted_rule *known;

	/* most rows repeat the rule of a row shortly before them */
	if (r->rows.count > 1) {
		*number = r->rows.data[r->rows.count - 2].rule;
		if (unwind_rows__is_rule(r, *number, rule))
			return 0;
	}
	known = rule_map__find(&r->rules, rule);
	if (!known && r->rules.count == UNWIND_RULES_MAX)
		return build_budget__refuse(r->budget, TABLE_REFUSAL_ROWS);
	if (!known)
		known = rule_map__need(
			&r->rules, &(struct counted_rule){.rule = *rule, .number = r->rules.count},
			NULL);
	return map_number(&r->rules, known, number);
}

/* Charges one more row to the budget, before it is stored. */
static int take_row(struct unwind_rows *r, const row_list *rows)
{
	if (rows->count >= r->rows_max)
		return build_budget__refuse(r->budget, TABLE_REFUSAL_ROWS);
	return build_budget__take(r->budget, sizeof(struct unwind_row));
}

int unwind_rows__add(void *context, uint64_t address, const struct unwind_rule *rule)
{
	struct unwind_rows *r = context;
	struct unwind_row *last = r->rows.count ? &r->rows.data[r->rows.count - 1] : NULL;
	uint32_t number;
	int err = build_budget__step(r->budget, ROW_STEPS);

	if (err)
		return err;
	if (last && address < last->address)
		return 0; /* out of order: invalid */
	if (last && unwind_rows__is_rule(r, last->rule, rule))
		return 0;
	err = unwind_rows__number(r, rule, &number);
	if (err)
		return err;
	if (last && address == last->address) {
		last->rule = number;
		return 0;
	}
	return take_row(r, &r->rows)
		       ?: vec_push(&r->rows,
				   (struct unwind_row){.address = address, .rule = number});
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
	uint32_t number;
	int err = build_budget__step(r->budget, ROW_STEPS)
			?: unwind_rows__number(r, rule, &number)
			?: take_row(r, rows);

	if (err)
		return err;
	row.rule = number;
	return vec_push(rows, row);
}

/* Of two rows at one address keep the one with a rule, else the added one: it may have a reason. */
static bool keeps_own(const struct unwind_rows *r, const struct unwind_row *own,
		      const struct unwind_row *added)
{
	return unwind_rows__says_nothing(r, added) && !unwind_rows__says_nothing(r, own);
}

/* Merges from the end, in place, because a second list of all rows would set the peak of memory. */
int unwind_rows__merge(struct unwind_rows *r, const row_list *added)
{
	size_t i = r->rows.count, j = added->count, total = i + j, end = total;
	struct unwind_row *rows;
	int err = build_budget__take(r->budget, j * sizeof(*rows)) ?: vec_reserve(&r->rows, total);

	if (err)
		return err;
	rows = r->rows.data;
	while (j) {
		const struct unwind_row *own = i ? &rows[i - 1] : NULL,
					*other = &added->data[j - 1];

		if (own && own->address > other->address) {
			rows[--end] = *own;
			i--;
			continue;
		}
		if (own && own->address == other->address) {
			if (keeps_own(r, own, other))
				other = own;
			i--;
		}
		rows[--end] = *other;
		j--;
	}
	/* rows before `i` are in place; rows that were replaced leave a gap */
	memmove(rows + i, rows + end, (total - end) * sizeof(*rows));
	r->rows.count = i + (total - end);
	build_budget__give_back(r->budget, (total - r->rows.count) * sizeof(*rows));
	return 0;
}
