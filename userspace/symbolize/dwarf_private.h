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

struct strtab;

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
	const char *path;	  /* the whole one; NULL: not made yet */
	const unsigned char *md5; /* of DWARF 5, in the section; NULL: unknown */
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
	struct strtab *paths;		 /* whole ones of files */
	VEC(const unsigned char *) md5s; /* by number of the path; NULL: unknown; may be shorter */
	bool left;			 /* a limit left out a line table */
};

#define SOURCE_PATH_SIZE 4096

#endif
