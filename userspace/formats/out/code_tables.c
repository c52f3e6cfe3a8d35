/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers for code and strings, allocated in order of first use and described later. */
#include "formats/out/code_tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "base/strtab.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "formats/out/waits.h"
#include "profile/profile.h"

#define NOT_SAMPLED "[not sampled]"
#define TRUNCATED   "[truncated]"
#define PAGE_MASK   4095u

struct mapping_row {
	struct dso_id dso;
	bool named, has_filenames, has_line_numbers, has_inline_frames;
	uint64_t lowest, highest; /* addresses of its locations */
};

struct dso_facts {
	bool is_named;		/* a location of it has a name from a symbol */
	bool has_addresses;	/* of the ELF file, for a location of it */
	uint64_t address_delta; /* such an address less the offset in the file, modulo 2^64 */
};

/* A function with its lines in one file; or, without a function, the name of a location. */
struct function_row {
	struct function_id function;
	struct string_id file;
	uint32_t location;
};

DEFINE_MAP_OF_BYTES(function_rows, struct function_row);

struct code_tables {
	const struct profile *p;
	struct code_options options;
	int error;
	struct strtab *strings;
	uint32_t *string_number;	  /* by string of the profile; 0: none yet, or "" */
	VEC(uint32_t) used_strings;	  /* of the profile: those that have a number */
	uint32_t *location_number;	  /* by location, and by made_up(); 0: none yet */
	VEC(uint32_t) locations;	  /* by number - 1; 0: NOT_SAMPLED */
	uint32_t *mapping_number;	  /* by 2 × dso + whether it is named; 0: none yet */
	struct dso_facts *dsos;		  /* by dso */
	VEC(struct mapping_row) mappings; /* by number - 1 */
	struct function_rows functions;	  /* by number - 1 */
	VEC(struct code_line) lines;	  /* of the location that was described last */
};

static void note_error(struct code_tables *t, int err)
{
	if (!t->error)
		t->error = err;
}

static void describe_dsos(struct code_tables *t)
{
	const struct profile *p = t->p;

	for (size_t i = 1; i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		struct dso_facts *dso = &t->dsos[l->dso.v];

		if (!dso->is_named)
			dso->is_named = !l->unnamed;
		if (dso->has_addresses || l->elf_address == PROFILE_UNKNOWN_ADDRESS)
			continue;
		dso->has_addresses = true;
		dso->address_delta = l->elf_address - l->address;
	}
}

struct code_tables *code_tables__new(const struct profile *p, const struct code_options *options)
{
	struct code_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->p = p;
	t->options = *options;
	t->strings = strtab__new();
	t->string_number = calloc(p->string_count + 1, sizeof(*t->string_number));
	t->location_number = calloc(p->location_count + WALL_STATE_COUNT,
				    sizeof(*t->location_number));
	t->mapping_number = calloc(2 * (p->dso_count + 1), sizeof(*t->mapping_number));
	t->dsos = calloc(p->dso_count + 1, sizeof(*t->dsos));
	if (!t->strings || !t->string_number || !t->location_number || !t->mapping_number ||
	    !t->dsos) {
		code_tables__free(t);
		return NULL;
	}
	describe_dsos(t);
	return t;
}

void code_tables__free(struct code_tables *t)
{
	if (!t)
		return;
	strtab__free(t->strings);
	free(t->string_number);
	vec_free(&t->used_strings);
	free(t->location_number);
	vec_free(&t->locations);
	free(t->mapping_number);
	free(t->dsos);
	vec_free(&t->mappings);
	function_rows__fini(&t->functions);
	vec_free(&t->lines);
	free(t);
}

int code_tables__reset(struct code_tables *t)
{
	struct strtab *strings = strtab__new();

	if (!strings)
		return -ENOMEM;
	strtab__free(t->strings);
	t->strings = strings;
	for (size_t i = 0; i < t->used_strings.count; i++)
		t->string_number[t->used_strings.data[i]] = 0;
	for (size_t i = 0; i < t->locations.count; i++)
		t->location_number[t->locations.data[i]] = 0;
	for (size_t i = 0; i < t->mappings.count; i++) {
		const struct mapping_row *row = &t->mappings.data[i];

		t->mapping_number[2 * row->dso.v + row->named] = 0;
	}
	t->used_strings.count = t->locations.count = 0;
	t->mappings.count = 0;
	function_rows__clear(&t->functions);
	t->error = 0;
	return 0;
}

