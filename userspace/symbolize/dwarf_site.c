/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and places: what a DIE is called, where it was defined, where it was called from, and which
 * line is executed at an address.
 *
 * An attribute may come from another DIE than the given one (the abstract origin, the declaration), and that from
 * another unit, even another file. A file is a number in the table of the unit that the attribute was found in, so
 * the two always travel together.
 */
#include "symbolize/dwarf_private.h"

#include <dwarf.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "symbolize/module_private.h"

const char *dwarf_linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name;

	if (!dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) &&
	    !dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		return NULL;
	name = dwarf_formstring(&attribute);
	return name && *name ? name : NULL;
}

/* The directory the unit was compiled in, or NULL. */
static const char *compilation_directory(Dwarf_Die *unit_die)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(unit_die, DW_AT_comp_dir, &attribute));
}

/* libdw's name of a file, which lies at one place as long as libdw does, to the whole path. */
static const char *whole_path(struct memo *paths, Dwarf_Die *unit_die, const char *name)
{
	char path[SOURCE_PATH_SIZE];
	const char *known;

	if (!name || !*name || !strcmp(name, "???"))
		return NULL;
	known = memo__get(paths, name);
	if (known)
		return known;
	if (source_path(compilation_directory(unit_die), name, path, sizeof(path)))
		return NULL;
	return memo__put(paths, name, path);
}

static const char *file_of_unit(struct memo *paths, Dwarf_CU *unit, Dwarf_Word number)
{
	Dwarf_Die unit_die;
	Dwarf_Files *files;
	Dwarf_Half version;
	size_t count;

	if (dwarf_cu_info(unit, &version, NULL, &unit_die, NULL, NULL, NULL, NULL) ||
	    dwarf_getsrcfiles(&unit_die, &files, &count) || number >= count)
		return NULL;
	/* Before DWARF 5 number 0 means that there is none. */
	if (!number && version < 5)
		return NULL;
	return whole_path(paths, &unit_die, dwarf_filesrc(files, number, NULL, NULL));
}

static uint32_t number_of(Dwarf_Attribute *attribute)
{
	Dwarf_Word value;

	if (!attribute || dwarf_formudata(attribute, &value) || value > INT32_MAX)
		return 0;
	return value;
}

static const char *file_of(struct memo *paths, Dwarf_Attribute *attribute)
{
	Dwarf_Word number;

	if (!attribute || dwarf_formudata(attribute, &number))
		return NULL;
	return file_of_unit(paths, attribute->cu, number);
}

static struct dwarf_place declaration_of(struct memo *paths, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	return (struct dwarf_place){
		.file = file_of(paths, dwarf_attr_integrate(die, DW_AT_decl_file, &attribute)),
		.line = number_of(dwarf_attr_integrate(die, DW_AT_decl_line, &attribute)),
		.column = number_of(dwarf_attr_integrate(die, DW_AT_decl_column, &attribute)),
	};
}

/* The DIE that an attribute refers to, of this DIE or of what it comes from. */
static bool follow_reference(Dwarf_Die *die, unsigned int code, Dwarf_Die *target)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(dwarf_attr_integrate(die, code, &attribute), target) != NULL;
}

/* The class whose member a function is, by the type of its `this`. */
static bool class_of_member(Dwarf_Die *die, Dwarf_Die *class)
{
	Dwarf_Die self, type;

	return follow_reference(die, DW_AT_object_pointer, &self) &&
	       follow_reference(&self, DW_AT_type, &type) && !dwarf_peel_type(&type, &type) &&
	       dwarf_tag(&type) == DW_TAG_pointer_type &&
	       follow_reference(&type, DW_AT_type, &type) && !dwarf_peel_type(&type, class);
}

struct dwarf_place dwarf_definition(struct memo *paths, Dwarf_Die *die)
{
	struct dwarf_place place = declaration_of(paths, die);
	Dwarf_Die class;

	/* gcc writes the place of a lambda, not of its operator(). */
	if (!place.line && class_of_member(die, &class))
		place = declaration_of(paths, &class);
	return place;
}

struct dwarf_place dwarf_call_site(struct memo *paths, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	return (struct dwarf_place){
		.file = file_of(paths, dwarf_attr(die, DW_AT_call_file, &attribute)),
		.line = number_of(dwarf_attr(die, DW_AT_call_line, &attribute)),
		.column = number_of(dwarf_attr(die, DW_AT_call_column, &attribute)),
	};
}

static uint64_t address_of(const struct dwarf_lines *lines, size_t number)
{
	Dwarf_Addr address = UINT64_MAX;

	dwarf_lineaddr(dwarf_onesrcline(lines->rows, number), &address);
	return address;
}

/* Rows with one file come one after the other. */
static const char *file_of_row(struct memo *paths, struct dwarf_unit *unit, Dwarf_Line *row)
{
	struct dwarf_lines *lines = &unit->lines;
	const char *name = dwarf_linesrc(row, NULL, NULL);

	if (name != lines->name)
		lines->path = whole_path(paths, &unit->die, name);
	lines->name = name;
	return lines->path;
}

bool dwarf_executing_line(struct memo *paths, struct dwarf_unit *unit, uint64_t address,
			  struct dwarf_place *place, uint64_t *until)
{
	struct dwarf_lines *lines = &unit->lines;
	Dwarf_Line *row;
	int line, column;
	bool ends;

	lines->last = ascending_point(lines->count, lines->last, i,
				      address_of(lines, i) <= address);
	if (lines->last < lines->count)
		*until = min_u64(*until, address_of(lines, lines->last));
	row = lines->last ? dwarf_onesrcline(lines->rows, lines->last - 1) : NULL;
	if (!row || dwarf_lineendsequence(row, &ends) || ends)
		return false;
	*place = (struct dwarf_place){
		.file = file_of_row(paths, unit, row),
		.line = !dwarf_lineno(row, &line) && line > 0 ? line : 0,
		.column = !dwarf_linecol(row, &column) && column > 0 ? column : 0,
	};
	return true;
}
