/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source files and lines: what the line programs of units say.
 *
 * libdw keeps each table of lines until its handle ends, and takes some 80 bytes for a row: the most of what a large file
 * needs. So a unit's rows are copied, into 16 bytes each, and its names of files. When the handle of the units has read many
 * rows, further ones are read with a second handle of the same sections, which ends when it has read as many.
 */
#include "symbolize/dwarf_private.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "base/strtab.h"
#include "symbolize/module_private.h"

#define ROWS_KEPT (1u << 14) /* by a handle */

int dwarf_sources__init(struct dwarf_sources *s, const struct dwarf_image *image,
			uint64_t memory_limit)
{
	*s = (struct dwarf_sources){.image = image, .memory_limit = memory_limit};
	s->names = strtab__new();
	s->paths = memo__new();
	return s->names && s->paths ? 0 : -ENOMEM;
}

void dwarf_sources__fini(struct dwarf_sources *s)
{
	for (size_t i = 0; i < s->programs.count; i++) {
		vec_free(&s->programs.data[i].rows);
		vec_free(&s->programs.data[i].names);
	}
	line_program_map__fini(&s->programs);
	if (s->dwarf)
		dwarf_end(s->dwarf);
	strtab__free(s->names);
	memo__free(s->paths);
}

/* ---- line programs --------------------------------------------------------------------------- */

/* The unit's DIE in the handle that reads lines now. */
static Dwarf_Die *die_for_lines(struct dwarf_sources *s, Dwarf_Die *unit_die, Dwarf_Die *space)
{
	if (s->rows <= ROWS_KEPT)
		return unit_die;
	if (!s->dwarf)
		s->dwarf = dwarf_begin_elf(s->image->elf, DWARF_C_READ, NULL);
	return s->dwarf ? dwarf_offdie(s->dwarf, dwarf_dieoffset(unit_die), space) : unit_die;
}

/* Nothing of it is used any more. */
static void end_large_handle(struct dwarf_sources *s)
{
	if (!s->dwarf || s->rows <= 2 * ROWS_KEPT)
		return;
	dwarf_end(s->dwarf);
	s->dwarf = NULL;
	s->rows = ROWS_KEPT + 1; /* those of the units' handle stay */
}

static int copy_row(struct line_program *p, Dwarf_Line *line)
{
	struct line_row row = {};
	Dwarf_Files *files;
	Dwarf_Addr address;
	int number, column;
	size_t file;
	bool ends;

	if (dwarf_lineaddr(line, &address) || dwarf_lineendsequence(line, &ends))
		return -EBADMSG;
	row.address = address;
	row.ends = ends;
	if (!dwarf_lineno(line, &number) && number > 0 && number < 1 << LINE_BITS)
		row.line = number;
	if (!dwarf_linecol(line, &column) && column > 0 && column < 1 << COLUMN_BITS)
		row.column = column;
	row.file = FILE_UNKNOWN;
	if (!dwarf_line_file(line, &files, &file) && file < FILE_UNKNOWN)
		row.file = file;
	return vec_push(&p->rows, row);
}

/* Rows by their addresses. */
static int copy_rows(struct dwarf_sources *s, struct line_program *p, Dwarf_Die *unit_die)
{
	Dwarf_Lines *lines;
	size_t count;
	int err;

	if (dwarf_getsrclines(unit_die, &lines, &count))
		return 0;
	s->rows += count;
	err = vec_reserve(&p->rows, count);
	for (size_t i = 0; i < count && !err; i++)
		err = copy_row(p, dwarf_onesrcline(lines, i));
	return err;
}

static int copy_names(struct dwarf_sources *s, struct line_program *p, Dwarf_Die *unit_die)
{
	Dwarf_Files *files;
	size_t count;
	int err;

	if (dwarf_getsrcfiles(unit_die, &files, &count))
		return 0;
	err = vec_reserve(&p->names, count);
	for (size_t i = 0; i < count && !err; i++) {
		int64_t name = strtab__intern(s->names, dwarf_filesrc(files, i, NULL, NULL) ?: "");

		err = name < 0 ? (int)name : vec_push(&p->names, (uint32_t)name);
	}
	return err;
}