int code_tables__error(const struct code_tables *t)
{
	return t->error;
}

/* ---- strings --------------------------------------------------------------------------------- */

uint32_t code_tables__text(struct code_tables *t, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	_cleanup_free_ char *clean = NULL;
	int64_t number = -ENOMEM;

	if (t->options.text_max)
		size = min_u64(size, t->options.text_max + 1);
	clean = malloc(size);
	if (clean) {
		utf8_sanitize(clean, size, text);
		number = strtab__intern(t->strings, clean);
	}
	if (number < 0) {
		note_error(t, (int)number);
		return 0;
	}
	return (uint32_t)number;
}

uint32_t code_tables__string(struct code_tables *t, struct string_id string)
{
	uint32_t *number = &t->string_number[string.v];

	if (*number || !string.v)
		return *number;
	*number = code_tables__text(t, profile__string(t->p, string));
	if (*number && vec_push(&t->used_strings, string.v))
		note_error(t, -ENOMEM);
	return *number;
}

const char *const *code_tables__strings(const struct code_tables *t, size_t *count)
{
	*count = strtab__count(t->strings);
	return strtab__array(t->strings);
}

/* ---- functions ------------------------------------------------------------------------------- */

static uint32_t function_number(struct code_tables *t, const struct function_row *function)
{
	const struct function_row *known = function_rows__need(&t->functions, function, NULL);

	if (known)
		return (uint32_t)(known - t->functions.data) + 1;
	note_error(t, -ENOMEM);
	return 0;
}

size_t code_tables__function_count(const struct code_tables *t)
{
	return t->functions.count;
}

/* Numbers after the profile's locations: waits by state, and TRUNCATED (WALL_NONE). */
static uint32_t made_up(const struct code_tables *t, enum wall_state state)
{
	return (uint32_t)t->p->location_count + state;
}

static bool is_made_up(const struct code_tables *t, uint32_t location)
{
	return !location || location >= t->p->location_count;
}

static const char *made_up_name(const struct code_tables *t, uint32_t location)
{
	if (!location)
		return NOT_SAMPLED;
	return location == made_up(t, WALL_NONE)
		       ? TRUNCATED
		       : wait_leaf((enum wall_state)(location - t->p->location_count));
}

/* "libfoo.so+0x1234", by the address in the ELF file if known. */
static uint32_t name_of_place(struct code_tables *t, uint32_t location)
{
	const struct profile_location *l = &t->p->locations[location];
	const char *dso = dso_display_name(t->p, l->dso);
	bool is_known = l->elf_address != PROFILE_UNKNOWN_ADDRESS;
	uint64_t delta = t->dsos[l->dso.v].address_delta;
	_cleanup_free_ char *name = NULL;

	if (asprintf(&name, "%s+0x%" PRIx64, dso, is_known ? l->elf_address : l->address + delta) <
	    0) {
		name = NULL;
		note_error(t, -ENOMEM);
		return 0;
	}
	return code_tables__text(t, name);
}

static uint32_t function_name(struct code_tables *t, const struct function_row *row)
{
	uint32_t name;

	if (row->function.v)
		name = code_tables__string(t, t->p->functions[row->function.v].name);
	else if (is_made_up(t, row->location))
		name = code_tables__text(t, made_up_name(t, row->location));
	else
		name = name_of_place(t, row->location);
	if (!name && t->options.split_unnamed) /* backends lose a frame without a name */
		name = code_tables__text(t, "[unknown]");
	return name;
}

void code_tables__number_names(struct code_tables *t)
{
	for (size_t i = 0; i < t->functions.count; i++)
		function_name(t, &t->functions.data[i]);
}

