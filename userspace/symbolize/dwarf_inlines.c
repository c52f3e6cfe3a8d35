/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree of what was inlined into one function, and which of it an address belongs to.
 *
 * The blocks between (scopes of variables) carry ranges too, but do not count: compilers write
 * inlined calls that reach beyond the block they are in. Of all inlined calls that cover an
 * address, the last in the order of the tree counts, which is the innermost where they nest.
 */
#include "symbolize/dwarf_private.h"

#include <dwarf.h>
#include <errno.h>

#define FUNCTION_DIES_MAX   (UINT64_C(1) << 24)
#define FUNCTION_RANGES_MAX (UINT64_C(1) << 20)

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
	uint64_t budget = FUNCTION_RANGES_MAX;
	struct dwarf_walk walk;
	int more = dwarf_walk__start(&walk, root, FUNCTION_DIES_MAX);

	around[1] = INLINE_NONE;
	while (more > 0) {
		int tag = dwarf_tag(&walk.die), err = 0;
		uint32_t own = around[walk.depth];

		if (tag == DW_TAG_inlined_subroutine) {
			err = vec_push(&inlines->nodes,
				       (struct dwarf_inline){.die = walk.die, .parent = own});
			own = inlines->nodes.count - 1;
			if (!err)
				err = dwarf_each_range(&walk.die, &budget, add_inline_range,
						       inlines);
		}
		if (err && (err != -EBADMSG || !budget))
			return err;
		around[walk.depth + 1] = own;
		more = dwarf_walk__next(&walk, can_hold_inlines(tag));
	}
	return more;
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

void dwarf_inlines__fini(struct dwarf_inlines *inlines)
{
	vec_free(&inlines->nodes);
	range_map__fini(&inlines->map);
}

uint32_t dwarf_inlines__find(struct dwarf_inlines *inlines, uint64_t address, uint64_t *until)
{
	uint32_t number;

	return range_map__find(&inlines->map, address, &number, until) ? number : INLINE_NONE;
}