/*
 * What can be had of it; rows only of units of the file itself, and only where they are needed: units of types, made by dwz,
 * have the line program of another one.
 */
static void read_program(struct dwarf_sources *s, struct line_program *p, bool rows)
{
	Dwarf_Die unit_die, space, *die = &unit_die;
	bool own = dwarf_cu_getdwarf(p->unit) == s->image->dwarf;

	if (dwarf_cu_info(p->unit, NULL, NULL, &unit_die, NULL, NULL, NULL, NULL))
		return;
	if (own && !dwarf_image__line_program_fits(s->image, &unit_die, s->memory_limit))
		return;
	if (own)
		die = die_for_lines(s, &unit_die, &space);
	if (!die || (!p->names.count && copy_names(s, p, die)) ||
	    (rows && own && copy_rows(s, p, die)))
		p->rows.count = p->names.count = 0; /* a part of them would be wrong */
	end_large_handle(s);
}

/* NULL: no memory. */
static struct line_program *program_of(struct dwarf_sources *s, Dwarf_CU *unit, bool rows)
{
	struct line_program *p;
	bool is_new;

	p = line_program_map__need(&s->programs, &(struct line_program){.unit = unit}, &is_new);
	if (p && (is_new || (rows && !p->rows_read)))
		read_program(s, p, rows);
	if (p)
		p->rows_read |= rows;
	return p;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The directory the unit was compiled in, or NULL. */
static const char *compilation_directory(Dwarf_CU *unit)
{
	Dwarf_Attribute attribute;
	Dwarf_Die unit_die;

	if (dwarf_cu_info(unit, NULL, NULL, &unit_die, NULL, NULL, NULL, NULL))
		return NULL;
	return dwarf_formstring(dwarf_attr_integrate(&unit_die, DW_AT_comp_dir, &attribute));
}

/* Equal names of two units can be different files, so a path is that of its place in the unit's names. */
static const char *file_of(struct dwarf_sources *s, const struct line_program *p, uint64_t number)
{
	char path[SOURCE_PATH_SIZE];
	const uint32_t *place;
	const char *name, *known;

	if (number >= p->names.count)
		return NULL;
	place = &p->names.data[number];
	known = memo__get(s->paths, place);
	if (known)
		return known;
	name = strtab__get(s->names, *place);
	/* "???" is libdw's name of number 0 before DWARF 5: there is none */
	if (!*name || !strcmp(name, "???") ||
	    source_path(compilation_directory(p->unit), name, path, sizeof(path)))
		return NULL;
	return memo__put(s->paths, place, path);
}

const char *dwarf_sources__file(struct dwarf_sources *s, Dwarf_CU *unit, uint64_t number)
{
	const struct line_program *p = program_of(s, unit, false);

	return p ? file_of(s, p, number) : NULL;
}

/* ---- lines ----------------------------------------------------------------------------------- */

bool dwarf_sources__line(struct dwarf_sources *s, Dwarf_CU *unit, uint64_t address,
			 struct dwarf_place *place, uint64_t *until)
{
	struct line_program *p = program_of(s, unit, true);
	const struct line_row *row;

	if (!p)
		return false;
	p->last = ascending_point(p->rows.count, p->last, i, p->rows.data[i].address <= address);
	if (p->last < p->rows.count)
		*until = min_u64(*until, p->rows.data[p->last].address);
	if (!p->last)
		return false;
	row = &p->rows.data[p->last - 1];
	if (row->ends)
		return false;
	*place = (struct dwarf_place){
		.file = file_of(s, p, row->file),
		.line = row->line,
		.column = row->column,
	};
	return true;
}