struct code_function code_tables__describe_function(struct code_tables *t, uint32_t number)
{
	const struct function_row *row = &t->functions.data[number - 1];
	const struct profile_function *f = &t->p->functions[row->function.v];
	struct code_function out = {.name = function_name(t, row)};

	out.full_name = code_tables__string(t, f->full_name);
	out.filename = code_tables__string(t, row->file);
	if (row->file.v && row->file.v == f->definition_file.v) /* not text that was evaluated */
		out.start_line = f->definition_line;
	return out;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static bool has_mapping(const struct code_tables *t, const struct profile_dso *dso)
{
	return t->options.map_all || dso_has_path(dso) || dso->kind == DSO_VDSO ||
	       dso->kind == DSO_KERNEL;
}

/* Another tool may know the symbols; the build id shows whether it has the right file. */
static bool may_be_named_elsewhere(const struct profile_dso *dso)
{
	return dso->kind == DSO_FILE && dso->build_id_size;
}

static uint32_t mapping_number(struct code_tables *t, struct dso_id id, bool named)
{
	uint32_t *number = &t->mapping_number[2 * id.v + named];
	struct mapping_row row = {.dso = id, .named = named, .lowest = UINT64_MAX};

	if (!has_mapping(t, &t->p->dsos[id.v]))
		return 0;
	if (!*number) {
		if (vec_push(&t->mappings, row)) {
			note_error(t, -ENOMEM);
			return 0;
		}
		*number = (uint32_t)t->mappings.count;
	}
	return *number;
}

/* Is this file's only mapping one with names? */
static bool file_is_named(const struct code_tables *t, struct dso_id id)
{
	return t->dsos[id.v].is_named || !may_be_named_elsewhere(&t->p->dsos[id.v]);
}

uint32_t code_tables__mapping(struct code_tables *t, struct dso_id id)
{
	return mapping_number(t, id, t->options.split_unnamed || file_is_named(t, id));
}

size_t code_tables__mapping_count(const struct code_tables *t)
{
	return t->mappings.count;
}

static uint32_t build_id_text(struct code_tables *t, const struct profile_dso *dso)
{
	char text[2 * BUILD_ID_SIZE + 1];

	put_hex_bytes(text, dso->build_id, min_u64(dso->build_id_size, BUILD_ID_SIZE));
	return code_tables__text(t, text);
}

/* Are its addresses file offsets? If no location has a name, program headers were not seen. */
static bool has_offsets(const struct code_tables *t, const struct mapping_row *row)
{
	return !row->named && !t->options.split_unnamed;
}

struct code_mapping code_tables__describe_mapping(struct code_tables *t, uint32_t number)
{
	const struct mapping_row *row = &t->mappings.data[number - 1];
	const struct profile_dso *dso = &t->p->dsos[row->dso.v];
	uint64_t delta = t->dsos[row->dso.v].address_delta;
	bool is_used = row->lowest <= row->highest;
	struct code_mapping out = {
		.dso = row->dso,
		.start = is_used ? row->lowest & ~(uint64_t)PAGE_MASK : 0,
		.limit = saturating_add_u64(row->highest | PAGE_MASK, 1),
		.has_functions = row->named,
		.has_filenames = row->has_filenames,
		.has_line_numbers = row->has_line_numbers,
		.has_inline_frames = row->has_inline_frames,
	};

