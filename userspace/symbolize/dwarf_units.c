/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address -> unit -> function.
 *
 * The ranges of all units are read once, from the units' own DIEs. .debug_aranges, which would say
 * the same, is not written by clang. The functions of a unit are read when the first address falls
 * into it, and stay: all DIEs that can hold a function are walked, since functions are nested in
 * namespaces, types and other functions.
 *
 * A unit that does not say where its code is has its functions added to the units' ranges, but only for an address
 * that no other unit covers: most such units have no code at all.
 *
 * Ranges overlap. Linkers leave the ranges of what they removed at address 0 (GNU ld, 1 in lists) or at the end of
 * memory (lld): the first are dropped, the others are never requested. GNU ld also lets every copy of an inline
 * function that it dropped claim the one it kept, which is that of the first unit. So the shortest range of a unit
 * counts, of equal ones the first; of functions the last, which is the innermost.
 */
#include "symbolize/dwarf_private.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define UNITS_MAX	    (1U << 22)
#define UNIT_DIES_MAX	    (UINT64_C(1) << 26)
#define RANGELESS_DIES_MAX  (UINT64_C(1) << 26) /* of all such units together */
#define UNIT_RANGES_MAX	    (UINT64_C(1) << 22) /* of all units together */
#define FUNCTION_RANGES_MAX (UINT64_C(1) << 21) /* of the functions of one unit */
#define REMOVED_START	    1

int dwarf_each_range(Dwarf_Die *die, uint64_t *budget, dwarf_range_fn visit, void *context)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		int err;

		if (!*budget)
			return -EBADMSG;
		(*budget)--;
		if (start <= REMOVED_START || start >= end)
			continue;
		err = visit(context, start, end);
		if (err)
			return err;
	}
	return offset < 0 ? -EBADMSG : 0;
}

/* ---- the units ------------------------------------------------------------------------------- */

#define RANK_LENGTH_MAX ((UINT64_C(1) << 40) - 1)

/* The shortest first, then the first. */
static uint64_t unit_rank(uint64_t length, uint32_t number)
{
	uint64_t shortness = length < RANK_LENGTH_MAX ? RANK_LENGTH_MAX - length : 0;

	return shortness * UNITS_MAX + (UNITS_MAX - 1 - number);
}

struct unit_ranges {
	struct range_map *map;
	uint32_t number;
	bool any;
};

static int add_unit_range(void *context, uint64_t start, uint64_t end)
{
	struct unit_ranges *r = context;

	r->any = true;
	return range_map__add(r->map, start, end, r->number, unit_rank(end - start, r->number));
}

static int add_unit(struct dwarf_units *u, Dwarf_Die *die)
{
	struct unit_ranges ranges = {.map = &u->map, .number = u->units.count};
	bool has_ranges;
	int err = vec_push(&u->units, (struct dwarf_unit){.die = *die});

	if (err)
		return err;
	u->seen++;
	has_ranges = dwarf_hasattr(die, DW_AT_ranges) || dwarf_hasattr(die, DW_AT_high_pc);
	err = dwarf_each_range(die, &u->range_budget, add_unit_range, &ranges);
	if (err == -ENOMEM)
		return err;
	if (err || (has_ranges && !ranges.any))
		u->units.data[ranges.number].damaged = err != 0;
	u->damaged += err != 0;
	if (!has_ranges || err)
		return vec_push(&u->rangeless, ranges.number);
	return 0;
}

int dwarf_units__init(struct dwarf_units *u, Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	uint8_t type;
	Dwarf_Die die;
	int err, result;

	*u = (struct dwarf_units){.range_budget = UNIT_RANGES_MAX};
	while (!(result = dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL))) {
		int tag = dwarf_tag(&die);

		if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
			continue;
		if (u->units.count >= UNITS_MAX)
			return -EBADMSG;
		err = add_unit(u, &die);
		if (err)
			return err;
	}
	u->damaged += result < 0;
	return range_map__build(&u->map);
}

void dwarf_units__fini(struct dwarf_units *u)
{
	for (size_t i = 0; i < u->units.count; i++) {
		vec_free(&u->units.data[i].functions);
		range_map__fini(&u->units.data[i].map);
	}
	vec_free(&u->units);
	vec_free(&u->rangeless);
	range_map__fini(&u->rangeless_map);
	range_map__fini(&u->map);
}

/* ---- the functions of a unit ----------------------------------------------------------------- */

/*
 * Classes are most of a unit of C++. gcc writes the code of their members outside of them, but for classes that are
 * local to a function. And it writes where a class ends, so passing over is free.
 */
static bool code_is_outside_of_classes(Dwarf_Die *unit_die)
{
	static const char producer[] = "GNU C";
	Dwarf_Attribute attribute;
	const char *text =
		dwarf_formstring(dwarf_attr_integrate(unit_die, DW_AT_producer, &attribute));

	return text && !strncmp(text, producer, sizeof(producer) - 1);
}

