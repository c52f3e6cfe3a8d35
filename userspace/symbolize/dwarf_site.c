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

/* ---- attributes ------------------------------------------------------------------------------ */

/* X(attribute) */
#define SITE_ATTRIBUTES(X)                                                                         \
	X(name)                                                                                    \
	X(linkage_name)                                                                            \
	X(MIPS_linkage_name)                                                                       \
	X(decl_file)                                                                               \
	X(decl_line)                                                                               \
	X(decl_column)                                                                             \
	X(call_file)                                                                               \
	X(call_line)                                                                               \
	X(call_column)                                                                             \
	X(abstract_origin)                                                                         \
	X(specification)

enum site_attribute {
#define X(name) SITE_##name,
	SITE_ATTRIBUTES(X)
#undef X
		SITE_COUNT
};

#define ORIGINS_MAX 16 /* as libdw follows them */

struct site {
	Dwarf_Attribute attributes[SITE_COUNT];
	uint32_t found; /* bits */
};

static bool has(const struct site *s, enum site_attribute number)
{
	return s->found & 1U << number;
}

static int take_attribute(Dwarf_Attribute *attribute, void *context)
{
	struct site *s = context;
	enum site_attribute number;

	switch (attribute->code) {
#define X(name)                                                                                    \
	case DW_AT_##name:                                                                         \
		number = SITE_##name;                                                              \
		break;
		SITE_ATTRIBUTES(X)
#undef X
	default:
		return DWARF_CB_OK;
	}
	if (!has(s, number))
		s->attributes[number] = *attribute;
	s->found |= 1U << number;
	return DWARF_CB_OK;
}

static Dwarf_Attribute *get(struct site *s, enum site_attribute number)
{
	return has(s, number) ? &s->attributes[number] : NULL;
}

/*
 * What dwarf_attr_integrate() finds of a DIE: its attributes, and those of what it comes from. Each DIE is read once
 * for all of them.
 */
static void read_site(Dwarf_Die *die, struct site *s)
{
	const uint32_t of_call = 1U << SITE_call_file | 1U << SITE_call_line |
				 1U << SITE_call_column;
	const uint32_t origins = 1U << SITE_abstract_origin | 1U << SITE_specification;
	uint32_t found_at_first;
	Dwarf_Die at = *die;

	s->found = 0;
	dwarf_getattrs(&at, take_attribute, s, 0);
	found_at_first = s->found & of_call;
	for (int i = 0; i < ORIGINS_MAX; i++) {
		Dwarf_Attribute *origin = get(s, SITE_abstract_origin)
						  ?: get(s, SITE_specification);

		if (!dwarf_formref_die(origin, &at))
			break;
		s->found &= ~origins;
		dwarf_getattrs(&at, take_attribute, s, 0);
	}
	s->found = (s->found & ~of_call) | found_at_first;
}

static const char *linkage_name(struct site *s)
{
	const char *name = dwarf_formstring(get(s, SITE_linkage_name)
						    ?: get(s, SITE_MIPS_linkage_name));

	return name && *name ? name : NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

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

static struct dwarf_place declaration_of(struct memo *paths, struct site *s)
{
	return (struct dwarf_place){
		.file = file_of(paths, get(s, SITE_decl_file)),
		.line = number_of(get(s, SITE_decl_line)),
		.column = number_of(get(s, SITE_decl_column)),
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

static struct dwarf_place definition_of(struct memo *paths, Dwarf_Die *die, struct site *s)
{
	struct dwarf_place place = declaration_of(paths, s);
	struct site of_class;
	Dwarf_Die class;

	/* gcc writes the place of a lambda, not of its operator(). */
	if (place.line || !class_of_member(die, &class))
		return place;
	read_site(&class, &of_class);
	return declaration_of(paths, &of_class);
}

struct dwarf_frame dwarf_describe(struct memo *paths, Dwarf_Die *die, struct dwarf_place *call)
{
	struct dwarf_place definition;
	struct site s;

	read_site(die, &s);
	definition = definition_of(paths, die, &s);
	*call = (struct dwarf_place){
		.file = file_of(paths, get(&s, SITE_call_file)),
		.line = number_of(get(&s, SITE_call_line)),
		.column = number_of(get(&s, SITE_call_column)),
	};
	return (struct dwarf_frame){
		.name = dwarf_formstring(get(&s, SITE_name)),
		.linkage = linkage_name(&s),
		.where = {.function_address = PROFILE_UNKNOWN_ADDRESS,
			  .definition_file = definition.file,
			  .definition_line = definition.line,
			  .definition_column = definition.column},
	};
}

/* ---- lines ----------------------------------------------------------------------------------- */

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
