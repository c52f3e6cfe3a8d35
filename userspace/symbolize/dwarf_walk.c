/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk over the DIEs below one, in the order they lie in.
 *
 * To find the next sibling of a DIE with children, libdw reads all that is below it, unless the compiler wrote where
 * that ends (gcc does, clang and rustc do not). A walk that goes down, up, and then to the parent's sibling reads
 * everything once for each level. But at the end of a list of siblings dwarf_siblingof() returns the place of the
 * null that ends it; behind that null the parent's siblings go on. So every byte is read once, nothing but a depth
 * has to be kept, and each step moves on: a walk ends, whatever the unit contains.
 *
 * DIEs deeper than WALK_DEPTH_MAX are skipped.
 */
#include "symbolize/dwarf_private.h"

#include <errno.h>

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

int dwarf_walk__start(struct dwarf_walk *w, Dwarf_Die *root, uint64_t budget)
{
	int result;

	*w = (struct dwarf_walk){.depth = 1, .budget = budget, .end = unit_end(root)};
	if (!w->end)
		return -EBADMSG;
	result = dwarf_child(root, &w->die);
	return result < 0 ? -EBADMSG : !result;
}

/* From the null at `at` to what comes behind the end of the list it ends. */
static int leave_list(struct dwarf_walk *w, const unsigned char *at)
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

int dwarf_walk__next(struct dwarf_walk *w, bool enter)
{
	Dwarf_Die next = w->die;
	int result;

	if (!w->budget)
		return -EBADMSG;
	w->budget--;
	if (enter && w->depth < WALK_DEPTH_MAX && dwarf_haschildren(&w->die) > 0) {
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