/* Where functions with code can be; all else is not entered. */
static bool can_hold_functions(int tag, bool in_classes)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return in_classes;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	default:
		return false;
	}
}

static int add_function_range(void *context, uint64_t start, uint64_t end)
{
	struct dwarf_unit *unit = context;
	struct dwarf_function *function = &unit->functions.data[unit->functions.count];

	if (!function->size) {
		function->start = start;
		function->size = end - start;
	}
	return range_map__add(&unit->map, start, end, unit->functions.count, unit->functions.count);
}

static int add_function(struct dwarf_unit *unit, Dwarf_Die *die, uint64_t *range_budget)
{
	struct dwarf_function *function;
	int err = vec_reserve(&unit->functions, unit->functions.count + 1);

	if (err)
		return err;
	function = &unit->functions.data[unit->functions.count];
	*function = (struct dwarf_function){.die = *die};
	err = dwarf_each_range(die, range_budget, add_function_range, unit);
	if (function->size)
		unit->functions.count++;
	return err;
}

/* Quicker than to look for its ranges, and most have none. */
static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

static int walk_functions(struct dwarf_unit *unit, Dwarf_Die *root, uint64_t *die_budget)
{
	uint64_t range_budget = FUNCTION_RANGES_MAX;
	bool everywhere = !code_is_outside_of_classes(root);
	unsigned int function_depth = UINT_MAX; /* of the outermost function around */
	struct dwarf_walk walk;
	int more = dwarf_walk__start(&walk, root, *die_budget);

	while (more > 0) {
		int tag = dwarf_tag(&walk.die);
		int err = 0;

		if (walk.depth <= function_depth)
			function_depth = tag == DW_TAG_subprogram ? walk.depth : UINT_MAX;
		if (tag == DW_TAG_subprogram && has_code(&walk.die))
			err = add_function(unit, &walk.die, &range_budget);
		unit->damaged |= err == -EBADMSG;
		if (err && (err != -EBADMSG || !range_budget))
			return err;
		more = dwarf_walk__next(
			&walk, can_hold_functions(tag, everywhere || function_depth != UINT_MAX));
	}
	*die_budget = walk.budget;
	return more;
}

/* 0, -ENOMEM. A damaged unit keeps the functions that were found. */
static int index_functions(struct dwarf_units *u, struct dwarf_unit *unit, uint64_t *die_budget)
{
	Dwarf_Die die = unit->die, split;
	bool was_damaged = unit->damaged;
	uint8_t type;
	int err;

	if (unit->indexed)
		return 0;
	unit->indexed = true;
	u->indexed++;
	if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, NULL, NULL, NULL, NULL))
		return 0;
	if (type == DW_UT_skeleton) {
		if (dwarf_cu_info(unit->die.cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) ||
		    !split.addr)
			unit->damaged = true;
		else
			die = split;
	}
	err = walk_functions(unit, &die, die_budget);
	unit->damaged |= err == -EBADMSG;
	u->damaged += unit->damaged && !was_damaged;
	if (err == -ENOMEM)
		return err;
	return range_map__build(&unit->map);
}

/* Units that say nothing: their functions' ranges are theirs. */
int dwarf_units__index_all(struct dwarf_units *u)
{
	uint64_t budget = RANGELESS_DIES_MAX;
	int err;

	if (u->rangeless_indexed)
		return 0;
	u->rangeless_indexed = true;
	for (size_t i = 0; i < u->rangeless.count; i++) {
		uint32_t number = u->rangeless.data[i];
		struct dwarf_unit *unit = &u->units.data[number];
		struct unit_ranges ranges = {.map = &u->rangeless_map, .number = number};

		err = index_functions(u, unit, &budget);
		for (size_t k = 0; k < unit->functions.count && !err; k++)
			err = dwarf_each_range(&unit->functions.data[k].die, &u->range_budget,
					       add_unit_range, &ranges);
		if (err == -ENOMEM)
			return err;
	}
	return range_map__build(&u->rangeless_map);
}

static bool find_number(struct dwarf_units *u, uint64_t address, uint32_t *number, uint64_t *until)
{
	return range_map__find(&u->map, address, number, until) ||
	       (u->rangeless_indexed && range_map__find(&u->rangeless_map, address, number, until));
}

struct dwarf_unit *dwarf_units__at(struct dwarf_units *u, uint64_t address)
{
	uint64_t until = UINT64_MAX;
	uint32_t number;

	return find_number(u, address, &number, &until) ? &u->units.data[number] : NULL;
}

int dwarf_units__find(struct dwarf_units *u, uint64_t address, struct dwarf_unit **unit,
		      uint64_t *until)
{
	uint64_t budget = UNIT_DIES_MAX;
	uint32_t number;
	int err;

	*unit = NULL;
	if (!find_number(u, address, &number, until)) {
		err = dwarf_units__index_all(u);
		if (err || !find_number(u, address, &number, until))
			return err;
	}
	err = index_functions(u, &u->units.data[number], &budget);
	if (err)
		return err;
	*unit = &u->units.data[number];
	return 0;
}
