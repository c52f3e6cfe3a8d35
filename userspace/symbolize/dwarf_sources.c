/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source files and lines, from the line programs of units; and names, definitions and calls of
 * DIEs.
 *
 * An attribute may come from another DIE (the abstract origin, the declaration), of another unit or
 * even another file. A file is a number in the table of the unit in which the attribute was found,
 * so the two always travel together.
 */
#include "symbolize/dwarf_sources.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "base/strtab.h"
#include "symbolize/dwarf_image.h"
#include "symbolize/dwarf_lines.h"
#include "symbolize/dwarf_units.h"

#define ORIGINS_MAX 16 /* as libdw follows them */

/* ---- paths: joined with the directory of the compilation, normalised ------------------------- */

struct path {
	char *buffer;
	size_t size, length;
};

static int append_piece(struct path *p, const char *text, size_t length)
{
	if (length >= p->size - p->length)
		return -ENAMETOOLONG;
	memcpy(p->buffer + p->length, text, length);
	p->length += length;
	p->buffer[p->length] = '\0';
	return 0;
}

/* Back to before the last slash; the root has no parent. */
static void drop_component(struct path *p)
{
	while (p->length && p->buffer[p->length - 1] != '/')
		p->length--;
	if (p->length)
		p->length--;
	p->buffer[p->length] = '\0';
}

/* Add the components of `text` to an absolute path, each with a slash before it. */
static int append_components(struct path *p, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "/");
		int err;

		if (length == 2 && !memcmp(text, "..", 2)) {
			drop_component(p);
		} else if (length && !(length == 1 && *text == '.')) {
			err = append_piece(p, "/", 1) ?: append_piece(p, text, length);
			if (err)
				return err;
		}
		text += length;
		text += *text == '/';
	}
	return 0;
}

int source_path(const char *directory, const char *name, char *buffer, size_t size)
{
	struct path p = {.buffer = buffer, .size = size};
	int err = 0;

	buffer[0] = '\0';
	if (*name == '/')
		directory = NULL;
	if (*name == '/' || (directory && *directory == '/')) {
		if (directory)
			err = append_components(&p, directory);
		if (!err)
			err = append_components(&p, name);
		return err ? err : p.length ? 0 : append_piece(&p, "/", 1);
	}
	if (directory && *directory) {
		err = append_piece(&p, directory, strlen(directory)) ?: append_piece(&p, "/", 1);
	}
	return err ? err : append_piece(&p, name, strlen(name));
}

int dwarf_sources__init(struct dwarf_sources *s, const struct dwarf_image *image,
			uint64_t memory_limit)
{
	*s = (struct dwarf_sources){.image = image, .memory_limit = memory_limit};
	s->paths = strtab__new();
	return s->paths ? 0 : -ENOMEM;
}

void dwarf_sources__fini(struct dwarf_sources *s)
{
	for (size_t i = 0; i < s->programs.count; i++) {
		vec_free(&s->programs.data[i].rows);
		vec_free(&s->programs.data[i].files);
	}
	line_program_map__fini(&s->programs);
	strtab__free(s->paths);
	vec_free(&s->md5s);
}

/* ---- line programs --------------------------------------------------------------------------- */

/* The directory the unit was compiled in, or NULL. */
static const char *compilation_directory(Dwarf_CU *unit)
{
	Dwarf_Attribute attribute;
	Dwarf_Die unit_die;

	if (dwarf_cu_info(unit, NULL, NULL, &unit_die, NULL, NULL, NULL, NULL))
		return NULL;
	return dwarf_formstring(dwarf_attr_integrate(&unit_die, DW_AT_comp_dir, &attribute));
}

/* Of a split unit, or one of the dwz file: libdw reads them from that. */
static int copy_names(struct line_program *p, Dwarf_Die *unit_die)
{
	Dwarf_Files *files;
	size_t count;
	int err;

	if (dwarf_getsrcfiles(unit_die, &files, &count))
		return 0;
	err = vec_reserve(&p->files, count);
	for (size_t i = 0; i < count && !err; i++) {
		const char *name = dwarf_filesrc(files, i, NULL, NULL);

		/* "???" is libdw's name of number 0 before DWARF 5: there is none */
		if (!name || !strcmp(name, "???"))
			name = "";
		err = vec_push(&p->files, (struct line_file){NULL, name, NULL, NULL});
	}
	return err;
}

/*
 * What is available; rows only of units of the file itself, and only if needed: units of types,
 * made by dwz, have another unit's line program.
 */