	if (has_offsets(t, row))
		out.start = 0; /* the offset itself */
	else if (dso->kind != DSO_KERNEL && delta <= out.start)
		out.file_offset = out.start - delta;
	out.filename = dso_has_path(dso) ? code_tables__string(t, dso->path)
					 : code_tables__text(t, dso_display_name(t->p, row->dso));
	out.build_id = build_id_text(t, dso);
	return out;
}

/* ---- locations ------------------------------------------------------------------------------- */

static uint32_t location_number(struct code_tables *t, uint32_t id)
{
	uint32_t *number = &t->location_number[id];

	if (!*number) {
		if (vec_push(&t->locations, id))
			note_error(t, -ENOMEM);
		*number = (uint32_t)t->locations.count;
	}
	return *number;
}

uint32_t code_tables__location(struct code_tables *t, struct location_id id)
{
	return location_number(t, t->options.merged ? t->options.merged[id.v] : id.v);
}

uint32_t code_tables__truncated(struct code_tables *t)
{
	return location_number(t, made_up(t, WALL_NONE));
}

uint32_t code_tables__waiting(struct code_tables *t, enum wall_state state)
{
	return location_number(t, made_up(t, state));
}

size_t code_tables__location_count(const struct code_tables *t)
{
	return t->locations.count;
}

static bool has_address(const struct code_tables *t, const struct profile_location *l)
{
	return l->elf_address != PROFILE_UNKNOWN_ADDRESS || t->dsos[l->dso.v].has_addresses;
}

/* Do other tools name it? They need its address in a file that they can find. */
static bool goes_unnamed(const struct code_tables *t, const struct profile_location *l)
{
	if (!t->options.split_unnamed)
		return !file_is_named(t, l->dso);
	return l->unnamed && !t->options.name_all && has_address(t, l) &&
	       may_be_named_elsewhere(&t->p->dsos[l->dso.v]);
}

/* Not for JIT code and the kernel: their addresses mean nothing elsewhere, and differ each time. */
static bool is_named_by_place(const struct code_tables *t, const struct profile_location *l)
{
	enum dso_kind kind = t->p->dsos[l->dso.v].kind;

	return t->options.split_unnamed && l->unnamed && (kind == DSO_FILE || kind == DSO_VDSO);
}

/* A location's address in its mapping, which has to cover it. */
static uint64_t place_in_mapping(const struct code_tables *t, struct mapping_row *row,
				 const struct profile_location *l)
{
	uint64_t address = l->address;

	if (row->named && t->options.no_addresses)
		address = 0;
	else if (!has_offsets(t, row) && l->elf_address != PROFILE_UNKNOWN_ADDRESS)
		address = l->elf_address;
	else if (!has_offsets(t, row))
		address += t->dsos[row->dso.v].address_delta;
	row->lowest = min_u64(row->lowest, address);
	row->highest = max_u64(row->highest, address);
	return address;
}

static void add_line(struct code_tables *t, const struct function_row *function,
		     const struct profile_line *line, struct mapping_row *mapping)
{
	const struct code_line out = {
		.function = function_number(t, function),
		.line = line->line,
		.column = t->options.merged ? 0 : line->column,
	};

	if (vec_push(&t->lines, out))
		return note_error(t, -ENOMEM);
	if (mapping) {
		mapping->has_filenames |= function->file.v != 0;
		mapping->has_line_numbers |= line->line != 0;
	}
}

/* A line has no file of its own, so its function is one of that file. */
static void add_lines(struct code_tables *t, const struct profile_location *l,
		      struct mapping_row *mapping)
{
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *line = &t->p->lines[l->first_line + i];
		const struct profile_function *f = &t->p->functions[line->function.v];
		const struct function_row row = {line->function,
						 line->file.v ? line->file : f->definition_file, 0};

		add_line(t, &row, line, mapping);
	}
}

struct code_location code_tables__describe_location(struct code_tables *t, uint32_t number)
{
	static const struct profile_line no_line;
	uint32_t id = t->locations.data[number - 1];
	bool made = is_made_up(t, id);
	const struct profile_location *l = &t->p->locations[made ? 0 : id];
	bool unnamed = !made && goes_unnamed(t, l);
	struct mapping_row *mapping = NULL;
	struct code_location out = {
		.mapping = mapping_number(t, l->dso, !unnamed),
		.address = l->address,
	};

	if (out.mapping) {
		mapping = &t->mappings.data[out.mapping - 1];
		mapping->has_inline_frames |= l->line_count > 1;
		out.address = place_in_mapping(t, mapping, l);
	}
	t->lines.count = 0;
	if (made || (!unnamed && is_named_by_place(t, l)))
		add_line(t, &(struct function_row){.location = id}, &no_line, mapping);
	else if (!unnamed)
		add_lines(t, l, mapping);
	out.lines = t->lines.data;
	out.line_count = t->lines.count;
	return out;
}
