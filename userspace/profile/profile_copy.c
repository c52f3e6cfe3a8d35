/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_builder_private.h"
#include "profile/profile_code_private.h"

MAP_FUNCTIONS_OF_BYTES(copied_lines, struct copied_line);
MAP_FUNCTIONS_BY_BYTES(copied_places, struct placed, struct copied_place, place);
MAP_FUNCTIONS_BY_BYTES(copied_addresses, struct placed_address, struct copied_address, address);

static uint64_t hash_jit_code(const struct copied_jit_code *code)
{
	return hash_combine(
		hash_combine(hash_u64(code->address), (uint64_t)code->process << 32 | code->size),
		hash_bytes(code->bytes, code->size));
}

static bool same_jit_code(const struct copied_jit_code *a, const struct copied_jit_code *b)
{
	return a->dso == b->dso && a->process == b->process && a->address == b->address &&
	       a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

MAP_FUNCTIONS_OF(copied_jit_codes, struct copied_jit_code, hash_jit_code, same_jit_code);

_Static_assert(sizeof(struct copied_line) == 20, "padding would be in the key");
_Static_assert(sizeof(struct copied_place) == 40, "padding would be in the key");
_Static_assert(sizeof(struct copied_address) == 16, "padding would be in the key");

void copied_code__fini(struct copied_code *code)
{
	copied_lines__fini(&code->lines);
	copied_places__fini(&code->places);
	copied_addresses__fini(&code->addresses);
	copied_jit_codes__fini(&code->jit_codes);
}

static uint32_t *numbers(size_t count)
{
	return calloc(count + 1, sizeof(uint32_t));
}

struct string_id profile_copy__string(struct profile_copy *c, struct string_id id)
{
	uint32_t *number = &c->strings[id.v];

	if (id.v && !*number)
		*number = profile_builder__string(c->b, profile__string(c->p, id)).v;
	return (struct string_id){*number};
}

/* ---- roots of sources ------------------------------------------------------------------------ */

static bool same_text(const struct profile_source *a, const struct profile_source *b)
{
	return a->size == b->size && !memcmp(a->text, b->text, a->size);
}

/* As the builder has it; NULL: it does not. */
static const struct profile_dso *find_dso(struct profile_copy *c, const struct profile_dso *from)
{
	struct profile_dso dso = *from;

	dso.path = profile_copy__string(c, dso.path);
	dso.name = profile_copy__string(c, dso.name);
	return builder_find_dso(c->b, &dso);
}

/* A root with a program that the builder has is taken for that program's root there. */
static void match_roots(struct profile_copy *c)
{
	bool is_taken[SOURCE_ROOTS] = {};

	memset(c->roots, SOURCE_ROOT_NONE, SOURCE_ROOT_LAST + 1);
	c->roots[SOURCE_ROOT_SCRIPTS] = SOURCE_ROOT_SCRIPTS;
	c->roots[SOURCE_ROOT_NONE] = SOURCE_ROOT_NONE;
	c->roots[SOURCE_ROOT_ALL] = SOURCE_ROOT_ALL;
	for (size_t i = 1; i < c->p->dso_count; i++) {
		const struct profile_dso *from = &c->p->dsos[i], *known;

		if (from->kind != DSO_FILE || c->roots[from->source_root] != SOURCE_ROOT_NONE)
			continue;
		known = find_dso(c, from);
		if (!known || is_taken[known->source_root])
			continue;
		c->roots[from->source_root] = known->source_root;
		is_taken[known->source_root] = true;
	}
}

/*
 * In another profile a number means another root, which may be of another host. It is the same if a
 * program is in both and no path has two texts. Roots without texts have no number: the text of another
 * one is not theirs. So have those beyond the last number.
 */
static void map_roots(struct profile_copy *c)
{
	bool has_text[SOURCE_ROOTS] = {}, is_apart[SOURCE_ROOTS] = {};
	unsigned int next = builder_next_source_root(c->b);

	match_roots(c);
	for (size_t i = 0; i < c->p->source_count; i++) {
		struct profile_source source = c->p->sources[i];
		const uint8_t root = source.root;
		struct profile_source *known;

		source.root = c->roots[root];
		source.path = profile_copy__string(c, source.path);
		known = root <= SOURCE_ROOT_LAST ? builder_find_source(c->b, &source) : NULL;
		has_text[root] = true;
		if (!known || same_text(known, &source))
			continue;
		known->state = SOURCE_CHANGED;
		is_apart[root] = true;
	}
	for (unsigned int r = 0; r <= SOURCE_ROOT_LAST; r++) {
		if (!has_text[r])
			c->roots[r] = SOURCE_ROOT_NONE;
		else if (is_apart[r] || c->roots[r] == SOURCE_ROOT_NONE)
			c->roots[r] = next <= SOURCE_ROOT_LAST ? next++ : SOURCE_ROOT_NONE;
	}
}

/* ---- the tables ------------------------------------------------------------------------------ */

int profile_copy__init(struct profile_copy *c, const struct profile *p, struct profile_builder *b,
		       struct copied_code *code)
{
	*c = (struct profile_copy){
		.p = p,
		.b = b,
		.code = code,
		.strings = numbers(p->string_count),
		.dsos = numbers(p->dso_count),
		.functions = numbers(p->function_count),
		.locations = numbers(p->location_count),
		.stacks = numbers(p->stack_count),
		.processes = numbers(p->process_count),
	};
	if (!c->strings || !c->dsos || !c->functions || !c->locations || !c->stacks ||
	    !c->processes)
		return -ENOMEM;
	map_roots(c);
	return 0;
}

void profile_copy__fini(struct profile_copy *c)
{
	free(c->strings);
	free(c->dsos);
	free(c->functions);
	free(c->locations);
	free(c->stacks);
	free(c->processes);
	vec_free(&c->path);
}

static struct dso_id copy_dso(struct profile_copy *c, struct dso_id id)
{
	uint32_t *number = &c->dsos[id.v];
	struct profile_dso dso = c->p->dsos[id.v];

	if (!id.v || *number)
		return (struct dso_id){*number};
	dso.path = profile_copy__string(c, dso.path);
	dso.name = profile_copy__string(c, dso.name);
	dso.source_root = c->roots[dso.source_root];
	*number = profile_builder__dso(c->b, &dso).v;
	if (profile_builder__get_dso(c->b, (struct dso_id){*number})->source_root ==
	    SOURCE_ROOT_NONE)
		profile_builder__source_root(c->b, (struct dso_id){*number}, dso.source_root);
	/* one profile with symbols is enough for "it has some" */
	if (dso.symbol_state == SYMBOL_STATE_RESOLVED)
		profile_builder__dso_state(c->b, (struct dso_id){*number}, dso.symbol_state);
	return (struct dso_id){*number};
}

static struct function_id copy_function(struct profile_copy *c, struct function_id id)
{
	uint32_t *number = &c->functions[id.v];
	struct profile_function function = c->p->functions[id.v];

	if (*number)
		return (struct function_id){*number};
	function.name = profile_copy__string(c, function.name);
	function.full_name = profile_copy__string(c, function.full_name);
	function.definition_file = profile_copy__string(c, function.definition_file);
	function.dso = copy_dso(c, function.dso);
	*number = profile_builder__function(c->b, &function).v;
	return (struct function_id){*number};
}

/* The number of a location's inline chain; 0: it has no name, or no memory. */
static uint32_t copy_chain(struct profile_copy *c, const struct profile_location *l)
{
	uint32_t chain = 0;

	for (uint32_t i = l->unnamed ? 0 : l->line_count; i-- > 0;) {
		const struct profile_line *line = &c->p->lines[l->first_line + i];
		const struct copied_line wanted = {
			.outer = chain,
			.function = copy_function(c, line->function).v,
			.file = profile_copy__string(c, line->file).v,
			.line = line->line,
			.column = line->column,
		};
		const struct copied_line *known = copied_lines__need(&c->code->lines, &wanted,
								     NULL);

		if (builder_has_failed(c->b, known ? 0 : -ENOMEM))
			return 0;
		chain = (uint32_t)(known - c->code->lines.data) + 1;
	}
	return chain;
}

/* Without a chain it gets its name when the builder is finished. */
static void set_lines(struct profile_copy *c, struct location_id id,
		      const struct copied_place *place)
{
	VEC(struct profile_line) lines = {};
	int err = 0;

	for (uint32_t at = place->chain; at && !err; at = c->code->lines.data[at - 1].outer) {
		const struct copied_line *line = &c->code->lines.data[at - 1];

		err = vec_push(&lines, (struct profile_line){.function = {line->function},
							     .file = {line->file},
							     .line = line->line,
							     .column = line->column});
	}
	if (!builder_has_failed(c->b, err))
		profile_builder__resolve(c->b, id, place->elf_address, lines.data, lines.count);
	vec_free(&lines);
}

/* A new location: the first one at its address, or one more version. */
static struct location_id add_place(struct profile_copy *c, const struct copied_place *place)
{
	const struct placed_address wanted = {
		.address = {place->dso, place->process, place->address}};
	struct placed_address *at = copied_addresses__need(&c->code->addresses, &wanted, NULL);
	struct location_id id;

	if (builder_has_failed(c->b, at ? 0 : -ENOMEM))
		return (struct location_id){0};
	if (!at->versions)
		id = at->first = profile_builder__location(c->b, (struct dso_id){place->dso},
							   place->address,
							   (struct process_id){place->process},
							   (enum profile_category)place->category);
	else
		id = profile_builder__version(c->b, profile_builder__get_location(c->b, at->first),
					      at->versions);
	at->versions++;
	set_lines(c, id, place);
	profile_builder__code(c->b, id, (enum code_tier)place->tier, place->ambiguous);
	profile_builder__code_version(c->b, id, place->code_version);
	profile_builder__sure_lines(c->b, id, place->sure_lines);
	return id;
}

/* `version`, process: in the builder. */
static void copy_code(struct profile_copy *c, const struct profile_code *from,
		      struct process_id process, uint32_t version)
{
	VEC(struct profile_code_row) rows = {};
	struct profile_code code = *from;
	int err = 0;

	code.dso = copy_dso(c, from->dso);
	code.process = process;
	code.version = version;
	for (uint32_t i = 0; i < from->row_count && !err; i++) {
		struct profile_code_row row = c->p->code_rows[from->first_row + i];

		if (row.function.v)
			row.function = copy_function(c, row.function);
		row.file = profile_copy__string(c, row.file);
		err = vec_push(&rows, row);
	}
	if (!builder_has_failed(c->b, err))
		profile_builder__add_code(c->b, &code, rows.data, rows.count);
	vec_free(&rows);
}

/* Its version in the builder; 0: there is none, or no memory. */
static uint32_t copy_jit_code(struct profile_copy *c, const struct profile_location *l,
			      struct dso_id dso, struct process_id process)
{
	const struct profile_code *code = l->code_version ? profile__code(c->p, l) : NULL;
	struct copied_jit_code wanted, *known;
	bool is_new = false;

	if (!code)
		return 0;
	wanted = (struct copied_jit_code){.dso = dso.v,
					  .process = process.v,
					  .size = code->size,
					  .address = code->address,
					  .bytes = code->bytes};
	known = copied_jit_codes__need(&c->code->jit_codes, &wanted, &is_new);
	if (builder_has_failed(c->b, known ? 0 : -ENOMEM))
		return 0;
	if (is_new) {
		known->version = c->code->jit_codes.count;
		copy_code(c, code, process, known->version);
		known->bytes = c->b->error ? NULL : c->b->codes.data[c->b->codes.count - 1].bytes;
	}
	return known->version;
}

static struct location_id copy_location(struct profile_copy *c, struct location_id id)
{
	const struct profile_location *l = &c->p->locations[id.v];
	uint32_t *number = &c->locations[id.v];
	struct placed wanted = {}, *known;
	bool is_new = false;

	if (*number)
		return (struct location_id){*number};
	wanted.place = (struct copied_place){
		.dso = copy_dso(c, l->dso).v,
		.process = c->processes[l->process.v],
		.chain = copy_chain(c, l),
		.sure_lines = l->sure_lines,
		.category = (uint8_t)l->category,
		.tier = (uint8_t)l->tier,
		.ambiguous = l->ambiguous,
		.code_version = copy_jit_code(c, l, copy_dso(c, l->dso),
					      (struct process_id){c->processes[l->process.v]}),
		.address = l->address,
		.elf_address = l->elf_address,
	};
	known = c->b->error ? NULL : copied_places__need(&c->code->places, &wanted, &is_new);
	if (builder_has_failed(c->b, known ? 0 : -ENOMEM))
		return (struct location_id){0};
	if (is_new)
		known->id = add_place(c, &wanted.place);
	*number = known->id.v;
	return known->id;
}

/* Callers first. */
struct stack_id profile_copy__stack(struct profile_copy *c, struct stack_id id)
{
	const struct profile_stack *stacks = c->p->stacks;
	struct stack_id made = {};

	c->path.count = 0;
	for (uint32_t at = id.v; at && !c->stacks[at]; at = stacks[at].parent.v)
		if (builder_has_failed(c->b, vec_push(&c->path, at)))
			return made;
	while (c->path.count && !c->b->error) {
		uint32_t at = c->path.data[--c->path.count];
		struct location_id location = copy_location(c, stacks[at].location);

		made.v = c->stacks[stacks[at].parent.v];
		c->stacks[at] = profile_builder__stack(c->b, made, location).v;
	}
	return (struct stack_id){c->stacks[id.v]};
}

static void copy_source(struct profile_copy *c, const struct profile_source *from,
			const bool *is_seen)
{
	struct profile_source source = *from;
	struct profile_source *known;

	source.path = profile_copy__string(c, from->path);
	source.root = c->roots[from->root];
	known = builder_find_source(c->b, &source);
	if (known && !same_text(known, from))
		known->state = SOURCE_CHANGED;
	else if (!known && is_seen[source.root])
		profile_builder__add_source(c->b, &source);
}

void profile_copy__code(struct profile_copy *c)
{
	/* roots of whose programs another profile had all have no number */
	bool is_seen[SOURCE_ROOTS] = {[SOURCE_ROOT_SCRIPTS] = true, [SOURCE_ROOT_ALL] = true};
	const struct profile *p = c->p;

	for (size_t i = 0; i < p->code_count; i++)
		if (p->dsos[p->codes[i].dso.v].kind == DSO_FILE)
			copy_code(c, &p->codes[i], (struct process_id){0}, 0);
	for (size_t i = 1; i < c->b->dsos.count; i++)
		is_seen[c->b->dsos.data[i].source_root] = true;
	for (size_t i = 0; i < p->source_count; i++)
		copy_source(c, &p->sources[i], is_seen);
}