static void read_program(struct dwarf_sources *s, struct line_program *p, bool rows)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	Dwarf_Die unit_die;
	int err = 0;

	if (dwarf_cu_info(p->unit, NULL, NULL, &unit_die, NULL, NULL, NULL, NULL))
		return;
	if (dwarf_cu_getdwarf(p->unit) != s->image->dwarf)
		err = p->files.count ? 0 : copy_names(p, &unit_die);
	else if (!dwarf_formudata(dwarf_attr_integrate(&unit_die, DW_AT_stmt_list, &attribute),
				  &offset))
		err = line_program__read(p, s->image->image, offset, compilation_directory(p->unit),
					 rows, s->memory_limit);
	if (err)
		p->rows.count = p->files.count = 0; /* a part of them would be wrong */
	s->left |= err == -EFBIG;
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

static const char *file_of(struct dwarf_sources *s, const struct line_program *p, uint64_t number)
{
	char joined[SOURCE_PATH_SIZE], path[SOURCE_PATH_SIZE];
	struct line_file *file;
	const char *name;
	int64_t place;

	if (number >= p->files.count)
		return NULL;
	file = &p->files.data[number];
	if (file->path)
		return file->path;
	name = file->name;
	if (*name && *name != '/' && file->directory) {
		if (snprintf(joined, sizeof(joined), "%s/%s", file->directory, name) >=
		    (int)sizeof(joined))
			return NULL;
		name = joined;
	}
	if (!*name || source_path(compilation_directory(p->unit), name, path, sizeof(path)))
		return NULL;
	place = strtab__intern(s->paths, path);
	file->path = place < 0 ? NULL : strtab__get(s->paths, (uint32_t)place);
	if (place >= 0 && file->md5) {
		const unsigned char **known = vec_at(&s->md5s, (size_t)place);

		if (known)
			*known = file->md5;
	}
	return file->path;
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

struct site {
	Dwarf_Attribute attributes[SITE_COUNT];
	uint32_t found; /* bits */
};

static Dwarf_Attribute *get(struct site *s, enum site_attribute number)
{
	return s->found & 1U << number ? &s->attributes[number] : NULL;
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
	if (!get(s, number))
		s->attributes[number] = *attribute;
	s->found |= 1U << number;
	return DWARF_CB_OK;
}

/* As dwarf_attr_integrate(), for all attributes of a DIE and its origins; each DIE is read once. */
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

/* ---- places ---------------------------------------------------------------------------------- */

static uint32_t number_of(Dwarf_Attribute *attribute)
{
	Dwarf_Word value;

	if (!attribute || dwarf_formudata(attribute, &value) || value > INT32_MAX)
		return 0;
	return value;
}

/* By the attributes for a file, its line and its column, which follow one another. */
static struct dwarf_place place_of(struct dwarf_sources *sources, struct site *s,
				   enum site_attribute file)
{
	Dwarf_Attribute *attribute = get(s, file);
	struct dwarf_place place = {.line = number_of(get(s, file + 1)),
				    .column = number_of(get(s, file + 2))};
	const struct line_program *p;
	Dwarf_Word number;

	if (!attribute || dwarf_formudata(attribute, &number))
		return place;
	p = program_of(sources, attribute->cu, false);
	if (p)
		place.file = file_of(sources, p, number);
	return place;
}

/* The DIE that an attribute of this DIE or of its origins refers to. */
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

static struct dwarf_place definition_of(struct dwarf_sources *sources, Dwarf_Die *die,
					struct site *s)
{
	struct dwarf_place place = place_of(sources, s, SITE_decl_file);
	struct site of_class;
	Dwarf_Die class;

	/* gcc writes the place of a lambda, not of its operator(). */
	if (place.line || !class_of_member(die, &class))
		return place;
	read_site(&class, &of_class);
	return place_of(sources, &of_class, SITE_decl_file);
}

struct dwarf_frame dwarf_describe(struct dwarf_sources *sources, Dwarf_Die *die,
				  struct dwarf_place *call)
{
	struct dwarf_place definition;
	struct site s;

	read_site(die, &s);
	definition = definition_of(sources, die, &s);
	*call = place_of(sources, &s, SITE_call_file);
	return (struct dwarf_frame){
		.name = dwarf_formstring(get(&s, SITE_name)),
		.linkage = linkage_name(&s),
		.where = {.function_address = PROFILE_UNKNOWN_ADDRESS,
			  .definition_file = definition.file,
			  .definition_line = definition.line,
			  .definition_column = definition.column},
	};
}

const unsigned char *dwarf_sources__md5(struct dwarf_sources *s, const char *path)
{
	int64_t place = strtab__intern(s->paths, path);

	return place >= 0 && (size_t)place < s->md5s.count ? s->md5s.data[place] : NULL;
}
