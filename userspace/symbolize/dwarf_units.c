/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address -> unit -> function.
 *
 * The ranges of all units are read once, from the units' own DIEs. .debug_aranges, which would say
 * the same, is not written by clang. The functions of a unit are read when the first address falls
 * into it, and stay: all DIEs that can hold a function are walked, since functions are nested in
 * namespaces, types and other functions.
 *
 * If no unit covers an address, the functions of units without ranges are read and added to the
 * units' ranges. Not before, because most of these units have no code at all.
 *
 * Ranges overlap. Linkers leave the ranges of what they removed at address 0 (GNU ld, 1 in lists),
 * which are dropped, or at the end of memory (lld), which are never requested. With GNU ld every
 * dropped copy of an inline function claims the kept one, the first unit's. So the unit with the
 * shortest range counts, of equal ones the first; of functions the last, which is the innermost.
 */
#include "symbolize/dwarf_units.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define UNITS_MAX	    (1U << 22)
#define UNIT_DIES_MAX	    (UINT64_C(1) << 26)
#define RANGELESS_DIES_MAX  (UINT64_C(1) << 26) /* of all such units together */
#define UNIT_RANGES_MAX	    (UINT64_C(1) << 22) /* of all units together */
#define FUNCTION_RANGES_MAX (UINT64_C(1) << 21) /* of the functions of one unit */
#define INLINES_DIES_MAX    (UINT64_C(1) << 24) /* of one function */
#define INLINE_RANGES_MAX   (UINT64_C(1) << 20) /* of one function */
#define REMOVED_START	    1
#define WALK_DEPTH_MAX	    256

/* ---- a walk over the DIEs below one, in their order ------------------------------------------ */

/*
 * To find the next sibling of a DIE with children, libdw reads all that is below it, unless the
 * compiler wrote where that ends (gcc does, clang and rustc do not). A walk down, up and to the
 * parent's sibling would read everything once for each level. But at the end of a list of siblings
 * dwarf_siblingof() returns the place of the null that ends it, and behind it the parent's siblings
 * go on. So every byte is read once, only a depth is kept, and each step moves on: a walk ends,
 * whatever the unit contains. DIEs deeper than WALK_DEPTH_MAX are left out.
 */
struct walk {
	Dwarf_Die die;	    /* where the walk is */
	unsigned int depth; /* of it; children of the root have 1 */
	uint64_t budget;    /* DIEs it may still visit */
	bool left;	    /* some were too deep */
	const unsigned char *end;
};

/* Where the unit of a DIE ends in memory; NULL: unknown. */
static const unsigned char *unit_end(Dwarf_Die *die)
{
	Dwarf_Off unit = dwarf_dieoffset(die) - dwarf_cuoffset(die), next;
	size_t header_size;

	if (dwarf_next_unit(dwarf_cu_getdwarf(die->cu), unit, &next, &header_size, NULL, NULL, NULL,
			    NULL, NULL, NULL))
		return NULL;
	return (const unsigned char *)die->addr + (next - dwarf_dieoffset(die));
}

/* To the first child of `root`. 1: it exists; 0: no more; -EBADMSG: damaged; -EFBIG: budget. */
static int walk__start(struct walk *w, Dwarf_Die *root, uint64_t budget)
{
	int result;

	*w = (struct walk){.depth = 1, .budget = budget, .end = unit_end(root)};
	if (!w->end)
		return -EBADMSG;
	result = dwarf_child(root, &w->die);
	return result < 0 ? -EBADMSG : !result;
}

/* From the null at `at`, which ends a list, to the next DIE behind it. */
static int leave_list(struct walk *w, const unsigned char *at)
{
	Dwarf *dwarf = dwarf_cu_getdwarf(w->die.cu);

	while (w->depth > 1) {
		w->depth--;
		at++;
		if (at >= w->end)
			return 0;
		if (*at)
			return dwarf_die_addr_die(dwarf, (void *)at, &w->die) ? 1 : -EBADMSG;
	}
	return 0;
}

/* To the next DIE to visit; not below the current one unless `enter`. As above. */
static int walk__next(struct walk *w, bool enter)
{
	Dwarf_Die next = w->die;
	int result;

	if (!w->budget)
		return -EFBIG;
	w->budget--;
	enter = enter && dwarf_haschildren(&w->die) > 0;
	w->left |= enter && w->depth == WALK_DEPTH_MAX;
	if (enter && w->depth < WALK_DEPTH_MAX) {
		result = dwarf_child(&w->die, &next);
		if (result < 0)
			return -EBADMSG;
		if (!result) {
			w->die = next;
			w->depth++;
			return 1;
		}
		next = w->die;
	}
	result = dwarf_siblingof(&w->die, &next);
	if (result < 0)
		return -EBADMSG;
	if (!result) {
		w->die = next;
		return 1;
	}
	return next.addr ? leave_list(w, next.addr) : 0;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Each range of a DIE that can be true. 0, -EBADMSG, -EFBIG, or what `visit` returned. */
static int each_range(Dwarf_Die *die, uint64_t *budget, dwarf_range_fn visit, void *context)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		int err;

		if (!*budget)
			return -EFBIG;
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
};

