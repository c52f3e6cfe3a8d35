/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files that use libdw. */
#ifndef DWARF_PRIVATE_H
#define DWARF_PRIVATE_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "symbolize/dwarf.h"

struct elf_image;
struct strtab;

/* ---- range_map: address ranges that may overlap -> the one that counts at an address --------- */

struct range_map {
	VEC(struct range) ranges;
	VEC(struct range_segment) segments;
	size_t last; /* those that start at or before the address of the last look-up */
};

void range_map__fini(struct range_map *map);
void range_map__clear(struct range_map *map);

/*
 * [start, end) is `value`'s; an empty or inverted one is left out. Of all that cover an address the
 * highest rank counts, of equal ones the one added last. 0, -ENOMEM.
 */
int range_map__add(struct range_map *map, uint64_t start, uint64_t end, uint32_t value,
		   uint64_t rank);
/* After the last add, before the first find. Costs O(n log n), whatever overlaps. 0, -ENOMEM. */
int range_map__build(struct range_map *map);

/* Ascending addresses are quickest. *until becomes less where the result changes before that. */
bool range_map__find(struct range_map *map, uint64_t address, uint32_t *value, uint64_t *until);

/* Every range with one value, ascending; nonzero stops and is returned. */
typedef int (*range_map_fn)(void *context, uint64_t start, uint64_t end);
int range_map__each(const struct range_map *map, range_map_fn visit, void *context);

/* ---- dwarf_image: a file's sections, checked, under libdw ------------------------------------ */

struct dwarf_image {
	struct elf_image *image;
	Elf *elf;
	Dwarf *dwarf;
	uint64_t bad_units; /* their headers made no sense */
	uint64_t inflated;  /* bytes */
	bool damaged;	    /* sections were cut short, or bytes of them made no sense */
	bool needs_alt;	    /* it refers to a dwz file */
};

enum dwarf_role { DWARF_MAIN, DWARF_ALTERNATE };

/* As dwarf_reader__open(). */
int dwarf_image__open(int fd, enum dwarf_role role, const struct dwarf_options *options,
		      struct dwarf_image *image);
void dwarf_image__close(struct dwarf_image *image);
/* ---- dwarf_units: where the code of units and functions is ----------------------------------- */

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

/* ---- dwarf_sources: source files and lines --------------------------------------------------- */

enum { LINE_BITS = 24, FILE_BITS = 23, COLUMN_BITS = 16, FILE_UNKNOWN = (1 << FILE_BITS) - 1 };

/* From its address on; of several with one address the last counts. 0: not known. */
struct line_row {
	uint64_t address;
	uint64_t line : LINE_BITS, file : FILE_BITS, column : COLUMN_BITS, ends : 1;
};

/* A relative name is one in the directory, which may be relative as well, or unknown (NULL). */
struct line_file {
	const char *directory, *name;
	const char *path; /* the whole one; NULL: not made yet */
};

struct line_program {
	Dwarf_CU *unit;
	VEC(struct line_row) rows;
	VEC(struct line_file) files; /* by number */
	size_t last;		     /* row, as of a range map */
	bool rows_read;
};

DEFINE_MAP_BY(line_program_map, struct line_program, Dwarf_CU *, unit);

struct dwarf_sources {
	const struct dwarf_image *image;
	uint64_t memory_limit;
	struct line_program_map programs;
	struct strtab *paths; /* whole ones of files */
	bool left;	      /* a limit left out a line table */
};

/*
 * dwarf_lines.c: the program at an offset of .debug_line, with its rows if `rows`; the image must
 * outlive it. 0; -EBADMSG, -EFBIG, -ENOMEM: a part of it may be there.
 */
int line_program__read(struct line_program *p, struct elf_image *image, uint64_t offset,
		       const char *compilation_directory, bool rows, uint64_t memory_limit);

/* The image stays the caller's, and longer than this. 0, -ENOMEM. */
int dwarf_sources__init(struct dwarf_sources *s, const struct dwarf_image *image,
			uint64_t memory_limit);
void dwarf_sources__fini(struct dwarf_sources *s);
/* False: the unit's line table does not cover the address. *until as of a range map. */
bool dwarf_sources__line(struct dwarf_sources *s, Dwarf_CU *unit, uint64_t address,
			 struct dwarf_place *place, uint64_t *until);

/* A DIE's function name and definition; *call: the place of its call, if it was inlined. */
struct dwarf_frame dwarf_describe(struct dwarf_sources *sources, Dwarf_Die *die,
				  struct dwarf_place *call);

#define SOURCE_PATH_SIZE 4096

/*
 * The path of a source file, `name` in `directory` (NULL: unknown), without ".", ".." and double
 * slashes: "/a/b/../c" is "/a/c". A path that stays relative is not changed. 0, -ENAMETOOLONG.
 */
int source_path(const char *directory, const char *name, char *buffer, size_t size);

#endif
