/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and places: what a DIE is called, where it was defined, and where it was called from.
 *
 * An attribute may come from another DIE than the given one (the abstract origin, the declaration), and that from
 * another unit, even another file. A file is a number in the table of the unit that the attribute was found in, so
 * the two always travel together.
 */
#include "symbolize/dwarf_private.h"

#include <dwarf.h>

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

/* ---- places ---------------------------------------------------------------------------------- */

static uint32_t number_of(Dwarf_Attribute *attribute)
{
	Dwarf_Word value;

	if (!attribute || dwarf_formudata(attribute, &value) || value > INT32_MAX)
		return 0;
	return value;
}

static const char *file_of(struct dwarf_sources *sources, Dwarf_Attribute *attribute)
{
	Dwarf_Word number;

	if (!attribute || dwarf_formudata(attribute, &number))
		return NULL;
	return dwarf_sources__file(sources, attribute->cu, number);
}

static struct dwarf_place declaration_of(struct dwarf_sources *sources, struct site *s)
{
	return (struct dwarf_place){
		.file = file_of(sources, get(s, SITE_decl_file)),
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

static struct dwarf_place definition_of(struct dwarf_sources *sources, Dwarf_Die *die,
					struct site *s)
{
	struct dwarf_place place = declaration_of(sources, s);
	struct site of_class;
	Dwarf_Die class;

	/* gcc writes the place of a lambda, not of its operator(). */
	if (place.line || !class_of_member(die, &class))
		return place;
	read_site(&class, &of_class);
	return declaration_of(sources, &of_class);
}

struct dwarf_frame dwarf_describe(struct dwarf_sources *sources, Dwarf_Die *die,
				  struct dwarf_place *call)
{
	struct dwarf_place definition;
	struct site s;

	read_site(die, &s);
	definition = definition_of(sources, die, &s);
	*call = (struct dwarf_place){
		.file = file_of(sources, get(&s, SITE_call_file)),
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