static int add_unit_range(void *context, uint64_t start, uint64_t end)
{
	struct unit_ranges *r = context;

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
	err = each_range(die, &u->range_budget, add_unit_range, &ranges);
	if (err == -ENOMEM)
		return err;
	u->units.data[ranges.number].damaged = err == -EBADMSG;
	u->damaged += err == -EBADMSG;
	u->left |= err == -EFBIG;
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
		if (u->units.count >= UNITS_MAX) {
			u->left = true;
			break;
		}
		err = add_unit(u, &die);
		if (err)
			return err;
	}
	u->damaged += result < 0;
	return range_map__build(&u->map);
}

void dwarf_units__fini(struct dwarf_units *u)
{
	vec_free_with(&u->units, unit, vec_free(&unit->functions); range_map__fini(&unit->map));
	vec_free(&u->rangeless);
	range_map__fini(&u->rangeless_map);
	range_map__fini(&u->map);
}

/* ---- the functions of a unit ----------------------------------------------------------------- */

/*
 * Classes are most of a C++ unit. gcc writes the code of their members outside of them, except for
 * local classes of functions. It also writes where a class ends, so skipping it is free.
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
	err = each_range(die, range_budget, add_function_range, unit);
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
	struct walk walk;
	int more = walk__start(&walk, root, *die_budget);

	while (more > 0) {
		int tag = dwarf_tag(&walk.die);
		int err = 0;

		if (walk.depth <= function_depth)
			function_depth = tag == DW_TAG_subprogram ? walk.depth : UINT_MAX;
		if (tag == DW_TAG_subprogram && has_code(&walk.die))
			err = add_function(unit, &walk.die, &range_budget);
		unit->damaged |= err == -EBADMSG;
		if (err && err != -EBADMSG)
			return err;
		more = walk__next(
			&walk, can_hold_functions(tag, everywhere || function_depth != UINT_MAX));
	}
	*die_budget = walk.budget;
	return more ?: walk.left ? -EFBIG : 0;
}

/* 0, -ENOMEM. A damaged unit, or one over a limit, keeps the functions that were found. */
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
	u->left |= err == -EFBIG;
	if (err == -ENOMEM)
		return err;
	return range_map__build(&unit->map);
}

/* Units without ranges get those of their functions. */
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
			err = each_range(&unit->functions.data[k].die, &u->range_budget,
					 add_unit_range, &ranges);
		u->left |= err == -EFBIG;
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

/* ---- what was inlined into one function ------------------------------------------------------ */

/*
 * The blocks between (scopes of variables) carry ranges too, but do not count: compilers write
 * inlined calls that reach beyond the block they are in. Of all inlined calls that cover an
 * address, the last in the order of the tree counts, which is the innermost where they nest.
 */

static int add_inline_range(void *context, uint64_t start, uint64_t end)
{
	struct dwarf_inlines *inlines = context;
	uint32_t number = inlines->nodes.count - 1;

	return range_map__add(&inlines->map, start, end, number, number);
}

static bool can_hold_inlines(int tag)
{
	switch (tag) {
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return true;
	default:
		return false;
	}
}

static int walk_inlines(struct dwarf_inlines *inlines, Dwarf_Die *root)
{
	uint32_t around[WALK_DEPTH_MAX +
			2]; /* by depth: the inlined call whose children these are */
	uint64_t budget = INLINE_RANGES_MAX;
	struct walk walk;
	int more = walk__start(&walk, root, INLINES_DIES_MAX);

	around[1] = INLINE_NONE;
	while (more > 0) {
		int tag = dwarf_tag(&walk.die), err = 0;
		uint32_t own = around[walk.depth];

		if (tag == DW_TAG_inlined_subroutine) {
			err = vec_push(&inlines->nodes,
				       (struct dwarf_inline){.die = walk.die, .parent = own});
			own = inlines->nodes.count - 1;
			if (!err)
				err = each_range(&walk.die, &budget, add_inline_range, inlines);
		}
		if (err && err != -EBADMSG)
			return err;
		around[walk.depth + 1] = own;
		more = walk__next(&walk, can_hold_inlines(tag));
	}
	return more ?: walk.left ? -EFBIG : 0;
}

int dwarf_inlines__load(struct dwarf_inlines *inlines, const struct dwarf_function *function)
{
	Dwarf_Die root = function->die;
	int err, build_err;

	inlines->function = NULL;
	inlines->nodes.count = 0;
	range_map__clear(&inlines->map);
	err = walk_inlines(inlines, &root);
	if (err == -ENOMEM)
		return err;
	build_err = range_map__build(&inlines->map);
	if (build_err)
		return build_err;
	inlines->function = function;
	return err;
}
