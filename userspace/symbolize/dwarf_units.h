/* SPDX-License-Identifier: BSD-2-Clause */
/* The compilation units of a file and their functions, by address. */
#ifndef SYMBOLIZE_DWARF_UNITS_H
#define SYMBOLIZE_DWARF_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "symbolize/dwarf.h"
#include "symbolize/dwarf_private.h"
#include "symbolize/range_map.h"

struct dwarf_function {
	Dwarf_Die die;
	uint64_t start, size; /* of its first range: where it is entered */
};

struct dwarf_unit {
	Dwarf_Die die; /* of the file itself; of a split unit the skeleton */
	bool indexed, damaged, marked;
	VEC(struct dwarf_function) functions;
	struct range_map map; /* address -> number in functions */
};

struct dwarf_units {
	VEC(struct dwarf_unit) units;
	struct range_map map;		/* address -> number in units */
	struct range_map rangeless_map; /* the same, of units that do not say it themselves */
	VEC(uint32_t) rangeless;	/* units that do not say where their code is */
	bool rangeless_indexed;
	uint64_t range_budget; /* what may still be spent on ranges of all of them */
	uint64_t seen, indexed, damaged;
	bool left; /* a limit left out a part of them */
};

int dwarf_units__init(struct dwarf_units *u, Dwarf *dwarf);
void dwarf_units__fini(struct dwarf_units *u);
/* The unit of an address, its functions indexed; or NULL. *until as in range_map. 0, -ENOMEM. */
int dwarf_units__find(struct dwarf_units *u, uint64_t address, struct dwarf_unit **unit,
		      uint64_t *until);

/* The same, as far as that is known without reading functions. */
struct dwarf_unit *dwarf_units__at(struct dwarf_units *u, uint64_t address);
/* Reads the functions of all units that do not say where their code is. 0, -ENOMEM. */
int dwarf_units__index_all(struct dwarf_units *u);

/* Functions that were inlined into one. */

struct dwarf_place {
	const char *file; /* NULL unknown */
	uint32_t line, column;
};

struct dwarf_inline {
	Dwarf_Die die;
	uint32_t parent; /* number of the one around it, or INLINE_NONE: the function itself */
	bool described;	 /* these are set: */
	struct dwarf_frame frame;
	struct dwarf_place call;
};

#define INLINE_NONE UINT32_MAX

struct dwarf_inlines {
	const struct dwarf_function *function; /* NULL: none yet */
	VEC(struct dwarf_inline) nodes;
	struct range_map map; /* address -> number in nodes */
};

/* 0; -EBADMSG: damaged, -EFBIG: over a limit, but what was read is kept; -ENOMEM. */
int dwarf_inlines__load(struct dwarf_inlines *inlines, const struct dwarf_function *function);

#endif
